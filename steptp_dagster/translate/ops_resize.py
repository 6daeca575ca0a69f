"""Resizing: nearest, linear and cubic interpolation along the spatial dimensions.

A result position ``c`` lies at ``(c*factor + shift) / divisor`` of the source, with integers that
the sizes give. So the neighbours are quasi-affine subscripts and the weights exact fractions of
the loop index. Linear and cubic kinds take one dimension after the other, which is one nest each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any, Final

import torch

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.signature import Variable
from steptp_dagster.translate.builder import target
from steptp_dagster.translate.coords import Coord, Coords, constant
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_index import place
from steptp_dagster.translate.scalars import ONE, ZERO, add, choose, compare, div, literal, mul, sub
from steptp_dagster.translate.values import Value

#: Largest denominator of a scale that counts as an exact fraction of small integers.
_DENOMINATORS: Final = 4096
#: The parameter of PyTorch's cubic convolution kernel.
_CUBIC: Final = -0.75


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the positions of a result of ``out`` elements lie among ``size`` of the source."""

    size: int
    out: int
    factor: int
    shift: int
    divisor: int

    @property
    def idle(self) -> bool:
        """Whether the dimension stays as it is."""
        return self.size == self.out and self.factor == self.divisor and not self.shift

    def at(self, c: Coord) -> Coord:
        """The position times ``divisor``."""
        return c * self.factor + self.shift

    def rest(self, c: Coord) -> Expr:
        """How far the position lies behind its left neighbour: a fraction below 1."""
        return div((self.at(c) % self.divisor).to_expr(), literal(self.divisor))


def _ratio(size: int, out: int, by: float | None) -> Fraction:
    """The distance of neighbouring results in the source. Raises Unsupported for odd factors."""
    if by is None:
        return Fraction(size, out)
    exact = 1 / Fraction(by)
    near = exact.limit_denominator(_DENOMINATORS)
    if abs(near - exact) > Fraction(1, 10**14):
        raise Unsupported("scale_factors", f"a factor of {by}; simple fractions, or a size, do")
    return near


