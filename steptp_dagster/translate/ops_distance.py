"""Distances: p-norms of differences between rows."""

import math
from collections.abc import Callable

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coords
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.ops_reduce import largest
from steptp_dagster.translate.scalars import (
    ONE,
    ZERO,
    Scalar,
    add,
    choose,
    compare,
    power,
    sub,
)
from steptp_dagster.translate.scalars import call as apply
from steptp_dagster.translate.values import Value


def _norm(
    op: Call, p: Scalar, extents: tuple[int, ...], gap: Callable[[Coords, Coords], Expr]
) -> Value:
    """The p-norm over ``extents`` of the numbers that ``gap(coords, taps)`` gives."""

    def size(c: Coords, taps: Coords) -> Expr:
        return apply("abs", gap(c, taps))

    def total(element: Callable[[Coords, Coords], Expr]) -> Value:
        return op.builder.reduce(op.shape, op.accumulator, extents, add, element)

    if p == math.inf:
        top = op.builder.reduce(op.shape, op.accumulator, extents, largest, size)
        return op.builder.store(top, op.dtype)
    if p == 0:
        some = total(lambda c, t: choose(compare(gap(c, t), "!=", ZERO), ONE, ZERO))
        return op.builder.store(some, op.dtype)
    if p == 1:
        return op.builder.store(total(size), op.dtype)
    if p == 2:
        squares = total(lambda c, t: power(gap(c, t), 2))
        return op.builder.compute(op.shape, op.dtype, lambda *c: apply("sqrt", squares(*c)))
    powers = total(lambda c, t: power(size(c, t), p))
    return op.builder.compute(op.shape, op.dtype, lambda *c: power(powers(*c), 1 / p))


@operator("aten._cdist_forward.default")
def cdist(op: Call, x: Value, y: Value, p: Scalar, _mode: int | None) -> Value:
    """The p-norm of the difference of every two rows."""
    batch = op.shape[:-2]
    left = x.broadcast((*batch, *x.shape[-2:]))
    right = y.broadcast((*batch, *y.shape[-2:]))

    def gap(coords: Coords, taps: Coords) -> Expr:
        *here, row, column = coords
        return sub(left(*here, row, *taps), right(*here, column, *taps))

    return _norm(op, p, (x.shape[-1],), gap)


@operator("aten.dist.default")
def dist(op: Call, x: Value, y: Value, p: Scalar) -> Value:
    """The p-norm of a difference."""
    rank = max(x.rank, y.rank)
    wide = [(1,) * (rank - v.rank) + v.shape for v in (x, y)]
    shape = tuple(max(a, b) for a, b in zip(*wide, strict=True))
    left, right = x.broadcast(shape), y.broadcast(shape)
    return _norm(op, p, shape, lambda _, taps: sub(left(*taps), right(*taps)))
