"""Sampling an image at computed positions (``grid_sample``)."""

from itertools import product

from steptp_dagster.leir.ast import Compare, Expr
from steptp_dagster.translate.coords import Coord
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_index import place
from steptp_dagster.translate.scalars import (
    ONE,
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

_LINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1


@operator("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(op: Call, x: Value, grid: Value, mode: int, padding: int, corners: bool) -> Value:
    """Between the elements around each position of the grid, or the nearest one.

    Three steps: positions in elements along each dimension, the elements left of them, and the
    weighted sum over the corners of the cell, each read only where it lies inside the image.
    """
    if mode not in (_LINEAR, _NEAREST):
        raise Unsupported("interpolation_mode", "bicubic sampling; bilinear and nearest do")
    extents = x.shape[2:]
    rank = len(extents)
    shape = (grid.shape[0], *grid.shape[1:-1])
    kind = op.accumulator
    step = "floor" if mode == _LINEAR else "round"
    positions, left = [], []
    for i, extent in enumerate(extents):
        # the grid names the last dimension of the image first
        at = grid.view(shape, lambda c, i=i: (*c, Coord((), rank - 1 - i)))  # type: ignore[misc]
        pixel = op.builder.compute(
            shape, kind, lambda *c, at=at, n=extent: _pixel(at(*c), n, padding, corners)
        )
        if padding not in (_ZEROS, _BORDER):
            pixel = _mirrored(op, pixel, extent, corners)
        first = op.builder.compute(shape, "i64", lambda *c, p=pixel: call(step, p(*c)))
        positions.append(pixel)
        left.append(first)

    def corner(c: tuple[Coord, ...], offsets: tuple[int, ...]) -> Expr:
        here = (c[0], *c[2:])
        tests: list[Expr] = []
        at: list[Coord] = []
        for first, extent, offset in zip(left, extents, offsets, strict=True):
            index = first(*here)
            shifted = add(index, literal(offset)) if offset else index
            tests.append(Compare((ZERO, shifted, literal(extent)), ("<=", "<")))
            at.append(place(shifted, extent))
        inside = conjunction(tests)
        assert inside is not None
        value = x(c[0], c[1], *at)
        for first, position, offset in zip(left, positions, offsets, strict=True):
            if mode == _LINEAR:
                rest = sub(position(*here), first(*here))
                value = mul(value, rest if offset else sub(ONE, rest))
        return choose(inside, value, ZERO)

    def element(*c: Coord) -> Expr:
        corners_of_cell = product((0, 1), repeat=rank) if mode == _LINEAR else [(0,) * rank]
        first, *others = (corner(c, offsets) for offsets in corners_of_cell)
        for other in others:
            first = add(first, other)
        return first

    return op.builder.compute(op.shape, op.dtype, element)


def _pixel(at: Expr, extent: int, padding: int, corners: bool) -> Expr:
    """A position from -1 .. 1 in elements; the border is kept where padding repeats it."""
    if corners:
        value = mul(div(add(at, ONE), literal(2)), literal(extent - 1))
    else:
        value = div(sub(mul(add(at, ONE), literal(extent)), ONE), literal(2))
    return _within(value, extent) if padding == _BORDER else value


def _within(value: Expr, extent: int) -> Expr:
    return call("min", call("max", value, ZERO), literal(extent - 1))


def _mirrored(op: Call, pixel: Value, extent: int, corners: bool) -> Value:
    """Positions outside the image as their mirror images inside."""
    low: Scalar = 0 if corners else -0.5
    span = extent - 1 if corners else extent
    if span == 0:
        return op.builder.compute(pixel.shape, pixel.dtype, lambda *_: ZERO)
    away = op.builder.compute(
        pixel.shape, pixel.dtype, lambda *c: call("abs", sub(pixel(*c), literal(low)))
    )

    def element(*c: Coord) -> Expr:
        turns = call("floor", div(away(*c), literal(span)))
        extra = sub(away(*c), mul(turns, literal(span)))
        halves = mul(literal(2), call("floor", div(turns, literal(2))))
        mirrored = choose(compare(turns, "==", halves), extra, sub(literal(span), extra))
        return _within(add(mirrored, literal(low)), extent)

    return op.builder.compute(pixel.shape, pixel.dtype, element)
