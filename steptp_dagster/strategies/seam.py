"""Two images in one: the nests that take the place of two padded convolutions."""

from dataclasses import replace

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Statement,
)
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    fresh_indices,
    map_equation,
    map_expr,
    substitute,
)
from steptp_dagster.strategies.convolutions import Geometry, Padded, Pair, bounded
from steptp_dagster.strategies.naming import header_names, own_header
from steptp_dagster.strategies.reductions import in_place_of
from steptp_dagster.strategies.rewrite import affine_sum, map_indices
from steptp_dagster.strategies.twins import spatial


def together(
    program: SignedProgram, pair: Pair, axis: Geometry, names: tuple[str, str, str]
) -> tuple[Nest, ...]:
    """The nests that replace a pair: join, pad, convolve, cut out, and correct what differs.

    ``names`` are those of both images in one, of its padded copy, and of the result for it.
    """
    joined, padded, result = names
    nests = program.program.nests
    return (
        _joined(program, pair, axis, joined),
        _padded(nests[pair.first.pad], pair.first, axis, joined, padded),
        _convolved(nests[pair.first.conv], pair.first, axis, padded, result),
        _cut_out(pair, axis, result),
        *_corrections(program, pair, axis),
    )


def _joined(program: SignedProgram, pair: Pair, axis: Geometry, name: str) -> Nest:
    """Both images behind each other along the axis."""
    shape = infer_shapes(program)[pair.first.image.name]
    letters = fresh_indices(())
    loops = tuple(Loop("L", next(letters), extent) for extent in shape)
    indices = [loop.index for loop in loops]
    header = own_header(loops, indices)
    by = header_names(loops, indices, header)
    at: list[Expr] = [substitute(Index(index), by) for index in indices]
    further = list(at)
    further[axis.pixel] = affine_sum(at[axis.pixel], axis.length)
    image, other = pair.first.image, pair.second.image
    places = ((image, tuple(at)), (other, tuple(further)))
    return Nest(
        header,
        tuple(
            Equation(
                replace(image, name=name, subscripts=place), replace(one, subscripts=tuple(at))
            )
            for one, place in places
        ),
    )


def _padded(nest: Nest, one: Padded, axis: Geometry, image: str, name: str) -> Nest:
    """The padding nest for both images: longer by one of them, with its bound moved."""
    loops = tuple(
        replace(loop, extent=loop.extent + axis.length) if loop.index == axis.index else loop
        for loop in nest.loops
    )
    bound = bounded(one.copy, axis.index, axis.before, axis.length)
    if bound is None:
        raise ValueError("the axis is not bounded by the image")
    old, new = bound

    def visit(expr: Expr) -> Expr:
        if expr == old:
            return new
        if isinstance(expr, Access) and expr.name == one.image.name:
            return replace(expr, name=image)
        return replace(expr, name=name) if expr == one.copy.target else expr

    return Nest(loops, (map_equation(one.copy, lambda expr: map_expr(expr, visit)),))


def _convolved(nest: Nest, one: Padded, axis: Geometry, image: str, name: str) -> Nest:
    """The convolution over both images: as many outputs more as the second one starts later."""
    loops = tuple(
        replace(loop, extent=loop.extent + axis.shift) if loop == axis.output else loop
        for loop in nest.loops
    )
    equation = in_place_of(one.update, one.padded.name, replace(one.padded, name=image))
    target = equation.target
    equation = in_place_of(equation, target.name, replace(target, name=name))
    return Nest(loops, (equation,))


def _cut_out(pair: Pair, axis: Geometry, name: str) -> Nest:
    """The two results out of the one."""
    loops = spatial(pair.convs.loops, pair.first.update.target)
    here = pair.first.update.target
    there = _shifted(here, axis, axis.shift)
    return Nest(
        loops,
        (
            Equation(here, replace(here, name=name)),
            Equation(replace(here, name=pair.second.update.target.name), replace(there, name=name)),
        ),
    )


def _shifted(access: Access, axis: Geometry, by: int) -> Access:
    index = Index(axis.output.index)
    subscripts = tuple(affine_sum(s, by) if s == index else s for s in access.subscripts)
    return replace(access, subscripts=subscripts)


def _corrections(program: SignedProgram, pair: Pair, axis: Geometry) -> tuple[Nest, ...]:
    """The outputs whose window crosses the seam, once more from their own image."""
    found = []
    last = axis.output.extent - axis.first_wrong
    for one, start, count in (
        (pair.first, axis.first_wrong, last),
        (pair.second, 0, axis.first_right),
    ):
        if count > 0:
            found.append(_correction(program, pair, axis, one, (start, count)))
    return tuple(found)


def _correction(
    program: SignedProgram, pair: Pair, axis: Geometry, one: Padded, span: tuple[int, int]
) -> Nest:
    """``count`` outputs of one image from ``start`` on, with the padding written out."""
    start, count = span
    outputs = spatial(pair.convs.loops, pair.first.update.target)
    inner = tuple(loop for loop in pair.convs.loops if loop not in outputs)
    loops = tuple(replace(loop, extent=count) if loop == axis.output else loop for loop in outputs)
    padding = {
        s.name: index
        for s, index in zip(
            pair.first.copy.target.subscripts, pair.first.padded.subscripts, strict=True
        )
        if isinstance(s, Index)
    }
    value = substitute(pair.first.copy.value, padding)

    def own_image(expr: Expr) -> Expr:
        if isinstance(expr, Access) and expr.name == pair.first.image.name:
            return replace(expr, name=one.image.name)
        return expr

    value = map_expr(value, own_image)
    target = replace(pair.first.update.target, name=one.update.target.name)
    update = in_place_of(pair.first.update, pair.first.update.target.name, target)

    def pixel(expr: Expr) -> Expr:
        return value if expr == pair.first.padded else expr

    update = map_equation(update, lambda expr: map_expr(expr, pixel))
    body: tuple[Statement, ...] = (Equation(target, Int(0)), Nest(inner, (update,)))
    shift: Expr = Index(axis.output.index)
    if start:
        shift = Binary("+", shift, Int(start))
    moved = map_indices(Nest(loops, body), {axis.output.index: shift})
    if not isinstance(moved, Nest):
        raise TypeError("a nest stays a nest")
    return moved
