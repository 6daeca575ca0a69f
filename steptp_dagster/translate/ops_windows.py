"""Convolutions, pools and padding."""

import math
from functools import reduce

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords, flattened
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_reduce import largest, smallest
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
    if x.rank != rank + 2:
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
    """The maximum of each window, and where in the input it first occurs; padding holds -inf."""
    rank = 2 if "2d" in op.name else 3
    windows = _pool_windows(per_dimension(kernel, rank), stride, padding, dilation)
    lead = x.rank - rank
    source = padded(op, x, windows, op.shape[lead:], NEGATIVE_INFINITY)

    def element(coords: Coords, taps: Coords) -> Expr:
        places = zip(windows, coords[lead:], taps, strict=True)
        return source(*coords[:lead], *(w.position(p, t) for w, p, t in places))

    extents = tuple(w.taps for w in windows)
    top = op.builder.reduce(op.shape, x.dtype, extents, largest, element)
    if 1 not in op.used:
        return (top,)

    def position(coords: Coords, taps: Coords) -> Expr:
        places = zip(windows, coords[lead:], taps, strict=True)
        at = tuple(w.position(p, t) - w.before for w, p, t in places)
        tests = [inside(c, n) for c, n in zip(at, x.shape[lead:], strict=True)]
        return _first_at(x, (*coords[:lead], *at), lead, top(*coords), tests)

    return top, op.builder.reduce(op.shape, "i64", extents, smallest, position)


def _first_at(x: Value, at: Coords, lead: int, top: Expr, tests: list[Expr | None]) -> Expr:
    """The flattened position where it holds the maximum (and passes tests), else one too large."""
    sides = x.shape[lead:]
    beyond = literal(math.prod(sides))
    here = flattened(at[lead:], sides).to_expr()
    found = choose(compare(x(*at), "==", top), here, beyond)
    condition = conjunction([t for t in tests if t is not None])
    return found if condition is None else choose(condition, found, beyond)


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


def _adaptive_window(
    x: Value, shape: tuple[int, ...], lead: int, coords: Coords, taps: Coords
) -> tuple[Coords, list[Expr]]:
    """Where a tap of window ``i*n//m .. ceil((i+1)*n/m)`` lies, and when it belongs to it."""
    at: list[Coord] = []
    tests: list[Expr] = []
    for n, m, place, tap in zip(x.shape[lead:], shape[lead:], coords[lead:], taps, strict=True):
        position = (place * n) // m + tap
        end = (place * n + (n + m - 1)) // m
        if n % m:
            tests.append(compare(position.to_expr(), "<", end.to_expr()))
        at.append(position)
    return (*coords[:lead], *at), tests


def _adaptive(op: Call, x: Value, rank: int, dtype: str, largest_of: bool) -> Value:
    """Reduce windows of the last dimensions: sums or maxima."""
    lead = x.rank - rank
    extents = _adaptive_extents(op, x, lead)

    def element(coords: Coords, taps: Coords) -> Expr:
        at, tests = _adaptive_window(x, op.shape, lead, coords, taps)
        read = x(*at)
        condition = conjunction(tests)
        filler = NEGATIVE_INFINITY if largest_of else ZERO
        return read if condition is None else choose(condition, read, filler)

    return op.builder.reduce(op.shape, dtype, extents, largest if largest_of else add, element)


def _adaptive_extents(op: Call, x: Value, lead: int) -> tuple[int, ...]:
    return tuple(_widest(n, m) for n, m in zip(x.shape[lead:], op.shape[lead:], strict=True))


def _widest(n: int, m: int) -> int:
    """The most positions that one of ``m`` adaptive windows over ``n`` positions has."""
    return max(-(-(i + 1) * n // m) - i * n // m for i in range(m))


@operator("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
def adaptive_avg_pool(op: Call, x: Value, _size: list[int]) -> Value:
    """Means over as many windows as the result has positions."""
    rank = 2 if "2d" in op.name else 3
    lead = x.rank - rank
    total = _adaptive(op, x, rank, op.accumulator, False)

    def mean(*c: Coord) -> Expr:
        counts: list[Expr] = []
        fixed = 1
        for n, m, place in zip(x.shape[lead:], op.shape[lead:], c[lead:], strict=True):
            if n % m:
                length = (place * n + (n + m - 1)) // m - (place * n) // m
                counts.append(length.to_expr())
            else:
                fixed *= n // m
        if fixed != 1 or not counts:
            counts.append(literal(fixed))
        return div(total(*c), reduce(mul, counts))

    return op.builder.compute(op.shape, op.dtype, mean)


@operator("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(op: Call, x: Value, _size: list[int]) -> tuple[Value, ...]:
    """Maxima over as many windows as the result has positions, and where they first occur."""
    rank = 2 if "2d" in op.name else 3
    top = _adaptive(op, x, rank, x.dtype, True)
    if 1 not in op.used:
        return (top,)
    lead = x.rank - rank

    def position(coords: Coords, taps: Coords) -> Expr:
        at, tests = _adaptive_window(x, op.shape, lead, coords, taps)
        return _first_at(x, at, lead, top(*coords), [*tests])

    extents = _adaptive_extents(op, x, lead)
    return top, op.builder.reduce(op.shape, "i64", extents, smallest, position)


@operator(
    *(f"aten.{kind}_pad{rank}d.default" for kind in ("reflection", "replication") for rank in "123")
)
def bordered(op: Call, x: Value, pad: list[int]) -> Value:
    """A tensor continued beyond its borders by its mirror image or its last elements."""
    if min(pad) < 0:
        raise Unsupported("padding", "a negative amount; slices do")
    mirrored = "reflection" in op.name
    for i, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        if before or after:
            x = _continued(op, x, x.rank - 1 - i, before, after, mirrored)
    return op.builder.store(x)


@operator("aten._pad_circular.default")
def circular(_op: Call, x: Value, pad: list[int]) -> Value:
    """A tensor that starts again beyond its borders: a view."""
    lead = x.rank - len(pad) // 2
    before = (*[0] * lead, *pad[::2][::-1])
    after = (*[0] * lead, *pad[1::2][::-1])
    shape = tuple(a + n + b for a, n, b in zip(before, x.shape, after, strict=True))

    def back(coords: Coords) -> Coords:
        turned = zip(coords, before, x.shape, strict=True)
        return tuple((c + (-b) % n) % n for c, b, n in turned)

    return x.view(shape, back)


def _continued(op: Call, x: Value, dim: int, before: int, after: int, mirrored: bool) -> Value:
    n = x.shape[dim]

    def element(*c: Coord) -> Expr:
        def at(place: Coord) -> Expr:
            return x(*c[:dim], place, *c[dim + 1 :])

        here = c[dim] - before
        value = at(here)
        if after:
            beyond = at(-here + 2 * (n - 1) if mirrored else Coord((), n - 1))
            value = choose(compare(c[dim].to_expr(), "<", literal(before + n)), value, beyond)
        if before:
            ahead = at(-here if mirrored else Coord())
            value = choose(compare(c[dim].to_expr(), "<", literal(before)), ahead, value)
        return value

    shape = (*x.shape[:dim], before + n + after, *x.shape[dim + 1 :])
    return op.builder.compute(shape, x.dtype, element)


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
    parts = [p for p in parts if 0 not in p.shape]
    at = dim % len(op.shape)
    new = op.builder.tensor(op.shape, op.dtype)
    start = 0
    for part in parts:
        op.builder.write_part(new, part, at, start)
        start += part.shape[at]
    return new
