"""Views and copies: operators that only say where an element comes from; none makes a nest."""

from math import prod
from typing import Any

from steptp_dagster.leir.ast import Expr, Int
from steptp_dagster.translate.coords import Coord, Coords, constant, reshaped
from steptp_dagster.translate.operators import Call, axis, operator
from steptp_dagster.translate.scalars import ZERO, choose, compare, conjunction, literal, neg
from steptp_dagster.translate.scalars import call as apply
from steptp_dagster.translate.values import Value


@operator("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")
def view(call: Call, x: Value, _size: list[int]) -> Value:
    """The same elements in row-major order under another shape."""
    shape = call.shape
    return x.view(shape, lambda c: reshaped(c, shape, x.shape))


@operator("aten.permute.default")
def permute(call: Call, x: Value, dims: list[int]) -> Value:
    """Dimensions in another order."""
    order = [axis(d, x.rank) for d in dims]

    def back(coords: Coords) -> Coords:
        at = dict(zip(order, coords, strict=True))
        return tuple(at[i] for i in range(x.rank))

    return x.view(call.shape, back)


@operator("aten.transpose.int")
def transpose(call: Call, x: Value, first: int, second: int) -> Value:
    """Two dimensions exchanged."""
    order = list(range(x.rank))
    i, j = axis(first, x.rank), axis(second, x.rank)
    if x.rank:
        order[i], order[j] = order[j], order[i]
    return permute(call, x, order)


@operator("aten.t.default")
def matrix_transpose(call: Call, x: Value) -> Value:
    """A matrix transposed; other ranks below 2 stay."""
    return permute(call, x, list(range(x.rank))[::-1])


@operator("aten.unsqueeze.default")
def unsqueeze(call: Call, x: Value, dim: int) -> Value:
    """A new dimension of extent 1."""
    at = dim % (x.rank + 1)
    return x.view(call.shape, lambda c: c[:at] + c[at + 1 :])


@operator("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default")
def squeeze(call: Call, x: Value, dims: int | list[int] | None = None) -> Value:
    """Dimensions of extent 1 left out."""
    return view(call, x, list(call.shape)) if dims is None or dims != [] else x


@operator("aten.expand.default")
def expand(call: Call, x: Value, _size: list[int], _implicit: bool = False) -> Value:
    """Dimensions of extent 1 repeated."""
    return x.broadcast(call.shape)


@operator("aten.repeat.default")
def repeat(call: Call, x: Value, repeats: list[int]) -> Value:
    """The whole tensor repeated along dimensions."""
    lead = len(repeats) - x.rank

    def back(coords: Coords) -> Coords:
        return tuple(c % n for c, n in zip(coords[lead:], x.shape, strict=True))

    return x.view(call.shape, back)


def sliced(x: Value, dim: int, start: int, step: int, shape: tuple[int, ...]) -> Value:
    """Elements start, start + step, ... along one dimension, as a value of ``shape``."""

    def back(coords: Coords) -> Coords:
        return (*coords[:dim], coords[dim] * step + start, *coords[dim + 1 :])

    return x.view(shape, back)


@operator("aten.slice.Tensor")
def slice_(call: Call, x: Value, dim: int, start: int | None, _end: int | None, step: int) -> Value:
    """A range with a step along one dimension."""
    at = axis(dim, x.rank)
    first = slice(start, None).indices(x.shape[at])[0]
    return sliced(x, at, first, step, call.shape)


@operator("aten.select.int")
def select(call: Call, x: Value, dim: int, index: int) -> Value:
    """One position of a dimension, which goes away."""
    at = axis(dim, x.rank)
    place = index % x.shape[at]
    return x.view(call.shape, lambda c: (*c[:at], constant(place), *c[at:]))


@operator("aten.split_with_sizes.default")
def split_with_sizes(call: Call, x: Value, sizes: list[int], dim: int) -> tuple[Value, ...]:
    """Consecutive parts along one dimension."""
    at = axis(dim, x.rank)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(
        sliced(x, at, start, 1, shape) for start, shape in zip(starts, call.shapes, strict=True)
    )


@operator("aten.split.Tensor")
def split(call: Call, x: Value, size: int, dim: int) -> tuple[Value, ...]:
    """Consecutive parts of one size along one dimension; the last may be shorter."""
    at = axis(dim, x.rank)
    return tuple(sliced(x, at, i * size, 1, shape) for i, shape in enumerate(call.shapes))


@operator("aten.unbind.int")
def unbind(call: Call, x: Value, dim: int) -> tuple[Value, ...]:
    """Every position of a dimension."""
    return tuple(select(call, x, dim, i) for i in range(x.shape[axis(dim, x.rank)]))


@operator("aten.flip.default")
def flip(call: Call, x: Value, dims: list[int]) -> Value:
    """Dimensions in reverse."""
    turned = {axis(d, x.rank) for d in dims}

    def back(coords: Coords) -> Coords:
        return tuple(-c + (x.shape[i] - 1) if i in turned else c for i, c in enumerate(coords))

    return x.view(call.shape, back)


