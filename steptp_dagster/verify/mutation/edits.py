"""What the kinds of mistake are made of: one place of a program replaced by something else."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.printer import loops_text, statement_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    Path,
    accesses_in,
    all_nests,
    at,
    children,
    equations,
    fresh_indices,
    map_statement,
    replace_at,
    substitute,
    with_children,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A program with one mistake; ``place`` says where it is and how it reads there."""

    place: str
    program: Program


#: A kind of mistake: all programs that it makes of one, in text order.
Kind = Callable[[SignedProgram], Iterator[Change]]
#: What may stand in the place of a node of an expression.
Alternatives = Callable[[Expr], Iterable[Expr]]


def where(path: Path) -> str:
    """A statement for people: its number, and that of each statement around it.

    >>> where((0, 2))
    'statement 1.3'
    """
    return "statement " + ".".join(str(i + 1) for i in path)


def with_equation(signed: SignedProgram, path: Path, *new: Equation) -> Change:
    """The equation at ``path`` replaced by others."""
    text = "".join(statement_text(e) for e in new)
    return Change(f"{where(path)}: {text}", replace_at(signed.program, path, *new))


def with_nest(signed: SignedProgram, path: Path, new: Nest) -> Change:
    """The nest at ``path`` replaced by another; the place shows its loops."""
    text = loops_text(new.loops)
    return Change(f"{where(path)}: {text}", replace_at(signed.program, path, new))


def each(expr: Expr, alternatives: Alternatives) -> Iterator[Expr]:
    """The expression with one node replaced, for every node and alternative, in pre-order."""
    for new in alternatives(expr):
        if new != expr:
            yield new
    below = children(expr)
    for i, child in enumerate(below):
        for new in each(child, alternatives):
            yield with_children(expr, (*below[:i], new, *below[i + 1 :]))


def outside_subscripts(expr: Expr, alternatives: Alternatives) -> Iterator[Expr]:
    """As ``each``, but nothing inside a subscript is replaced."""
    for new in alternatives(expr):
        if new != expr:
            yield new
    if isinstance(expr, Access):
        return
    below = children(expr)
    for i, child in enumerate(below):
        for new in outside_subscripts(child, alternatives):
            yield with_children(expr, (*below[:i], new, *below[i + 1 :]))


def in_values(signed: SignedProgram, alternatives: Alternatives) -> Iterator[Change]:
    """One node of one right-hand side replaced, subscripts left as they are."""
    for located in equations(signed.program):
        for value in outside_subscripts(located.equation.value, alternatives):
            yield with_equation(signed, located.path, replace(located.equation, value=value))


def in_conditions(signed: SignedProgram, alternatives: Alternatives) -> Iterator[Change]:
    """One node of a right-hand side or a guard replaced, subscripts left as they are."""
    yield from in_values(signed, alternatives)
    for located in equations(signed.program):
        if located.equation.guard is not None:
            for guard in outside_subscripts(located.equation.guard, alternatives):
                yield with_equation(signed, located.path, replace(located.equation, guard=guard))


def in_accesses(
    signed: SignedProgram, alternatives: Callable[[Access, Located], Iterable[Access]]
) -> Iterator[Change]:
    """One access replaced by another, of the target, the right-hand side or the guard."""
    for located in equations(signed.program):

        def chosen(expr: Expr, located: Located = located) -> Iterable[Expr]:
            return alternatives(expr, located) if isinstance(expr, Access) else ()

        equation = located.equation
        for target in each(equation.target, chosen):
            if isinstance(target, Access):
                yield with_equation(signed, located.path, replace(equation, target=target))
        for value in each(equation.value, chosen):
            yield with_equation(signed, located.path, replace(equation, value=value))
        if equation.guard is not None:
            for guard in each(equation.guard, chosen):
                yield with_equation(signed, located.path, replace(equation, guard=guard))


def each_loop(signed: SignedProgram) -> Iterator[tuple[Path, Nest, int, Loop]]:
    """Every loop: the path of its nest, the nest, its place there, the loop."""
    for path, nest in all_nests(signed.program):
        for k, loop in enumerate(nest.loops):
            yield path, nest, k, loop


def with_loop(nest: Nest, k: int, loop: Loop) -> Nest:
    """The nest with loop ``k`` replaced; uses of its index follow a new name."""
    old = nest.loops[k]
    loops = (*nest.loops[:k], loop, *nest.loops[k + 1 :])
    if old.index == loop.index:
        return replace(nest, loops=loops)

    def renamed(expr: Expr) -> Expr:
        return substitute(expr, {old.index: Index(loop.index)})

    return replace(nest, loops=loops, body=tuple(map_statement(s, renamed) for s in nest.body))


def bodies(program: Program) -> Iterator[tuple[Path, tuple[Statement, ...]]]:
    """Every list of statements: that of the program, with the path (), and those of all nests."""
    yield (), program.nests
    for path, nest in all_nests(program):
        yield path, nest.body


def with_body(program: Program, path: Path, body: tuple[Statement, ...]) -> Program:
    """The program with another list of statements at a path of ``bodies``."""
    if not path:
        return Program(tuple(s for s in body if isinstance(s, Nest)))
    nest = at(program, path)
    if not isinstance(nest, Nest):
        raise TypeError(f"no nest at {path}")
    return replace_at(program, path, replace(nest, body=body))


def reads(expr: Expr, name: str) -> bool:
    """Whether the tensor ``name`` occurs in an expression."""
    return any(a.name == name for a in accesses_in(expr))


def combined(expr: Expr) -> tuple[Expr, Expr] | None:
    """The two operands of ``+ - * max min``, else None."""
    match expr:
        case Binary(op="+" | "-" | "*", left=left, right=right):
            return left, right
        case Call(function="max" | "min", arguments=(left, right)):
            return left, right
        case _:
            return None


def accumulates(equation: Equation) -> bool:
    """Whether a value is combined with an element of its own target."""
    name = equation.target.name
    return reads(equation.value, name) and not isinstance(equation.value, Access)


def reduction_loops(located: Located) -> tuple[Loop, ...]:
    """The enclosing loops whose index the target's subscripts do not use."""
    used = {
        node.name
        for subscript in located.equation.target.subscripts
        for node in _nodes(subscript)
        if isinstance(node, Index)
    }
    return tuple(loop for loop in located.loops if loop.index not in used)


def free_index(signed: SignedProgram) -> str:
    """An index name that no loop of the program binds."""
    used = {loop.index for _, nest in all_nests(signed.program) for loop in nest.loops}
    return next(fresh_indices(used))


def _nodes(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from _nodes(child)
