"""Patches of images as columns, columns put together to images, and pools undone."""

from math import prod

from steptp_dagster.leir.ast import Compare, Expr
from steptp_dagster.translate.coords import Coord, Coords, flattened, reshaped
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.ops_reduce import largest
from steptp_dagster.translate.scalars import (
    ZERO,
    add,
    choose,
    compare,
    conjunction,
    literal,
)
from steptp_dagster.translate.values import Value
from steptp_dagster.translate.windows import Window, inside, padded, per_dimension


def _windows(
    kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> list[Window]:
    rank = len(kernel)
    parts = (per_dimension(x, rank) for x in (stride, padding, dilation))
    return [Window(*part) for part in zip(kernel, *parts, strict=True)]


def _places(windows: list[Window], extents: tuple[int, ...]) -> tuple[int, ...]:
    """How many positions the windows have on each side."""
    sides = zip(windows, extents, strict=True)
    return tuple(
        (n + 2 * w.before - w.dilation * (w.taps - 1) - 1) // w.stride + 1 for w, n in sides
    )


@operator("aten.im2col.default")
def im2col(
    op: Call,
    x: Value,
    kernel: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Value:
    """Every window as a column: a view of the padded image."""
    windows = _windows(kernel, dilation, padding, stride)
    places = _places(windows, x.shape[-2:])
    source = padded(op, x, windows, places, ZERO)
    full = (*x.shape[:-2], *kernel, *places)

    def back(coords: Coords) -> Coords:
        *lead, i, j, p, q = reshaped(coords, op.shape, full)
        at = (w.position(*pt) for w, pt in zip(windows, ((p, i), (q, j)), strict=True))
        return (*lead, *at)

    return source.view(op.shape, back)


@operator("aten.col2im.default")
def col2im(
    op: Call,
    x: Value,
    size: list[int],
    kernel: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Value:
    """The image whose elements are the sums over the windows that hold them."""
    windows = _windows(kernel, dilation, padding, stride)
    places = _places(windows, (size[0], size[1]))
    full = (*op.shape[:-2], *kernel, *places)
    columns = x.view(full, lambda c: reshaped(c, full, x.shape))

    def element(coords: Coords, taps: Coords) -> Expr:
        *lead, row, column = coords
        at: list[Coord] = []
        tests: list[Expr] = []
        sides = zip(windows, (row, column), taps, places, strict=True)
        for w, position, tap, count in sides:
            spread = position + w.before - tap * w.dilation
            place, rest = spread // w.stride, spread % w.stride
            if (rest.low, rest.high) != (0, 0):
                tests.append(compare(rest.to_expr(), "==", ZERO))
            within = inside(place, count)
            if within is not None:
                tests.append(within)
            at.append(place)
        term = columns(*lead, *taps, *at)
        condition = conjunction(tests)
        return term if condition is None else choose(condition, term, ZERO)

    total = op.builder.reduce(op.shape, op.accumulator, tuple(kernel), add, element)
    return op.builder.store(total, op.dtype)


@operator("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def max_unpool(op: Call, x: Value, indices: Value, *_sizes: list[int]) -> Value:
    """Elements put where their indices say, zeros elsewhere; of several the last one stays."""
    rank = 2 if "2d" in op.name else 3
    lead = x.rank - rank
    sides = x.shape[lead:]
    count = prod(sides)
    shape = (*x.shape[:lead], count)
    values, at = (v.view(shape, lambda c: reshaped(c, shape, x.shape)) for v in (x, indices))

    def source(coords: Coords, taps: Coords) -> Expr:
        here = flattened(coords[lead:], op.shape[lead:])
        hit = compare(at(*coords[:lead], *taps), "==", here.to_expr())
        return choose(hit, taps[0].to_expr(), literal(-1))

    origin = op.builder.reduce(op.shape, "i64", (count,), largest, source)

    def element(*c: Coord) -> Expr:
        from_ = origin(*c)
        known = Compare((ZERO, from_, literal(count)), ("<=", "<"))
        return choose(known, values(*c[:lead], Coord.axis(from_, count)), ZERO)

    return op.builder.compute(op.shape, op.dtype, element)
