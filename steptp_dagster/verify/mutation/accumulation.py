"""Mistakes in accumulations: starts, terms that are lost or counted twice, combined partials."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    all_nests,
    equations,
    fresh_indices,
    replace_at,
    substitute,
)
from steptp_dagster.verify.mutation.edits import (
    Change,
    accumulates,
    combined,
    each,
    free_index,
    outside_subscripts,
    reads,
    reduction_loops,
    where,
    with_equation,
    with_nest,
)


def missing_start(signed: SignedProgram) -> Iterator[Change]:
    """An accumulator is not reset, or a recurrence has no first value."""
    updated = {e.equation.target.name for e in equations(signed.program) if accumulates(e.equation)}
    for located in equations(signed.program):
        equation = located.equation
        if equation.target.name not in updated:
            continue
        if not reads(equation.value, equation.target.name):
            # the update that it starts stays, so that the program does not become empty
            text = f"{where(located.path)} left out"
            yield Change(text, replace_at(signed.program, located.path))
        for value in each(equation.value, partial(_unguarded, equation)):
            yield with_equation(signed, located.path, replace(equation, value=value))


def wrong_start(signed: SignedProgram) -> Iterator[Change]:
    """An accumulation starts from a number that is not its identity."""
    updated = {e.equation.target.name for e in equations(signed.program) if accumulates(e.equation)}
    for located in equations(signed.program):
        equation = located.equation
        name = equation.target.name
        if name not in updated:
            continue
        if isinstance(equation.value, Int | Inf | Unary) and not reads(equation.value, name):
            for start in _starts(equation.target):
                if start != equation.value:
                    yield with_equation(signed, located.path, replace(equation, value=start))
            continue
        own = reduction_loops(located)
        if combined(equation.value) is None or not own or not accumulates(equation):
            continue
        first = _first(own)
        for start in _starts(equation.target):
            begin = Call("if_then_else", (first, start, equation.target))

            def begun(
                expr: Expr, own: Expr = equation.target, begin: Expr = begin
            ) -> Iterator[Expr]:
                if expr == own:
                    yield begin

            for value in outside_subscripts(equation.value, begun):
                yield with_equation(signed, located.path, replace(equation, value=value))


def lost_accumulation(signed: SignedProgram) -> Iterator[Change]:
    """``X=e`` for ``X=X+e``: what was there before is overwritten."""
    for located in equations(signed.program):
        equation = located.equation
        name = equation.target.name

        def alone(expr: Expr, name: str = name) -> Iterator[Expr]:
            operands = combined(expr)
            if operands is None:
                return
            left, right = operands
            if reads(left, name) and not reads(right, name):
                yield right
            if reads(right, name) and not reads(left, name):
                yield left

        for value in outside_subscripts(equation.value, alone):
            yield with_equation(signed, located.path, replace(equation, value=value))


def repeated_statement(signed: SignedProgram) -> Iterator[Change]:
    """An accumulation stands twice: every term counts double."""
    for located in equations(signed.program):
        if accumulates(located.equation):
            yield with_equation(signed, located.path, located.equation, located.equation)


def dropped_rescale(signed: SignedProgram) -> Iterator[Change]:
    """What was accumulated so far is not rescaled when the running maximum moves."""
    for located in equations(signed.program):
        equation = located.equation

        def kept(expr: Expr) -> Iterator[Expr]:
            match expr:
                case Binary(op="*", left=left, right=right):
                    for factor, other in ((left, right), (right, left)):
                        if _is_rescale(factor):
                            yield other
                case Call(
                    function="exp", arguments=(Binary(op="-", left=Access(), right=Access()),)
                ):
                    yield Int(1)
                case _:
                    return

        for value in outside_subscripts(equation.value, kept):
            yield with_equation(signed, located.path, replace(equation, value=value))


def wrong_combine(signed: SignedProgram) -> Iterator[Change]:
    """Partial results are combined by the wrong loop: too often, too few, or while they grow."""
    partials = {
        e.equation.target.name for e in equations(signed.program) if accumulates(e.equation)
    } - {v.name for v in signed.signature.variables}
    again = free_index(signed)
    for i, nest in enumerate(signed.program.nests):
        body = nest.body
        if len(body) != 1 or not isinstance(body[0], Equation):
            continue
        equation = body[0]
        located = Located((i, 0), nest.loops, equation)
        if not any(reads(equation.value, name) for name in partials - {equation.target.name}):
            continue
        if accumulates(equation):
            for extent in (2, *(loop.extent for loop in reduction_loops(located))):
                if extent > 1:
                    loops = (*nest.loops, Loop("L", again, extent))
                    yield with_nest(signed, (i,), replace(nest, loops=loops))
            yield from _one_partial(signed, located, partials - {equation.target.name})
        if i > 0:
            yield from _combined_inside(signed, i)


def _one_partial(signed: SignedProgram, located: Located, partials: set[str]) -> Iterator[Change]:
    """The loop over the partial results reads the first one every time."""
    own = {loop.index: Int(loop.start) for loop in reduction_loops(located)}

    def first(expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Access) and expr.name in partials:
            yield substitute(expr, own)

    equation = located.equation
    for value in outside_subscripts(equation.value, first):
        yield with_equation(signed, located.path, replace(equation, value=value))


def _combined_inside(signed: SignedProgram, i: int) -> Iterator[Change]:
    """A nest is moved to the end of the innermost body of the nest before it."""
    before, nest = signed.program.nests[i - 1], signed.program.nests[i]
    used = {loop.index for _, n in all_nests(signed.program) for loop in n.loops}
    names = fresh_indices(used)
    renamed = {loop.index: next(names) for loop in nest.loops}
    loops = tuple(Loop("L", renamed[x.index], x.extent, x.start) for x in nest.loops)
    by = {old: Index(new) for old, new in renamed.items()}
    body = tuple(
        Equation(
            _access(substitute(s.target, by)),
            substitute(s.value, by),
            None if s.guard is None else substitute(s.guard, by),
        )
        for s in nest.body
        if isinstance(s, Equation)
    )
    if len(body) != len(nest.body):
        return
    joined = replace(before, body=(*before.body, Nest(loops, body)))
    program = replace_at(replace_at(signed.program, (i,)), (i - 1,), joined)
    yield Change(f"{where((i,))}: moved into the nest before it", program)


def _access(expr: Expr) -> Access:
    if not isinstance(expr, Access):
        raise TypeError(f"the target of an equation became {type(expr).__name__}")
    return expr


def _unguarded(own: Equation, expr: Expr) -> Iterator[Expr]:
    """``if_then_else(first, start, X)`` without the question."""
    match expr:
        case Call(function="if_then_else", arguments=(_, yes, no)):
            if reads(no, own.target.name) and not reads(yes, own.target.name):
                yield no
        case _:
            return


def _starts(target: Access) -> tuple[Expr, ...]:
    """Numbers that accumulations are started from, by mistake or not."""
    if DTYPES[target.dtype].is_float:
        return Int(0), Int(1), Unary("-", Inf()), Inf(), Unary("-", Int(1))
    return Int(0), Int(1)


def _first(loops: tuple[Loop, ...]) -> Expr:
    """The condition of the first iteration of some loops."""
    conditions: list[Expr] = [Compare((Index(x.index), Int(x.start)), ("==",)) for x in loops]
    return reduce(lambda a, b: Binary("&", a, b), conditions)


def _is_rescale(expr: Expr) -> bool:
    match expr:
        case Call(function="exp", arguments=(Binary(op="-"),)):
            return True
        case Call(function="if_then_else", arguments=(_, yes, no)):
            return _is_rescale(yes) or _is_rescale(no)
        case _:
            return False
