"""Softmax and its relatives: the maximum of a row is taken out before any exponential."""

from steptp_dagster.leir.ast import Expr, Inf
from steptp_dagster.translate.coords import Coord
from steptp_dagster.translate.operators import Call, axis, operator
from steptp_dagster.translate.ops_reduce import (
    Point,
    accumulate,
    joined,
    largest,
    over_rows,
    reduced_axes,
    rows_of,
)
from steptp_dagster.translate.scalars import ZERO, add, choose, compare, div, sub
from steptp_dagster.translate.scalars import call as apply
from steptp_dagster.translate.values import Value


@operator("aten.logsumexp.default")
def logsumexp(op: Call, x: Value, dims: list[int], _keepdim: bool) -> Value:
    """``log(sum(exp(x)))`` with the maximum taken out first; an infinite maximum counts as 0."""
    axes = reduced_axes(x.rank, dims)
    rows = over_rows(x, axes)
    top = accumulate(op, rows, op.accumulator, x.shape, axes, largest, x)

    def finite(*c: Coord) -> Expr:
        return choose(compare(apply("abs", top(*c)), "==", Inf()), ZERO, top(*c))

    shift = rows_of(op.builder.compute(rows, op.accumulator, finite), axes)
    total = accumulate(
        op,
        rows,
        op.accumulator,
        x.shape,
        axes,
        add,
        lambda *c: apply("exp", sub(x(*c), shift(*c))),
    )
    kept = len(op.shape) == x.rank

    def element(*c: Coord) -> Expr:
        at = tuple(k for i, k in enumerate(c) if i not in axes) if kept else c
        full = joined(x.rank, axes, at, tuple(Coord() for _ in axes))
        return add(apply("log", total(*at)), shift(*full))

    return op.builder.compute(op.shape, op.dtype, element)


def row_max_and_sum(op: Call, x: Value, dim: int) -> tuple[Point, Point]:
    """The two statistics of a softmax: the row's maximum and the sum of its exponentials."""
    axes = (axis(dim, x.rank),) if x.rank else ()
    rows = over_rows(x, axes)
    top = accumulate(op, rows, op.accumulator, x.shape, axes, largest, x)
    at_row = rows_of(top, axes)
    total = accumulate(
        op,
        rows,
        op.accumulator,
        x.shape,
        axes,
        add,
        lambda *c: apply("exp", sub(x(*c), at_row(*c))),
    )
    return at_row, rows_of(total, axes)


@operator("aten._softmax.default")
def softmax(op: Call, x: Value, dim: int, _half_to_float: bool) -> Value:
    """Row maximum, sum of shifted exponentials, quotient."""
    top, total = row_max_and_sum(op, x, dim)
    return op.builder.compute(
        op.shape,
        op.dtype,
        lambda *c: div(apply("exp", sub(x(*c), top(*c))), total(*c)),
    )


@operator("aten._log_softmax.default")
def log_softmax(op: Call, x: Value, dim: int, _half_to_float: bool) -> Value:
    """Row maximum, sum of shifted exponentials, ``x-max-log(sum)``."""
    top, total = row_max_and_sum(op, x, dim)
    return op.builder.compute(
        op.shape,
        op.dtype,
        lambda *c: sub(sub(x(*c), top(*c)), apply("log", total(*c))),
    )