def _scale(size: int, out: int, by: float | None, corners: bool) -> Scale:
    if corners:
        factor, shift, divisor = (size - 1, 0, out - 1) if out > 1 else (0, 0, 1)
    else:
        ratio = _ratio(size, out, by)
        factor, divisor = 2 * ratio.numerator, 2 * ratio.denominator
        shift = ratio.numerator - ratio.denominator
    common = gcd(factor, shift, divisor)
    return Scale(size, out, factor // common, shift // common, divisor // common)


def _nearest(op: Call, x: Value, factors: Any, kind: str) -> Value:  # noqa: ANN401
    """A view; positions that single precision rounds off a simple formula come from a table."""
    lead = x.rank - len(op.shape[2:])
    pick = getattr(torch.ops.aten, f"{kind}1d").default
    by_dimension: list[Callable[[Coord], Coord]] = [lambda c: c] * lead
    for i, (size, out) in enumerate(zip(x.shape[lead:], op.shape[lead:], strict=True)):
        by = factors[i] if factors else None
        ramp = torch.arange(size, dtype=torch.float64)[None, None]
        exact = pick(ramp, [out], by)[0, 0].long().tolist()
        by_dimension.append(_position(op, exact, size, _guesses(size, out, by, "exact" in kind)))

    def back(coords: Coords) -> Coords:
        return tuple(f(c) for f, c in zip(by_dimension, coords, strict=True))

    return x.view(op.shape, back)


def _guesses(size: int, out: int, by: float | None, centred: bool) -> list[tuple[int, int, int]]:
    """Formulas ``(c*factor + shift) // divisor`` that positions usually follow."""
    ratios = [Fraction(size, out)]
    if by is not None:
        ratios.insert(0, (1 / Fraction(by)).limit_denominator(64))
    if centred:
        return [(2 * r.numerator, r.numerator, 2 * r.denominator) for r in ratios]
    return [(r.numerator, 0, r.denominator) for r in ratios]


def _position(
    op: Call, exact: list[int], size: int, guesses: list[tuple[int, int, int]]
) -> Callable[[Coord], Coord]:
    """The positions ``exact`` as a function of the result's."""
    for factor, shift, divisor in guesses:
        if exact == [(c * factor + shift) // divisor for c in range(len(exact))]:
            return lambda c: (c * factor + shift) // divisor

    def table(name: str) -> Variable:
        return Variable("const", name, "i64", (len(exact),), values=tuple(exact))

    positions = op.builder.declare(table)
    return lambda c: place(positions(c), size)


_RANKS: Final = ("1d", "2d", "3d")


@operator(*(f"aten.upsample_nearest{rank}.vec" for rank in _RANKS))
def upsample_nearest(op: Call, x: Value, _size: Any, factors: Any) -> Value:  # noqa: ANN401
    """The nearest source element to the left."""
    return _nearest(op, x, factors, "upsample_nearest")


@operator(*(f"aten._upsample_nearest_exact{rank}.vec" for rank in _RANKS))
def upsample_nearest_exact(op: Call, x: Value, _size: Any, factors: Any) -> Value:  # noqa: ANN401
    """The source element whose centre is nearest."""
    return _nearest(op, x, factors, "_upsample_nearest_exact")


def _along(
    op: Call,
    x: Value,
    corners: bool,
    factors: Any,  # noqa: ANN401 - a list of numbers or None
    step: Callable[[Call, Value, int, Scale, str], Value],
) -> Value:
    """Resize the spatial dimensions one by one, the last one first.

    Linear kinds leave a dimension alone that keeps its size, whatever the factor is.
    """
    if not x.is_float:
        raise Unsupported("input", f"elements of {x.dtype}; floats do")
    lead = 2
    scales = {
        lead + i: _scale(size, out, factors[i] if factors else None, corners)
        for i, (size, out) in enumerate(zip(x.shape[lead:], op.shape[lead:], strict=True))
    }
    left = [
        i
        for i, scale in scales.items()
        if not (scale.idle or (step is _linear and scale.size == scale.out))
    ]
    for dim in reversed(left):
        x = step(op, x, dim, scales[dim], op.dtype if dim == left[0] else op.accumulator)
    return x


@operator("aten.upsample_linear1d.vec", "aten.upsample_bilinear2d.vec")
@operator("aten.upsample_trilinear3d.vec")
def upsample_linear(op: Call, x: Value, _size: Any, corners: bool, factors: Any) -> Value:  # noqa: ANN401
    """Between the two neighbours; beyond the centres at the borders, the border element."""
    return _along(op, x, corners, factors, _linear)


@operator("aten.upsample_bicubic2d.vec")
def upsample_cubic(op: Call, x: Value, _size: Any, corners: bool, factors: Any) -> Value:  # noqa: ANN401
    """Through four neighbours; the border elements continue beyond the borders."""
    return _along(op, x, corners, factors, _cubic)


@operator("aten._upsample_bilinear2d_aa.vec", "aten._upsample_bicubic2d_aa.vec")
def upsample_smoothed(_op: Call, *_arguments: Any) -> Value:  # noqa: ANN401
    """Interpolation over a window that grows with the scale."""
    raise Unsupported("antialias", "filtered interpolation; antialias=False does")


def _replaced(coords: Coords, dim: int, at: Coord) -> Coords:
    return (*coords[:dim], at, *coords[dim + 1 :])


def _linear(op: Call, x: Value, dim: int, scale: Scale, dtype: str) -> Value:
    last = scale.size - 1

    def element(*c: Coord) -> Expr:
        at = scale.at(c[dim])
        left = at // scale.divisor

        def read(position: Coord) -> Expr:
            return x(*_replaced(c, dim, position))

        if scale.divisor == 1:
            value = read(left)
        else:
            rest = scale.rest(c[dim])
            value = add(mul(read(left), sub(ONE, rest)), mul(read(left + 1), rest))
        if left.high + (scale.divisor > 1) > last:
            value = choose(compare(left.to_expr(), "<", literal(last)), value, read(constant(last)))
        if at.low < 0:
            inside = compare((at - scale.shift).to_expr(), ">=", literal(-scale.shift))
            value = choose(inside, value, read(constant(0)))
        return value

    return op.builder.compute((*x.shape[:dim], scale.out, *x.shape[dim + 1 :]), dtype, element)


def _cubic(op: Call, x: Value, dim: int, scale: Scale, dtype: str) -> Value:
    """Weights of the four neighbours in a table of their own, then the sum."""
    weights = op.builder.tensor((4, scale.out), op.accumulator)

    def kernel(c: Coords, _: Coords) -> list[tuple[Access, Expr]]:
        rest = scale.rest(c[0])
        distances = (add(rest, ONE), rest, sub(ONE, rest), sub(literal(2), rest))
        shapes = (_outer, _inner, _inner, _outer)
        return [
            (target(weights, (constant(k), *c)), shape(distance))
            for k, (shape, distance) in enumerate(zip(shapes, distances, strict=True))
        ]

    op.builder.nest((scale.out,), (), kernel)
    last = scale.size - 1

    def element(*c: Coord) -> Expr:
        def neighbour(k: int) -> Expr:
            at = scale.at(c[dim]) // scale.divisor + (k - 1)
            value = x(*_replaced(c, dim, at))
            if at.high > last:
                inside = compare(at.to_expr(), "<", literal(last))
                value = choose(inside, value, x(*_replaced(c, dim, constant(last))))
            if at.low < 0:
                inside = compare(at.to_expr(), ">", ZERO)
                value = choose(inside, value, x(*_replaced(c, dim, constant(0))))
            return mul(value, weights(constant(k), c[dim]))

        total = neighbour(0)
        for k in range(1, 4):
            total = add(total, neighbour(k))
        return total

    return op.builder.compute((*x.shape[:dim], scale.out, *x.shape[dim + 1 :]), dtype, element)


def _inner(x: Expr) -> Expr:
    """The kernel at distances up to 1."""
    a = _CUBIC
    slope = sub(mul(literal(a + 2), x), literal(a + 3))
    return add(mul(mul(slope, x), x), ONE)


def _outer(x: Expr) -> Expr:
    """The kernel at distances from 1 to 2."""
    a = _CUBIC
    first = sub(mul(literal(a), x), literal(5 * a))
    second = add(mul(first, x), literal(8 * a))
    return sub(mul(second, x), literal(4 * a))
