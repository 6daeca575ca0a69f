"""Normalisations: statistics per row or group, then one nest that normalises and scales."""

import math
from typing import Final

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.builder import Element
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


def _scaled(op: Call, normal: Element, weight: Element | None, bias: Element | None) -> Value:
    """``normal*weight+bias``, the result of a norm; without parameters ``normal`` itself."""
    if weight is not None or bias is not None:
        normal = op.builder.step(op.shape, op.accumulator, normal)

    def element(*c: Coord) -> Expr:
        scaled = normal(*c) if weight is None else mul(normal(*c), weight(*c))
        return scaled if bias is None else add(scaled, bias(*c))

    return op.builder.compute(op.shape, op.dtype, element)


def _deviations(op: Call, x: Value, mean: Element) -> Element:
    """``x-mean``; with coordinates of ``x``."""
    return op.builder.step(x.shape, op.accumulator, lambda *c: sub(x(*c), mean(*c)))


def _at(parameter: Value | None, *axes: int) -> Element | None:
    """A parameter that may be missing, read with coordinates of the operand."""
    return None if parameter is None else lambda *c: parameter(*(c[i] for i in axes))


def _layer_norm(
    op: Call, x: Value, axes: tuple[int, ...], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    count = math.prod(x.shape[i] for i in axes)
    mean, squares = centred_squares(op, x, axes)
    scale = _inverse_root(op, squares, count, eps)
    centre, factor = rows_of(mean, axes), rows_of(scale, axes)

    away = _deviations(op, x, centre)

    def normal(*c: Coord) -> Expr:
        return mul(away(*c), factor(*c))

    return _scaled(op, normal, _at(weight, *axes), _at(bias, *axes)), mean, scale


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
    return _scaled(op, lambda *c: mul(x(*c), factor(*c)), _at(weight, *axes), None)


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

    away = _deviations(op, x, lambda *c: mean(c[0], c[1] // size))

    def normal(*c: Coord) -> Expr:
        return mul(away(*c), scale(c[0], c[1] // size))

    return _scaled(op, normal, _at(weight, 1), _at(bias, 1))


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
    root = op.builder.step(
        variance.shape,
        op.accumulator,
        lambda c: call("sqrt", add(variance(c), literal(eps))),
    )
    away = _deviations(op, x, lambda *c: mean(c[1]))

    def normal(*c: Coord) -> Expr:
        return div(away(*c), root(c[1]))

    return (_scaled(op, normal, _at(weight, 1), _at(bias, 1)),)


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

    away = _deviations(op, x, lambda *c: mean(c[1]))

    def normal(*c: Coord) -> Expr:
        return mul(away(*c), scale(c[1]))

    return (_scaled(op, normal, _at(weight, 1), _at(bias, 1)), mean, scale)


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
