"""Convolutions, pools and padding."""

import math
from functools import reduce

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_reduce import largest
from steptp_dagster.translate.scalars import (
    NEGATIVE_INFINITY,
    ZERO,
    Scalar,
    add,
    call,
    choose,
    compare,
    conjunction,
    div,
    literal,
    mul,
    sub,
)
from steptp_dagster.translate.values import Value
from steptp_dagster.translate.windows import Window, guarded, inside, padded, per_dimension


@operator("aten.convolution.default")
def convolution(
    op: Call,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    _output_padding: list[int],
    groups: int,
) -> Value:
    """A convolution over 1 to 3 spatial dimensions: a padding nest, a product nest, the bias."""
    rank = weight.rank - 2
    batched = x.rank == rank + 2
    if not batched:
        raise Unsupported("input", "an input without batch dimension; add one")
    parts = zip(
        weight.shape[2:],
        per_dimension(stride, rank),
        per_dimension(padding, rank),
        per_dimension(dilation, rank),
        strict=True,
    )
    windows = [Window(*part) for part in parts]
    total = (_scattered if transposed else _gathered)(op, x, weight, windows, groups)
    if bias is None:
        return op.builder.store(total, op.dtype)
    return op.builder.compute(op.shape, op.dtype, lambda *c: add(total(*c), bias(c[1])))


def _gathered(op: Call, x: Value, weight: Value, windows: list[Window], groups: int) -> Value:
    """``sum(x[n, channel, window] * weight[o, channel, tap])``."""
    source = padded(op, x, windows, op.shape[2:], ZERO)
    channels, outs = weight.shape[1], weight.shape[0] // groups

    def element(coords: Coords, taps: Coords) -> Expr:
        batch, out, *places = coords
        channel, *inner = taps
        at = [w.position(p, t) for w, p, t in zip(windows, places, inner, strict=True)]
        of_group = (out // outs) * channels + channel
        return mul(source(batch, of_group, *at), weight(out, channel, *inner))

    extents = (channels, *weight.shape[2:])
    return op.builder.reduce(op.shape, op.accumulator, extents, add, element)


def _scattered(op: Call, x: Value, weight: Value, windows: list[Window], groups: int) -> Value:
    """A transposed convolution, read from the side of its results.

    Result position ``p`` receives tap ``t`` of input position ``(p + before - t*dilation)/stride``
    where that is whole and inside the input.
    """
    channels, outs = x.shape[1] // groups, weight.shape[1]

    def element(coords: Coords, taps: Coords) -> Expr:
        batch, out, *places = coords
        channel, *inner = taps
        tests: list[Expr] = []
        at: list[Coord] = []
        for w, p, t, n in zip(windows, places, inner, x.shape[2:], strict=True):
            spread = p - t * w.dilation + w.before
            source = spread // w.stride
            remainder = spread % w.stride
            if (remainder.low, remainder.high) != (0, 0):
                tests.append(compare(remainder.to_expr(), "==", ZERO))
            inner_test = inside(source, n)
            if inner_test is not None:
                tests.append(inner_test)
            at.append(source)
        of_group = (out // outs) * channels + channel
        term = mul(x(batch, of_group, *at), weight(of_group, out % outs, *inner))
        condition = conjunction(tests)
        return term if condition is None else choose(condition, term, ZERO)

    extents = (channels, *weight.shape[2:])
    return op.builder.reduce(op.shape, op.accumulator, extents, add, element)


def _pool_windows(
    kernel: list[int], stride: list[int], padding: list[int], dilation: list[int] | int
) -> list[Window]:
    rank = len(kernel)
    return [
        Window(*part)
        for part in zip(
            kernel,
            per_dimension(stride or kernel, rank),
            per_dimension(padding, rank),
            per_dimension(dilation, rank),
            strict=True,
        )
    ]


@operator("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(
    op: Call,
    x: Value,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    _ceil_mode: bool,
) -> tuple[Value, ...]:
    """The maximum of each window; padding holds -inf. Positions of the maxima are refused."""
    rank = 2 if "2d" in op.name else 3
    windows = _pool_windows(per_dimension(kernel, rank), stride, padding, dilation)
    lead = x.rank - rank
    source = padded(op, x, windows, op.shape[lead:], NEGATIVE_INFINITY)

    def element(coords: Coords, taps: Coords) -> Expr:
        places = zip(windows, coords[lead:], taps, strict=True)
        return source(*coords[:lead], *(w.position(p, t) for w, p, t in places))

    extents = tuple(w.taps for w in windows)
    return (op.builder.reduce(op.shape, x.dtype, extents, largest, element),)


@operator("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    op: Call,
    x: Value,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    _ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Value:
    """The mean of each window, over what the arguments count as belonging to it."""
    rank = int(op.name[len("aten.avg_pool")])
    windows = _pool_windows(per_dimension(kernel, rank), stride, padding, 1)
    lead = x.rank - rank
    source = padded(op, x, windows, op.shape[lead:], ZERO)

    def element(coords: Coords, taps: Coords) -> Expr:
        places = zip(windows, coords[lead:], taps, strict=True)
        return source(*coords[:lead], *(w.position(p, t) for w, p, t in places))

    extents = tuple(w.taps for w in windows)
    total = op.builder.reduce(op.shape, op.accumulator, extents, add, element)

    def mean(*c: Coord) -> Expr:
        if divisor_override:
            return div(total(*c), literal(divisor_override))
        counts = [
            _counted(w, p, n, count_include_pad)
            for w, p, n in zip(windows, c[lead:], x.shape[lead:], strict=True)
        ]
        fixed = math.prod(n for n in counts if isinstance(n, int))
        varying = [n for n in counts if not isinstance(n, int)]
        factors = [*varying, literal(fixed)] if fixed != 1 or not varying else varying
        return div(total(*c), reduce(mul, factors))

    return op.builder.compute(op.shape, op.dtype, mean)


def _counted(window: Window, place: Coord, extent: int, padding: bool) -> int | Expr:
    """How many positions of a window count: a number, or an expression at the borders."""
    low, high = (-window.before, extent + window.before) if padding else (0, extent)
    start = place * window.stride - window.before
    end = start + window.taps
    starts_late = start.low >= low
    ends_early = end.high <= high
    if starts_late and ends_early:
        return window.taps
    last = end.to_expr() if ends_early else call("min", end.to_expr(), literal(high))
    first = start.to_expr() if starts_late else call("max", start.to_expr(), literal(low))
    return sub(last, first)


@operator("aten.constant_pad_nd.default")
def constant_pad(op: Call, x: Value, pad: list[int], value: Scalar) -> Value:
    """Constant elements around a tensor; negative amounts cut off instead."""
    before = [0] * x.rank
    for i, amount in enumerate(pad[::2]):
        before[x.rank - 1 - i] = amount

    def element(*c: Coord) -> Expr:
        at = tuple(k - p for k, p in zip(c, before, strict=True))
        return guarded(x, at, literal(value))

    return op.builder.compute(op.shape, op.dtype, element)


@operator("aten.cat.default")
def cat(op: Call, parts: list[Value], dim: int = 0) -> Value:
    """Tensors one after the other along a dimension: one nest for each part."""
    parts = [p for p in parts if p.shape != (0,)]
    at = dim % len(op.shape)
    new = op.builder.tensor(op.shape, op.dtype)
    start = 0
    for part in parts:
        op.builder.write_part(new, part, at, start)
        start += part.shape[at]
    return new
