"""Recognising running maxima and sums, and copies of their last steps.

A running value is an array with the step as its last subscript. Access to it in this package is
written without that subscript, as ``Rows.maximum`` of a running maximum is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import LoopRef, Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Call, Equation, Expr, Index, Int, Loop
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.rewrite import nest_at
from steptp_dagster.strategies.streaming import (
    MINUS_INF,
    ZERO,
    faithful_total,
    history_equations,
    indexed,
    rolling_equations,
    shifted_total,
    streamed_total,
    unshifted_total,
)


@dataclass(frozen=True, slots=True)
class Running:
    """A running maximum: its array without the step, the scores, and the loop over a row."""

    array: Access
    score: Expr
    reduction: LoopRef


@dataclass(frozen=True, slots=True)
class Copy:
    """A tensor that holds the last step of the running values ``of``, by the equation ``path``.

    ``faithful``: it is a ``faithful_total``, which differs for rows of nothing but -inf, or a
    ``shifted`` one, which differs where a score is infinite.
    """

    path: Path
    tensor: str
    of: str
    faithful: bool
    shifted: bool = False


def running_maximum(statement: Statement) -> Running | None:
    """The running maximum that an equation computes, if it is the very recurrence."""
    equation = statement.equation
    subscripts = equation.target.subscripts
    step = subscripts[-1] if subscripts else None
    if not isinstance(step, Index) or not isinstance(equation.value, Call):
        return None
    loop = next((ref for ref in statement.chain if ref.name == step.name), None)
    if loop is None or len(equation.value.arguments) != len(("running", "score")):
        return None
    base = row_of(equation.target)
    score = equation.value.arguments[1]
    expected, _ = history_equations(score, base, base, step.name, loop.loop.start)
    if (expected.target, expected.value) != (equation.target, equation.value):
        return None
    return Running(base, score, loop)


def running_sum(statement: Statement, maximum: Statement) -> Access | None:
    """The array, without its step, of a running sum beside a running maximum, or None."""
    running = running_maximum(maximum)
    target = statement.equation.target
    if running is None or statement.path[:-1] != maximum.path[:-1] or not target.subscripts:
        return None
    base, loop = row_of(target), running.reduction.loop
    _, expected = history_equations(running.score, running.array, base, loop.index, loop.start)
    same = replace(expected, guard=maximum.equation.guard) == statement.equation
    return base if same and statement.order > maximum.order else None


@dataclass(frozen=True, slots=True)
class RollingRows:
    """A nest that makes maximum and sum of a row over state that each step overwrites.

    ``maximum`` and ``total`` are what it writes in the end, by the equations ``maker`` and
    ``last``; ``state`` are the private tensors.
    """

    score: Expr
    maximum: Access
    total: Access
    reduction: LoopRef
    maker: Statement
    last: Statement
    state: tuple[str, ...]


def rolling_rows(program: SignedProgram, step: Statement) -> RollingRows | None:
    """The nest whose loop starts with ``step``, if it is what a rolling softmax has."""
    accesses = Analysis.of(program).accesses
    match step.equation.value:
        case Call("max", (Access(scope="l", subscripts=()) as old, score)) if step.path[
            -1
        ] == 0 and len(step.path) > len(("nest", "loop")):
            pass
        case _:
            return None
    inner, outer = step.path[:-1], step.path[:-2]
    found = [accesses.statement_at.get((*inner, i)) for i in range(3)]
    around = [accesses.statement_at.get((*outer, i)) for i in (0, 1, 3, 4)]
    if inner[-1] != len(("maximum", "sum")) or None in found or None in around:
        return None
    _, second, _ = (one for one in found if one is not None)
    start, zero, maker, last = (one for one in around if one is not None)
    new, total = step.equation.target, second.equation.target
    expected = (
        *rolling_equations(score, old, new, total),
        Equation(old, MINUS_INF),
        Equation(total, ZERO),
        Equation(maker.equation.target, old),
    )
    there = (*found, start, zero, maker)
    same = all(a == b.equation for a, b in zip(expected, there, strict=True) if b is not None)
    sizes = (len(nest_at(program.program, inner).body), len(nest_at(program.program, outer).body))
    if not same or sizes != (len(found), len(around) + 1) or last.equation.guard is not None:
        return None
    ends = (total, faithful_total(old, total), shifted_total(old, total))
    if last.equation.value not in ends:
        return None
    return RollingRows(
        score,
        maker.equation.target,
        last.equation.target,
        step.chain[-1],
        maker,
        last,
        (old.name, total.name, new.name),
    )


def row_of(access: Access) -> Access:
    """The access without its last subscript, the step."""
    return replace(access, subscripts=access.subscripts[:-1])


def last_step(array: Access, loop: Loop) -> Access:
    """The access to the last element of running values."""
    return indexed(array, Int(loop.start + loop.extent - 1))


def copies_of(program: SignedProgram, arrays: Sequence[Access], loop: Loop) -> tuple[Copy, ...]:
    """Tensors that nothing but ``T_{i}=N_{i,last}`` writes, for each array, in text order.

    The first of the arrays holds running maxima, another one sums relative to them.

    With equal subscripts on both sides any read of ``T`` is one of ``N`` with the last step added.
    """
    analysis = Analysis.of(program)
    found: list[Copy] = []
    for array in arrays:
        for statement in analysis.accesses.statements:
            target = statement.equation.target
            plain = unshifted_total(statement.equation.value)
            if plain != statement.equation.value:
                top = last_step(replace(arrays[0], subscripts=target.subscripts), loop)
                if statement.equation.value != shifted_total(top, plain):
                    continue
            value = streamed_total(plain)
            if not isinstance(value, Access) or value.name != array.name:
                continue
            whole = last_step(replace(array, subscripts=target.subscripts), loop) == value
            same = (
                target.scope == array.scope
                and DTYPES[target.dtype].evaluation == DTYPES[array.dtype].evaluation
            )
            if whole and same and len(analysis.accesses.writes[target.name]) == 1:
                faithful, shifted = (e != statement.equation.value for e in (value, plain))
                found.append(Copy(statement.path, target.name, array.name, faithful, shifted))
    return tuple(found)
