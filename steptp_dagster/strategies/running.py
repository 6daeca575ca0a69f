"""Recognising running maxima and sums, and copies of their last steps.

A running value is an array with the step as its last subscript. Access to it in this package is
written without that subscript, as ``Rows.maximum`` of a running maximum is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from steptp_dagster.leir.accesses import LoopRef, Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Call, Expr, Index, Int, Loop
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.streaming import history_equations, indexed, streamed_total


@dataclass(frozen=True, slots=True)
class Running:
    """A running maximum: its array without the step, the scores, and the loop over a row."""

    array: Access
    score: Expr
    reduction: LoopRef


@dataclass(frozen=True, slots=True)
class Copy:
    """A tensor that holds the last step of the running values ``of``, by the equation ``path``.

    ``faithful``: it is a ``faithful_total``, which differs for rows of nothing but -inf.
    """

    path: Path
    tensor: str
    of: str
    faithful: bool


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


def row_of(access: Access) -> Access:
    """The access without its last subscript, the step."""
    return replace(access, subscripts=access.subscripts[:-1])


def last_step(array: Access, loop: Loop) -> Access:
    """The access to the last element of running values."""
    return indexed(array, Int(loop.start + loop.extent - 1))


def copies_of(program: SignedProgram, arrays: Iterable[Access], loop: Loop) -> tuple[Copy, ...]:
    """Tensors that nothing but ``T_{i}=N_{i,last}`` writes, for each array, in text order.

    With equal subscripts on both sides any read of ``T`` is one of ``N`` with the last step added.
    """
    analysis = Analysis.of(program)
    found: list[Copy] = []
    for array in arrays:
        for statement in analysis.accesses.statements:
            target = statement.equation.target
            value = streamed_total(statement.equation.value)
            if not isinstance(value, Access) or value.name != array.name:
                continue
            whole = last_step(replace(array, subscripts=target.subscripts), loop) == value
            same = (
                target.scope == array.scope
                and DTYPES[target.dtype].evaluation == DTYPES[array.dtype].evaluation
            )
            if whole and same and len(analysis.accesses.writes[target.name]) == 1:
                faithful = value != statement.equation.value
                found.append(Copy(statement.path, target.name, array.name, faithful))
    return tuple(found)
