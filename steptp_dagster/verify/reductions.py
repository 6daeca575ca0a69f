"""Smaller pairs made of a pair: what ``shrink`` tries.

Each reduction does the same to both programs, or changes nothing of what one computes, so that the
mistake that is looked for stays and no other one takes its place. Nothing here asks whether the
smaller pair is valid or still fails.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import log2, prod
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Equation,
    Expr,
    Index,
    Int,
    InvalidNode,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    all_nests,
    children,
    equations,
    equations_in,
    expressions,
    fresh_indices,
    index_names,
    iter_expr,
    map_expr,
    map_program,
    map_statement,
    replace_at,
    substitute,
)

Pair = tuple[SignedProgram, SignedProgram]
#: Makes smaller pairs of one, the smallest first where that is known.
Reduction = Callable[[Pair], Iterator[Pair]]


def size(pair: Pair) -> float:
    """How much there is to read: nodes, loops with the digits of their extents, variables."""
    signature = pair[0].signature
    total = float(len(signature.variables) + sum(len(v.shape) for v in signature.variables))
    total += sum(log2(extent) for v in signature.variables for extent in v.shape)
    for signed in pair:
        for _, nest in all_nests(signed.program):
            total += sum(2.0 + log2(x.extent) + (x.kind != "L") + (x.start > 0) for x in nest.loops)
        for located in equations(signed.program):
            for expr in expressions(located.equation):
                total += sum(_weight(node) for node in iter_expr(expr))
    return total


def fewer_outputs(pair: Pair) -> Iterator[Pair]:
    """Only one output is left; what only the others needed goes with them."""
    outputs = pair[0].signature.outputs
    if len(outputs) > 1:
        for kept in outputs:
            variables = tuple(
                v for v in pair[0].signature.variables if v.role != "output" or v is kept
            )
            yield _tidied(_with_signature(pair, variables))


def earlier_output(pair: Pair) -> Iterator[Pair]:
    """An intermediate that both programs compute becomes the output."""
    signature = pair[0].signature
    sources = tuple(v for v in signature.variables if v.role != "output")
    for name, dtype, shape in _shared(pair):
        output = Variable("output", name, dtype, shape)
        yield _tidied(_with_signature(pair, (*sources, output)))


def later_input(pair: Pair) -> Iterator[Pair]:
    """An intermediate that both programs compute becomes an input, and nobody computes it."""
    variables = pair[0].signature.variables
    for name, dtype, shape in reversed(_shared(pair)):
        given = (Variable("input", name, dtype, shape), *variables)
        left = tuple(_without_writes(signed, name) for signed in pair)
        if left[0] is not None and left[1] is not None:
            yield _tidied(_with_signature((left[0], left[1]), given))


def dead_statements(pair: Pair) -> Iterator[Pair]:
    """Statements that no output needs, and known variables that nobody uses, are left out."""
    yield _tidied(pair)


def same_nest(pair: Pair) -> Iterator[Pair]:
    """A nest of the candidate becomes the original's, where both compute the same tensors."""
    original, candidate = pair
    by_targets = {_targets(nest): nest for nest in original.program.nests}
    for i, nest in enumerate(candidate.program.nests):
        own = by_targets.get(_targets(nest))
        if own is not None and own != nest:
            program = replace_at(candidate.program, (i,), own)
            yield original, SignedProgram(program, candidate.signature)


def smaller_extents(pair: Pair) -> Iterator[Pair]:
    """A number that is an extent becomes smaller everywhere, tiles with what they divide.

    One number may be two things, and then the programs would no longer fit each other. So the one
    must go on executing as many equations for each of the other's as before.
    """
    wanted = _ratio(pair)
    yield from (smaller for smaller in _all_smaller(pair) if _ratio(smaller) == wanted)