@operator("aten.diagonal.default")
def diagonal(call: Call, x: Value, offset: int, first: int, second: int) -> Value:
    """The elements where two dimensions have the same position, or one at a fixed distance."""
    i, j = axis(first, x.rank), axis(second, x.rank)

    def back(coords: Coords) -> Coords:
        *rest, at = coords
        others = iter(rest)
        on = {i: at + max(0, -offset), j: at + max(0, offset)}
        return tuple(on[k] if k in on else next(others) for k in range(x.rank))

    return x.view(call.shape, back)


@operator("aten.unfold.default")
def unfold(call: Call, x: Value, dim: int, _size: int, step: int) -> Value:
    """Overlapping windows of one dimension, as a last dimension."""
    at = axis(dim, x.rank)

    def back(coords: Coords) -> Coords:
        return (*coords[:at], coords[at] * step + coords[-1], *coords[at + 1 : -1])

    return x.view(call.shape, back)


@operator("aten.roll.default")
def roll(call: Call, x: Value, shifts: list[int], dims: list[int]) -> Value:
    """Dimensions rotated; without ``dims`` the flattened tensor."""
    if not dims:
        size = prod(x.shape)
        flat = x.view((size,), lambda c: reshaped(c, (size,), x.shape))
        turned = _rotated(flat, {0: shifts[0]})
        return turned.view(x.shape, lambda c: reshaped(c, x.shape, turned.shape))
    total: dict[int, int] = {}
    for d, s in zip(dims, shifts, strict=True):
        total[axis(d, x.rank)] = total.get(axis(d, x.rank), 0) + s
    return _rotated(x, total)


def _rotated(x: Value, shifts: dict[int, int]) -> Value:
    def place(c: Coord, i: int) -> Coord:
        return (c + (-shifts[i]) % x.shape[i]) % x.shape[i] if i in shifts else c

    return x.view(x.shape, lambda coords: tuple(place(c, i) for i, c in enumerate(coords)))


@operator(
    "aten.alias.default",
    "aten.detach.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.lift_fresh_copy.default",
)
def same(_call: Call, x: Value, _memory_format: Any = None) -> Value:  # noqa: ANN401
    """The value itself: nothing is ever written in place."""
    return x


@operator("aten._to_copy.default", "prims.convert_element_type.default")
def to_copy(call: Call, x: Value, *_options: Any) -> Value:  # noqa: ANN401
    """A change of dtype: stored, unless arithmetic widens the same way when it reads."""
    if call.dtype == x.dtype:
        return x
    if call.dtype == x.evaluation:
        return x.retyped(call.dtype)
    if call.dtype == "bool":
        return call.builder.compute(call.shape, call.dtype, lambda *c: compare(x(*c), "!=", ZERO))
    if x.is_float and call.dtype in ("u8", "i8", "i16"):
        # PyTorch goes by way of a wider integer: what does not fit wraps around
        x = call.builder.compute(call.shape, "i32", lambda *c: _within(x(*c), 31))
    if x.is_float and call.dtype in ("i32", "i64"):
        bits = 31 if call.dtype == "i32" else 63
        return call.builder.compute(call.shape, call.dtype, lambda *c: _within(x(*c), bits))
    return call.builder.compute(call.shape, call.dtype, x)


def _within(x: Expr, bits: int) -> Expr:
    """A float that an integer of so many bits can hold; infinities and the like are the lowest.

    That is what processors make of them, and what programs meet that compute more than they use
    (``torch.where(gap < 8, gap, gap.log().long())``).
    """
    bound = literal(float(1 << bits))
    return choose(compare(apply("abs", x), "<", bound), x, neg(bound))


@operator("aten.copy.default")
def copy(call: Call, _x: Value, source: Value, _non_blocking: bool) -> Value:
    """A tensor overwritten as a whole: the new values in its shape and dtype."""
    return to_copy(call, source.broadcast(call.shape))


@operator("aten.select_scatter.default")
def select_scatter(call: Call, x: Value, source: Value, dim: int, index: int) -> Value:
    """One position of a dimension overwritten."""
    at = axis(dim, x.rank)
    place = index % x.shape[at]

    def element(*c: Coord) -> Expr:
        inside = compare(c[at].to_expr(), "==", Int(place))
        return choose(inside, source(*c[:at], *c[at + 1 :]), x(*c))

    return call.builder.compute(call.shape, call.dtype, element)


@operator("aten.slice_scatter.default")
def slice_scatter(
    call: Call, x: Value, source: Value, dim: int, start: int | None, end: int | None, step: int
) -> Value:
    """A range of a dimension overwritten."""
    at = axis(dim, x.rank)
    first, last, step = slice(start, end, step).indices(x.shape[at])

    def element(*c: Coord) -> Expr:
        offset = c[at] - first
        tests: list[Expr] = []
        if first > 0:
            tests.append(compare(c[at].to_expr(), ">=", Int(first)))
        if last < x.shape[at]:
            tests.append(compare(c[at].to_expr(), "<", Int(last)))
        if step > 1:
            tests.append(compare((offset % step).to_expr(), "==", ZERO))
        new = source(*c[:at], offset // step, *c[at + 1 :])
        condition = conjunction(tests)
        return new if condition is None else choose(condition, new, x(*c))

    return call.builder.compute(call.shape, call.dtype, element)
