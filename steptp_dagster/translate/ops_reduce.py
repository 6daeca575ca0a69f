"""Reductions: a nest that accumulates, and where it is needed one that finishes."""

import math
from collections.abc import Callable

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, axis, operator
from steptp_dagster.translate.ops_elementwise import floating, truth
from steptp_dagster.translate.scalars import (
    ONE,
    ZERO,
    Scalar,
    add,
    choose,
    compare,
    div,
    literal,
    mul,
    power,
    sub,
)
from steptp_dagster.translate.scalars import (
    call as apply,
)
from steptp_dagster.translate.values import Value

Combine = Callable[[Expr, Expr], Expr]
Point = Callable[..., Expr]


def largest(a: Expr, b: Expr) -> Expr:
    """``max(a,b)``."""
    return apply("max", a, b)


def smallest(a: Expr, b: Expr) -> Expr:
    """``min(a,b)``."""
    return apply("min", a, b)


def reduced_axes(rank: int, dims: int | list[int] | None) -> tuple[int, ...]:
    """The reduced dimensions in order: all of them for None or an empty list."""
    if dims is None or dims == []:
        return tuple(range(rank))
    listed = [dims] if isinstance(dims, int) else dims
    return tuple(sorted({axis(d, rank) for d in listed})) if rank else ()


def joined(rank: int, axes: tuple[int, ...], kept: Coords, taps: Coords) -> Coords:
    """Coordinates in the operand from those of the result and of the reduction loops.

    ``kept`` has one entry per dimension of the operand (reduced dimensions kept) or one per
    dimension that is not reduced.
    """
    inner = dict(zip(axes, taps, strict=True))
    if len(kept) == rank:
        return tuple(inner.get(i, c) for i, c in enumerate(kept))
    rest = iter(kept)
    return tuple(inner[i] if i in inner else next(rest) for i in range(rank))


def accumulate(
    op: Call,
    shape: tuple[int, ...],
    dtype: str,
    source: tuple[int, ...],
    axes: tuple[int, ...],
    combine: Combine,
    point: Point,
) -> Value:
    """Reduce ``point(*coords)`` over ``axes`` of a ``source``-shaped space."""
    extents = tuple(source[i] for i in axes)

    def element(coords: Coords, taps: Coords) -> Expr:
        return point(*joined(len(source), axes, coords, taps))

    return op.builder.reduce(shape, dtype, extents, combine, element)


