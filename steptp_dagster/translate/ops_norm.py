"""Normalisations: statistics per row or group, then one nest that normalises and scales."""

import math
from typing import Final

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.ops_reduce import centred_squares, over_rows, rows_of
from steptp_dagster.translate.scalars import ONE, add, call, div, literal, mul, sub
from steptp_dagster.translate.values import Value

#: Distance from 1 to the next number of an evaluation type.
EPSILONS: Final = {"f32": 2.0**-23, "f64": 2.0**-52}


def _inverse_root(op: Call, squares: Value, count: int, eps: float) -> Value:
    """``1/sqrt(squares/count+eps)`` per row."""

    def element(*c: Coord) -> Expr:
        variance = div(squares(*c), literal(count))
        return div(ONE, call("sqrt", add(variance, literal(eps))))

    return op.builder.compute(squares.shape, squares.dtype, element)


def _affine(x: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    scaled = x if weight is None else mul(x, weight)
    return scaled if bias is None else add(scaled, bias)


def at(parameter: Value | None, *coords: Coord) -> Expr | None:
    """An element of a parameter that may be missing."""
    return None if parameter is None else parameter(*coords)


def _layer_norm(
    op: Call, x: Value, axes: tuple[int, ...], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    count = math.prod(x.shape[i] for i in axes)
    mean, squares = centred_squares(op, x, axes)
    scale = _inverse_root(op, squares, count, eps)
    centre, factor = rows_of(mean, axes), rows_of(scale, axes)

    def element(*c: Coord) -> Expr:
        inner = tuple(c[i] for i in axes)
        return _affine(
            mul(sub(x(*c), centre(*c)), factor(*c)),
            at(weight, *inner),
            at(bias, *inner),
        )

    return op.builder.compute(x.shape, op.dtype, element), mean, scale


@operator("aten.layer_norm.default")
def layer_norm(
    op: Call,
    x: Value,
    shape: list[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
    _cudnn: bool,
) -> Value:
    """Normalisation over the last dimensions."""
    axes = tuple(range(x.rank - len(shape), x.rank))
    return _layer_norm(op, x, axes, weight, bias, eps)[0]


@operator("aten.native_layer_norm.default")
def native_layer_norm(
    op: Call, x: Value, shape: list[int], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, ...]:
    """Normalisation over the last dimensions, with mean and inverse deviation."""
    axes = tuple(range(x.rank - len(shape), x.rank))
    out, *statistics = _layer_norm(op, x, axes, weight, bias, eps)
    return (out, *(_kept(v, s) for v, s in zip(statistics, op.shapes[1:], strict=True)))


def _kept(statistic: Value, shape: tuple[int, ...]) -> Value:
    """A per-row statistic with its reduced dimensions back, of extent 1."""
    rank = statistic.rank
    return statistic.view(shape, lambda c: c[:rank])


@operator("aten.rms_norm.default")
def rms_norm(
    op: Call, x: Value, shape: list[int], weight: Value | None, eps: float | None
) -> Value:
    """Division by the root of the mean square over the last dimensions.

    Without ``eps`` it is the spacing of 1 in the type in which PyTorch evaluates.
    """
    axes = tuple(range(x.rank - len(shape), x.rank))
    count = math.prod(x.shape[i] for i in axes)
    if eps is None:
        eps = EPSILONS[x.evaluation]
    rows = over_rows(x, axes)

    def point(coords: Coords, taps: Coords) -> Expr:
        element = x(*coords, *taps)
        return mul(element, element)

    extents = tuple(x.shape[i] for i in axes)
    squares = op.builder.reduce(rows, op.accumulator, extents, add, point)
    factor = rows_of(_inverse_root(op, squares, count, eps), axes)
    return op.builder.compute(
        op.shape,
        op.dtype,
        lambda *c: _affine(mul(x(*c), factor(*c)), at(weight, *(c[i] for i in axes)), None),
    )


@operator("aten.group_norm.default")
def group_norm(
    op: Call,
    x: Value,
    groups: int,
    weight: Value | None,
    bias: Value | None,
    eps: float,
    _cudnn: bool,
) -> Value:
    """Normalisation over the channels of each group and all positions."""
    size = x.shape[1] // groups
    grouped = x.view(
        (x.shape[0], groups, size, *x.shape[2:]),
        lambda c: (c[0], c[1] * size + c[2], *c[3:]),
    )
    axes = tuple(range(2, grouped.rank))
    count = math.prod(grouped.shape[2:])
    mean, squares = centred_squares(op, grouped, axes)
    scale = _inverse_root(op, squares, count, eps)

    def element(*c: Coord) -> Expr:
        group = (c[0], c[1] // size)
        normal = mul(sub(x(*c), mean(*group)), scale(*group))
        return _affine(normal, at(weight, c[1]), at(bias, c[1]))

    return op.builder.compute(op.shape, op.dtype, element)


@operator("aten._native_batch_norm_legit_no_training.default")
def batch_norm(
    op: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    _momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """Normalisation per channel with the stored statistics."""

    def element(*c: Coord) -> Expr:
        channel = c[1]
        root = call("sqrt", add(variance(channel), literal(eps)))
        normal = div(sub(x(*c), mean(channel)), root)
        return _affine(normal, at(weight, channel), at(bias, channel))

    return (op.builder.compute(op.shape, op.dtype, element),)


@operator("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    op: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    _training: bool,
    _momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """Normalisation per channel with the statistics of the batch."""
    axes = (0, *range(2, x.rank))
    count = math.prod(x.shape[i] for i in axes)
    mean, squares = centred_squares(op, x, axes)
    scale = _inverse_root(op, squares, count, eps)

    def element(*c: Coord) -> Expr:
        channel = c[1]
        normal = mul(sub(x(*c), mean(channel)), scale(channel))
        return _affine(normal, at(weight, channel), at(bias, channel))

    return (op.builder.compute(op.shape, op.dtype, element), mean, scale)


@operator("aten._native_batch_norm_legit_functional.default")
def batch_norm_in_training(
    op: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    _mean: Value,
    _variance: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    """Normalisation per channel with the statistics of the batch; running ones are not updated."""
    return batch_norm_of_batch(op, x, weight, bias, training, momentum, eps)