def _all_smaller(pair: Pair) -> Iterator[Pair]:
    signature = pair[0].signature
    sizes = {e for v in signature.variables for e in v.shape}
    own = [{x.extent for _, n in all_nests(s.program) for x in n.loops} for s in pair]
    loops = own[0] | own[1]
    for extent in sorted(sizes | (own[0] & own[1]), reverse=True):
        for smaller in dict.fromkeys((1, 2, 3, extent // 2, extent - 1)):
            if not 0 < smaller < extent:
                continue
            yield from _resized(pair, {extent: smaller})
            for tile in sorted(loops):
                if 1 < tile < extent and extent % tile == 0:
                    yield from _resized(pair, {extent: smaller * (extent // tile), tile: smaller})


def plain_loops(pair: Pair) -> Iterator[Pair]:
    """Loops of one program become serial: all of them, or one.

    Threads that own memory stay: serial iterations would share it.
    """
    for which in (0, 1):
        signed = pair[which]
        bound = [
            (path, k)
            for path, nest in all_nests(signed.program)
            for k, loop in enumerate(nest.loops)
            if loop.kind != "L"
            and not (loop.kind == "B" and _owns_memory(signed.program.nests[path[0]]))
        ]
        for places in (bound, *([place] for place in bound)):
            if places:
                yield _one(pair, which, _serial(signed.program, places))


def fewer_loops(pair: Pair) -> Iterator[Pair]:
    """A loop that runs once is left out, its index being its only value."""
    for which in (0, 1):
        for path, nest in all_nests(pair[which].program):
            for k, loop in enumerate(nest.loops):
                if loop.extent != 1:
                    continue
                by: Mapping[str, Expr] = {loop.index: Int(loop.start)}
                body = tuple(_substituted(s, by) for s in nest.body)
                loops = (*nest.loops[:k], *nest.loops[k + 1 :])
                new = (Nest(loops, body),) if loops else body
                if len(path) > 1 or all(isinstance(s, Nest) for s in new):
                    yield _one(pair, which, replace_at(pair[which].program, path, *new))


def simpler_arithmetic(pair: Pair) -> Iterator[Pair]:
    """Sums and products with zero, one or of two numbers are worked out, in one program."""
    for which in (0, 1):
        program = map_program(pair[which].program, lambda root: map_expr(root, _worked_out))
        if program != pair[which].program:
            yield _one(pair, which, program)


def simpler_expressions(pair: Pair) -> Iterator[Pair]:
    """A sub-expression that both programs have becomes one of its operands, in both."""
    nodes = [
        {n: None for e in _roots(s) for n in _values(e) if not isinstance(n, Access)} for s in pair
    ]
    for node in nodes[0]:
        if node in nodes[1]:
            for operand in _values_below(node):
                yield _replaced(pair, node, operand)
    # accesses of known variables: the same tensor everywhere becomes the number one
    for name in dict.fromkeys(v.name for v in pair[0].signature.sources):
        yield _tidied(_mapped(pair, lambda e, n=name: Int(1) if _reads(e, n) else e))  # type: ignore[misc]


def fewer_statements(pair: Pair) -> Iterator[Pair]:
    """An equation that stands in both programs, word for word, is left out of both."""
    own = [{e.equation: e.path for e in equations(s.program)} for s in pair]
    for equation, path in own[0].items():
        if equation in own[1]:
            try:
                programs = [
                    replace_at(pair[0].program, path),
                    replace_at(pair[1].program, own[1][equation]),
                ]
            except InvalidNode:  # it was the only one
                continue
            signature = pair[0].signature
            yield SignedProgram(programs[0], signature), SignedProgram(programs[1], signature)


REDUCTIONS: Final[tuple[Reduction, ...]] = (
    dead_statements,
    fewer_outputs,
    earlier_output,
    later_input,
    same_nest,
    smaller_extents,
    plain_loops,
    fewer_loops,
    simpler_arithmetic,
    fewer_statements,
    simpler_expressions,
)


def _owns_memory(nest: Nest) -> bool:
    """Whether a nest has local or shared tensors."""
    return any(
        access.scope != "g"
        for located in equations_in(nest)
        for expr in expressions(located.equation)
        for access in accesses_in(expr)
    )


def _ratio(pair: Pair) -> Fraction:
    """Executions of the candidate's busiest equation for one of the original's."""
    most = [
        max(prod(loop.extent for loop in located.loops) for located in equations(s.program))
        for s in pair
    ]
    return Fraction(most[1], most[0])


def _worked_out(expr: Expr) -> Expr:
    match expr:
        case Binary(op="+", left=Int(value=a), right=Int(value=b)):
            return Int(a + b)
        case Binary(op="*", left=Int(value=a), right=Int(value=b)):
            return Int(a * b)
        case (
            Binary(op="+", left=Int(value=0), right=kept)
            | Binary(op="+" | "-", left=kept, right=Int(value=0))
        ):
            return kept
        case (
            Binary(op="*", left=Int(value=1), right=kept)
            | Binary(op="*", left=kept, right=Int(value=1))
        ):
            return kept
        case Binary(op="*", left=Int(value=0), right=Index() | Int()):
            return Int(0)
        case _:
            return expr


def _weight(node: Expr) -> float:
    return 1.0 + (log2(node.value + 1) / 8.0 if isinstance(node, Int) else 0.0)


def _with_signature(pair: Pair, variables: tuple[Variable, ...]) -> Pair:
    signature = Signature(variables)
    return SignedProgram(pair[0].program, signature), SignedProgram(pair[1].program, signature)


def _one(pair: Pair, which: int, program: Program) -> Pair:
    new = SignedProgram(program, pair[which].signature)
    return (new, pair[1]) if which == 0 else (pair[0], new)


def _shared(pair: Pair) -> list[tuple[str, str, tuple[int, ...]]]:
    """Global intermediates that both programs write in the same shape, in text order."""
    known = pair[0].signature.by_name
    found = []
    for signed in pair:
        shapes = infer_shapes(signed)
        targets = (e.equation.target for e in equations(signed.program))
        found.append(
            {
                t.name: (t.dtype, shapes[t.name])
                for t in targets
                if t.scope == "g" and t.name not in known and t.name in shapes
            }
        )
    return [(n, *form) for n, form in found[0].items() if found[1].get(n) == form]


def _without_writes(signed: SignedProgram, name: str) -> SignedProgram | None:
    """The program without the equations that write a tensor; None where nothing would be left."""
    program = signed.program
    written = [e.path for e in equations(program) if e.equation.target.name == name]
    if len(written) == len(list(equations(program))):
        return None
    for path in reversed(written):
        program = replace_at(program, path)
    return SignedProgram(program, signed.signature)


def _tidied(pair: Pair) -> Pair:
    """Both programs without what no output depends on, and without unused known variables."""
    live = tuple(_live(signed) for signed in pair)
    used = {
        a.name
        for signed in live
        for located in equations(signed.program)
        for expr in expressions(located.equation)
        for a in accesses_in(expr)
    }
    variables = tuple(
        v for v in pair[0].signature.variables if v.role == "output" or v.name in used
    )
    return _with_signature((live[0], live[1]), variables)


def _live(signed: SignedProgram) -> SignedProgram:
    """The equations that write tensors which some output is computed from."""
    reads: dict[str, set[str]] = {}
    for located in equations(signed.program):
        found = reads.setdefault(located.equation.target.name, set())
        for expr in expressions(located.equation):
            found.update(a.name for a in accesses_in(expr))
    needed = {v.name for v in signed.signature.outputs}
    waiting = sorted(needed)
    while waiting:
        more = reads.get(waiting.pop(), set()) - needed
        needed |= more
        waiting += sorted(more)
    dead = [e.path for e in equations(signed.program) if e.equation.target.name not in needed]
    program = signed.program
    if len(dead) == len(list(equations(program))):
        return signed
    for path in reversed(dead):
        program = replace_at(program, path)
    return SignedProgram(program, signed.signature)


def _targets(nest: Nest) -> frozenset[str]:
    return frozenset(e.equation.target.name for e in equations_in(nest))


def _resized(pair: Pair, by: Mapping[int, int]) -> Iterator[Pair]:
    """Extents, shapes and numbers changed together; numbers one below an extent follow it."""
    if any(v.values is not None and set(v.shape) & by.keys() for v in pair[0].signature.variables):
        return
    below = {old - 1: new - 1 for old, new in by.items()}
    for numbers in (dict(by), {**below, **by}, {}):

        def resized(expr: Expr, numbers: Mapping[int, int] = numbers) -> Expr:
            return Int(numbers.get(expr.value, expr.value)) if isinstance(expr, Int) else expr

        variables = tuple(
            replace(v, shape=tuple(by.get(e, e) for e in v.shape))
            for v in pair[0].signature.variables
        )
        mapped = _mapped(pair, resized)
        programs = tuple(Program(tuple(_shorter(n, by) for n in s.program.nests)) for s in mapped)
        signature = Signature(variables)
        yield SignedProgram(programs[0], signature), SignedProgram(programs[1], signature)


def _shorter(nest: Nest, by: Mapping[int, int]) -> Nest:
    loops = tuple(replace(x, extent=by.get(x.extent, x.extent)) for x in nest.loops)
    body = tuple(_shorter(s, by) if isinstance(s, Nest) else s for s in nest.body)
    return Nest(loops, body)


def _serial(program: Program, places: list[tuple[Path, int]]) -> Program:
    """The loops at some places as serial ones, with names of their own where they need one."""
    names = fresh_indices({n for nest in program.nests for n in index_names(nest)})
    for path, k in places:
        nest = next(n for p, n in all_nests(program) if p == path)
        old = nest.loops[k]
        name = next(names) if old.kind == "B" else old.index
        loops = (
            *nest.loops[:k],
            Loop("L", name, old.extent, old.start),
            *nest.loops[k + 1 :],
        )
        body = tuple(_substituted(s, {old.index: Index(name)}) for s in nest.body)
        program = replace_at(program, path, Nest(loops, body))
    return program


def _substituted(statement: Statement, by: Mapping[str, Expr]) -> Statement:
    return map_statement(statement, lambda e: substitute(e, by))


def _roots(signed: SignedProgram) -> Iterator[Expr]:
    for located in equations(signed.program):
        yield from expressions(located.equation)[1:]


def _values(expr: Expr) -> Iterator[Expr]:
    """All nodes of an expression, those of subscripts aside."""
    yield expr
    if not isinstance(expr, Access):
        for child in children(expr):
            yield from _values(child)


def _values_below(node: Expr) -> tuple[Expr, ...]:
    return () if isinstance(node, Access) else children(node)


def _reads(expr: Expr, name: str) -> bool:
    return isinstance(expr, Access) and expr.name == name


def _mapped(pair: Pair, change: Callable[[Expr], Expr]) -> Pair:
    def both(signed: SignedProgram) -> SignedProgram:
        program = map_program(signed.program, lambda root: map_expr(root, change))
        return SignedProgram(program, signed.signature)

    return both(pair[0]), both(pair[1])


def _replaced(pair: Pair, old: Expr, new: Expr) -> Pair:
    """One expression by another on all right-hand sides of both programs."""

    def changed(statement: Statement) -> Statement:
        if isinstance(statement, Nest):
            return replace(statement, body=tuple(map(changed, statement.body)))
        value = map_expr(statement.value, lambda e: new if e == old else e)
        guard = statement.guard
        if guard is not None:
            guard = map_expr(guard, lambda e: new if e == old else e)
        return Equation(statement.target, value, guard)

    def both(signed: SignedProgram) -> SignedProgram:
        nests = tuple(n for n in map(changed, signed.program.nests) if isinstance(n, Nest))
        return SignedProgram(Program(nests), signed.signature)

    return _tidied((both(pair[0]), both(pair[1])))
