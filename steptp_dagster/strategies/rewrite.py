"""Rewriting helpers that strategies share: renaming loops, guards, fresh names, factors."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import isqrt
from typing import Final

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.nest_memory import known_nest
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    Path,
    accesses_in,
    at,
    equations_in,
    expressions,
    fresh_indices,
    fresh_tensors,
    index_names,
    map_statement,
    replace_at,
    substitute,
)

#: Most factors that a strategy offers for one loop.
MOST_FACTORS: Final = 8
_TILES: Final = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def nest_at(program: Program, path: Path) -> Nest:
    """The nest at ``path``. Raises TypeError for an equation, IndexError where nothing stands."""
    found = at(program, path)
    if not isinstance(found, Nest):
        raise TypeError(f"the statement at {path} is an equation")
    return found


def equation_at(program: Program, path: Path) -> Equation:
    """The equation at ``path``. Raises TypeError for a nest, IndexError where nothing stands."""
    found = at(program, path)
    if not isinstance(found, Equation):
        raise TypeError(f"the statement at {path} is a nest")
    return found


def signed_with(program: SignedProgram, path: Path, *new: Statement) -> SignedProgram:
    """The program with the statement at ``path`` replaced; the signature stays."""
    return SignedProgram(replace_at(program.program, path, *new), program.signature)


def map_indices(statement: Statement, by: Mapping[str, Expr]) -> Statement:
    """Replace uses of indices in all expressions of a statement, all at once; loops stay."""
    return map_statement(statement, lambda expr: substitute(expr, by))


def rename_loops(statement: Statement, names: Mapping[str, str]) -> Statement:
    """Rename indices, in the loops of a statement and in all uses, all at once."""
    return _rename_headers(
        map_indices(statement, {old: Index(new) for old, new in names.items()}), names
    )


def _rename_headers(statement: Statement, names: Mapping[str, str]) -> Statement:
    if isinstance(statement, Equation):
        return statement
    return Nest(
        tuple(replace(loop, index=names.get(loop.index, loop.index)) for loop in statement.loops),
        tuple(_rename_headers(inner, names) for inner in statement.body),
    )


def guarded(statement: Statement, condition: Expr) -> Statement:
    """The statement with ``condition`` added in front of the guard of each of its equations."""
    if isinstance(statement, Equation):
        old = statement.guard
        return replace(statement, guard=condition if old is None else Binary("&", condition, old))
    return replace(statement, body=tuple(guarded(inner, condition) for inner in statement.body))


def guards_read_tensors(statement: Statement) -> bool:
    """Whether a guard anywhere in the statement reads a tensor."""
    return any(
        True
        for located in equations_in(statement)
        if located.equation.guard is not None
        for _ in accesses_in(located.equation.guard)
    )


def fresh_index(program: Program, path: Path, *also_used: str) -> str:
    """The first index name that the top-level nest around ``path`` does not use."""
    used = index_names(program.nests[path[0]]) | set(also_used)
    return next(fresh_indices(used))


def new_tensor_names(program: SignedProgram, count: int) -> tuple[str, ...]:
    """The first ``count`` tensor names that neither program nor signature uses."""
    names = fresh_tensors(_used_names(program))
    return tuple([next(names) for _ in range(count)])


@per_program
def _used_names(program: SignedProgram) -> frozenset[str]:
    """The names of all tensors of the program and its signature."""
    outlines = [known_nest(nest).outline.names for nest in program.program.nests]
    return frozenset(program.signature.by_name).union(*outlines)


def equations_touching(program: Program, name: str) -> Iterator[Located]:
    """All equations of the nests that touch a tensor, in text order."""
    for i, nest in enumerate(program.nests):
        if name in known_nest(nest).outline.names:
            yield from equations_in(nest, (i,))


def accesses_to(program: Program, name: str) -> Iterable[tuple[Path, tuple[Loop, ...], Access]]:
    """All accesses to a tensor, with the path and the loops of their equations."""
    for located in equations_touching(program, name):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                if access.name == name:
                    yield located.path, located.loops, access


def reads_of(equation: Equation) -> Iterator[Access]:
    """Read accesses of an equation: value, guard, the target's subscripts, in this order."""
    yield from accesses_in(equation.value)
    if equation.guard is not None:
        yield from accesses_in(equation.guard)
    for subscript in equation.target.subscripts:
        yield from accesses_in(subscript)


def readers_of(program: Program, name: str) -> tuple[Path, ...]:
    """Paths of the equations that read a tensor, in text order."""
    return tuple(
        located.path
        for located in equations_touching(program, name)
        if any(access.name == name for access in reads_of(located.equation))
    )


def writers_of(program: Program, name: str) -> tuple[Path, ...]:
    """Paths of the equations that write a tensor, in text order."""
    return tuple(
        located.path
        for located in equations_touching(program, name)
        if located.equation.target.name == name
    )


def read_texts(statement: Statement, name: str) -> tuple[str, ...]:
    """Distinct read accesses to a tensor in a statement as text, by first occurrence."""
    return tuple(
        dict.fromkeys(
            expr_text(access)
            for located in equations_in(statement)
            for access in reads_of(located.equation)
            if access.name == name
        )
    )


def write_texts(statement: Statement, name: str) -> tuple[str, ...]:
    """Distinct written accesses to a tensor in a statement as text, by first occurrence."""
    targets = (located.equation.target for located in equations_in(statement))
    return tuple(dict.fromkeys(expr_text(t) for t in targets if t.name == name))


def affine_sum(base: Expr, offset: int) -> Expr:
    """``base + offset``, with constants at the end of a sum folded."""
    match base:
        case Int():
            total = base.value + offset
            if total >= 0:
                return Int(total)
        case Binary(op="+", right=Int() as constant):
            return affine_sum(base.left, constant.value + offset)
        case Binary(op="-", right=Int() as constant):
            return affine_sum(base.left, offset - constant.value)
    if offset == 0:
        return base
    return Binary("+" if offset > 0 else "-", base, Int(abs(offset)))


def divisors(n: int) -> tuple[int, ...]:
    """The divisors of ``n`` strictly between 1 and ``n``, ascending."""
    small = [d for d in range(2, isqrt(n) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


def exact_factors(n: int) -> tuple[int, ...]:
    """Divisors to offer as factors of ``n``: all, or ``MOST_FACTORS`` spread evenly over them."""
    found = divisors(n)
    if len(found) <= MOST_FACTORS:
        return found
    step = len(found) - 1
    picks = sorted({round(i * step / (MOST_FACTORS - 1)) for i in range(MOST_FACTORS)})
    return tuple(found[i] for i in picks)


def tail_factors(n: int) -> tuple[int, ...]:
    """Usual tile sizes below ``n`` that do not divide it, ascending, at most ``MOST_FACTORS``."""
    return tuple(f for f in _TILES if f < n and n % f)[:MOST_FACTORS]