def over_rows(x: Value, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a per-row statistic: ``x``'s with the reduced dimensions left out."""
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


def rows_of(statistic: Value, axes: tuple[int, ...]) -> Point:
    """Read a per-row statistic with coordinates of the full operand."""
    return lambda *c: statistic(*(k for i, k in enumerate(c) if i not in axes))


def _simple(op: Call, x: Value, dims: int | list[int] | None, combine: Combine) -> Value:
    axes = reduced_axes(x.rank, dims)
    total = accumulate(op, op.shape, op.accumulator, x.shape, axes, combine, x)
    return op.builder.store(total, op.dtype)


@operator("aten.sum.dim_IntList")
def sum_dims(op: Call, x: Value, dims: list[int] | None, _keepdim: bool, _dtype: object) -> Value:
    """The sum over dimensions."""
    return _simple(op, floating(op, x), dims, add)


@operator("aten.sum.default")
def sum_all(op: Call, x: Value, _dtype: object) -> Value:
    """The sum of all elements."""
    return _simple(op, floating(op, x), None, add)


@operator("aten.prod.dim_int")
def prod_dim(op: Call, x: Value, dim: int, _keepdim: bool, _dtype: object) -> Value:
    """The product over a dimension."""
    return _simple(op, floating(op, x), dim, mul)


@operator("aten.prod.default")
def prod_all(op: Call, x: Value, _dtype: object) -> Value:
    """The product of all elements."""
    return _simple(op, floating(op, x), None, mul)


@operator("aten.mean.dim")
def mean_dims(op: Call, x: Value, dims: list[int] | None, _keepdim: bool, _dtype: object) -> Value:
    """The mean over dimensions: the sum, then a division."""
    axes = reduced_axes(x.rank, dims)
    count = math.prod(x.shape[i] for i in axes)
    total = accumulate(op, op.shape, op.accumulator, x.shape, axes, add, floating(op, x))
    return op.builder.compute(op.shape, op.dtype, lambda *c: div(total(*c), literal(count)))


@operator("aten.mean.default")
def mean_all(op: Call, x: Value, _dtype: object) -> Value:
    """The mean of all elements."""
    return mean_dims(op, x, None, False, None)


def _extreme(op: Call, x: Value, dims: int | list[int] | None, combine: Combine) -> Value:
    """A maximum or minimum: exact in the type of its operand, so it needs no wider accumulator."""
    axes = reduced_axes(x.rank, dims)
    if x.dtype == "bool":
        if op.dtype != "bool":
            raise Unsupported("self", "positions of bools; those of numbers do (x.int())")
        return _truths(op, x, dims, combine)
    return accumulate(op, op.shape, x.dtype, x.shape, axes, combine, x)


@operator("aten.amax.default")
def amax(op: Call, x: Value, dims: list[int], _keepdim: bool) -> Value:
    """The maximum over dimensions."""
    return _extreme(op, x, dims, largest)


@operator("aten.amin.default")
def amin(op: Call, x: Value, dims: list[int], _keepdim: bool) -> Value:
    """The minimum over dimensions."""
    return _extreme(op, x, dims, smallest)


@operator("aten.max.default")
def max_all(op: Call, x: Value) -> Value:
    """The maximum of all elements."""
    return _extreme(op, x, None, largest)


@operator("aten.min.default")
def min_all(op: Call, x: Value) -> Value:
    """The minimum of all elements."""
    return _extreme(op, x, None, smallest)


def _position(op: Call, x: Value, extreme: Value, axes: tuple[int, ...]) -> Value:
    """The first flattened position, along ``axes``, at which ``x`` has its extreme value."""
    last = math.prod(x.shape[i] for i in axes) - 1

    def element(coords: Coords, taps: Coords) -> Expr:
        at = joined(x.rank, axes, coords, taps)
        flat = Coord()
        for i, tap in zip(axes, taps, strict=True):
            flat = flat * x.shape[i] + tap
        hit = compare(x(*at), "==", extreme(*coords))
        return choose(hit, flat.to_expr(), literal(last))

    extents = tuple(x.shape[i] for i in axes)
    return op.builder.reduce(extreme.shape, "i64", extents, smallest, element)


def _both(op: Call, x: Value, dim: int, combine: Combine) -> tuple[Value, ...]:
    extreme = _extreme(op, x, dim, combine)
    if 1 not in op.used:
        return (extreme,)
    return extreme, _position(op, x, extreme, reduced_axes(x.rank, dim))


@operator("aten.max.dim")
def max_dim(op: Call, x: Value, dim: int, _keepdim: bool) -> tuple[Value, ...]:
    """The maximum over a dimension and where it first occurs."""
    return _both(op, x, dim, largest)


@operator("aten.min.dim")
def min_dim(op: Call, x: Value, dim: int, _keepdim: bool) -> tuple[Value, ...]:
    """The minimum over a dimension and where it first occurs."""
    return _both(op, x, dim, smallest)


@operator("aten.argmax.default")
def argmax(op: Call, x: Value, dim: int | None, _keepdim: bool) -> Value:
    """Where the maximum first occurs."""
    return _both_at(op, x, dim, largest)


@operator("aten.argmin.default")
def argmin(op: Call, x: Value, dim: int | None, _keepdim: bool) -> Value:
    """Where the minimum first occurs."""
    return _both_at(op, x, dim, smallest)


def _both_at(op: Call, x: Value, dim: int | None, combine: Combine) -> Value:
    extreme = _extreme(op, x, dim, combine)
    return _position(op, x, extreme, reduced_axes(x.rank, dim))


@operator("aten.any.dim", "aten.any.dims", "aten.any.default")
def any_(op: Call, x: Value, dims: int | list[int] | None = None, _keepdim: bool = False) -> Value:
    """Whether some element is non-zero: the maximum of the truth values."""
    return _truths(op, x, dims, largest)


@operator("aten.all.dim", "aten.all.dims", "aten.all.default")
def all_(op: Call, x: Value, dims: int | list[int] | None = None, _keepdim: bool = False) -> Value:
    """Whether all elements are non-zero: the minimum of the truth values."""
    return _truths(op, x, dims, smallest)


def _truths(op: Call, x: Value, dims: int | list[int] | None, combine: Combine) -> Value:
    holds = truth(x)

    def point(*c: Coord) -> Expr:
        return choose(holds(*c), ONE, ZERO)

    axes = reduced_axes(x.rank, dims)
    count = accumulate(op, op.shape, "i32", x.shape, axes, combine, point)
    return op.builder.compute(op.shape, op.dtype, lambda *c: compare(count(*c), "!=", ZERO))


def centred_squares(op: Call, x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """The mean per row and the sum of squared deviations from it (three nests)."""
    count = math.prod(x.shape[i] for i in axes)
    rows = over_rows(x, axes)
    kind = op.accumulator
    total = accumulate(op, rows, kind, x.shape, axes, add, x)
    mean = op.builder.compute(rows, kind, lambda *c: div(total(*c), literal(count)))
    centre = rows_of(mean, axes)
    squares = accumulate(
        op, rows, kind, x.shape, axes, add, lambda *c: power(sub(x(*c), centre(*c)), 2)
    )
    return mean, squares


def _variance(
    op: Call, x: Value, dims: list[int] | None, correction: Scalar | None, root: bool
) -> Value:
    axes = reduced_axes(x.rank, dims)
    count = math.prod(x.shape[i] for i in axes)
    freedom = count - (1 if correction is None else correction)
    if freedom <= 0:
        raise Unsupported("correction", f"{count} values leave no degree of freedom")
    _, squares = centred_squares(op, x, axes)
    kept = len(op.shape) == x.rank

    def element(*c: Coord) -> Expr:
        at = tuple(k for i, k in enumerate(c) if i not in axes) if kept else c
        variance = div(squares(*at), literal(freedom))
        return apply("sqrt", variance) if root else variance

    return op.builder.compute(op.shape, op.dtype, element)


@operator("aten.var.correction")
def var(
    op: Call, x: Value, dims: list[int] | None, correction: Scalar | None, _keep: bool
) -> Value:
    """The variance: mean, squared deviations, division."""
    return _variance(op, x, dims, correction, False)


@operator("aten.std.correction")
def std(
    op: Call, x: Value, dims: list[int] | None, correction: Scalar | None, _keep: bool
) -> Value:
    """The standard deviation."""
    return _variance(op, x, dims, correction, True)


@operator("aten.var_mean.correction")
def var_mean(
    op: Call, x: Value, dims: list[int] | None, correction: Scalar | None, _keep: bool
) -> tuple[Value, Value]:
    """The variance, and the mean that it takes."""
    return _variance(op, x, dims, correction, False), mean_dims(op, x, dims, False, None)


@operator("aten.linalg_vector_norm.default")
def vector_norm(
    op: Call, x: Value, ord_: Scalar, dims: list[int] | None, _keepdim: bool, _dtype: object
) -> Value:
    """The 0, 1, 2, inf, -inf or p norm."""
    axes = reduced_axes(x.rank, dims)

    def total(combine: Combine, point: Callable[[Expr], Expr]) -> Value:
        return accumulate(
            op, op.shape, op.accumulator, x.shape, axes, combine, lambda *c: point(x(*c))
        )

    if ord_ in (math.inf, -math.inf):
        combine = largest if ord_ > 0 else smallest
        return op.builder.store(total(combine, lambda e: apply("abs", e)), op.dtype)
    if ord_ == 0:
        some = total(add, lambda e: choose(compare(e, "!=", ZERO), ONE, ZERO))
        return op.builder.store(some, op.dtype)
    if ord_ == 1:
        return op.builder.store(total(add, lambda e: apply("abs", e)), op.dtype)
    if ord_ == 2:
        squares = total(add, lambda e: power(e, 2))
        return op.builder.compute(op.shape, op.dtype, lambda *c: apply("sqrt", squares(*c)))
    powers = total(add, lambda e: power(apply("abs", e), ord_))
    return op.builder.compute(op.shape, op.dtype, lambda *c: power(powers(*c), 1 / ord_))
