"""Writes to positions that index tensors name: every element looks for what is written to it.

A nest goes over the elements of the target and, inside, in order over everything that is written.
So no write needs an indirect subscript, two writes to one element come in PyTorch's order, and the
elements are independent of each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Expr
from steptp_dagster.translate.builder import target
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, axis, operator
from steptp_dagster.translate.ops_elementwise import holds
from steptp_dagster.translate.ops_index import picker
from steptp_dagster.translate.ops_reduce import largest, smallest
from steptp_dagster.translate.scalars import (
    NEGATIVE_INFINITY,
    ONE,
    ZERO,
    Scalar,
    add,
    choose,
    compare,
    conjunction,
    div,
    literal,
    mul,
    neg,
)
from steptp_dagster.translate.values import Value

Combine = Callable[[Expr, Expr], Expr]
#: Whether tap ``taps`` writes to ``coords``, and what it writes.
Hit = Callable[[Coords, Coords], Expr]


@dataclass(frozen=True, slots=True)
class Writes:
    """What is written: for each element of ``shape``, in order over ``extents``, by ``hit``.

    ``shape`` is that of the target, or a part of it that starts at 0 in every dimension.
    """

    shape: tuple[int, ...]
    extents: tuple[int, ...]
    hit: Hit
    value: Hit


def _written(op: Call, x: Value, writes: Writes, combine: Combine | None = None) -> Value:
    """``x`` after all writes: overwritten, or combined with ``X = combine(X, value)``."""
    dtype = op.dtype if combine in (None, largest, smallest) else op.accumulator
    new = _copied(op, x, dtype)
    _combine(op, new, writes, combine)
    return op.builder.store(new, op.dtype)


def _copied(op: Call, x: Value, dtype: str) -> Value:
    return op.builder.compute(op.shape, dtype, x)


def _combine(op: Call, new: Value, writes: Writes, combine: Combine | None) -> None:
    identities = {add: ZERO, mul: ONE}

    def body(c: Coords, taps: Coords) -> list[tuple[Access, Expr]]:
        at = target(new, c)
        here, value = writes.hit(c, taps), writes.value(c, taps)
        if combine in identities:  # an update in the form that strategies know
            return [(at, combine(at, choose(here, value, identities[combine])))]
        return [(at, choose(here, combine(at, value) if combine else value, at))]

    op.builder.nest(writes.shape, writes.extents, body)


@operator("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    op: Call, x: Value, indices: list[Value | None], values: Value, accumulate: bool = False
) -> Value:
    """Elements overwritten, or added to, at the positions of index tensors or of one mask."""
    given = {i: index for i, index in enumerate(indices) if index is not None}
    masks = [index for index in given.values() if index.dtype == "bool"]
    if masks:
        if len(given) > 1:
            raise Unsupported("indices", "a mask beside other indices; torch.where does")
        return _masked(op, x, min(given), masks[0], values, accumulate)
    writes = _index_writes(op, x, given, values)
    return _written(op, x, writes, add if accumulate else None)


def _index_writes(op: Call, x: Value, given: dict[int, Value], values: Value) -> Writes:
    picked = {i: picker(op, index, x.shape[i], subscript=False) for i, index in given.items()}
    rank = max(index.rank for index in picked.values())
    of_index = tuple(
        max(index.shape[d - rank] for index in picked.values() if index.rank >= rank - d)
        for d in range(rank)
    )
    wide = {i: index.broadcast(of_index) for i, index in picked.items()}
    kept = [i for i in range(x.rank) if i not in given]
    # index dimensions that stand together stay where they are, otherwise they come first
    together = max(given) - min(given) == len(given) - 1
    lead = min(given) if together else 0
    shape = (
        *(x.shape[i] for i in kept[:lead]),
        *of_index,
        *(x.shape[i] for i in kept[lead:]),
    )
    source = values.broadcast(shape)

    def hit(c: Coords, taps: Coords) -> Expr:
        tests = [_same(op, wide[i], taps, c[i], x.shape[i]) for i in sorted(wide)]
        condition = conjunction(tests)
        assert condition is not None
        return condition

    def value(c: Coords, taps: Coords) -> Expr:
        rest = [c[i] for i in kept]
        return source(*rest[:lead], *taps, *rest[lead:])

    return Writes(op.shape, of_index, hit, value)


def _same(op: Call, index: Value, taps: Coords, place: Coord, extent: int) -> Expr:
    """Whether an index names a place: from 0 on, or, if the program computes it, from the end."""
    read = index(*taps)
    here = compare(read, "==", place.to_expr())
    low, _ = op.builder.seen(index)
    if low is not None and low >= 0:
        return here
    return Binary("|", here, compare(read, "==", (place - extent).to_expr()))


def _masked(op: Call, x: Value, at: int, mask: Value, values: Value, accumulate: bool) -> Value:
    """Elements where a mask holds; every one of them gets the same value, or row of values."""
    trailing = x.rank - at - mask.rank
    if prod(values.shape[: max(0, values.rank - trailing)]) != 1:
        message = "one value for each element of a mask; torch.where with a full tensor does"
        raise Unsupported("values", message)
    tail = values.shape[max(0, values.rank - trailing) :]
    cut = values.rank - len(tail)
    rows = values.view(tail, lambda c: (*(Coord() for _ in range(cut)), *c))
    wide = rows.broadcast(x.shape)

    def element(*c: Coord) -> Expr:
        here = holds(mask(*c[at : at + mask.rank]))
        new = add(x(*c), wide(*c)) if accumulate else wide(*c)
        return choose(here, new, x(*c))

    return op.builder.compute(op.shape, op.dtype, element)


def _scatter_writes(op: Call, x: Value, dim: int, index: Value, source: Value | Scalar) -> Writes:
    at = axis(dim, x.rank)
    if x.rank == 0:
        raise Unsupported("self", "a tensor without dimensions; one element, x.view(1), does")
    picked = picker(op, index, x.shape[at], subscript=False)
    shape = (*index.shape[:at], x.shape[at], *index.shape[at + 1 :])

    def there(c: Coords, taps: Coords) -> Coords:
        return (*c[:at], *taps, *c[at + 1 :])

    def hit(c: Coords, taps: Coords) -> Expr:
        return compare(picked(*there(c, taps)), "==", c[at].to_expr())

    def value(c: Coords, taps: Coords) -> Expr:
        return source(*there(c, taps)) if isinstance(source, Value) else literal(source)

    return Writes(shape, (index.shape[at],), hit, value)


@operator("aten.scatter.src", "aten.scatter.value")
def scatter(op: Call, x: Value, dim: int, index: Value, source: Value | Scalar) -> Value:
    """Positions of one dimension overwritten, the last write winning."""
    return _written(op, x, _scatter_writes(op, x, dim, index, source))


@operator("aten.scatter_add.default")
def scatter_add(op: Call, x: Value, dim: int, index: Value, source: Value) -> Value:
    """Positions of one dimension added to."""
    return _written(op, x, _scatter_writes(op, x, dim, index, source), add)


@operator("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_by(
    op: Call, x: Value, dim: int, index: Value, source: Value | Scalar, reduce: str
) -> Value:
    """Positions of one dimension added to or multiplied."""
    combine = {"add": add, "multiply": mul}[reduce]
    return _written(op, x, _scatter_writes(op, x, dim, index, source), combine)


_COMBINES: Final[dict[str, Combine]] = {
    "sum": add,
    "mean": add,
    "prod": mul,
    "amax": largest,
    "amin": smallest,
}


@operator("aten.scatter_reduce.two")
def scatter_reduce(
    op: Call, x: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool
) -> Value:
    """Positions of one dimension reduced with everything that is written to them."""
    writes, combine = _scatter_writes(op, x, dim, index, source), _COMBINES[reduce]
    if include_self and reduce != "mean":
        return _written(op, x, writes, combine)
    if not x.is_float:
        raise Unsupported("reduce", f"{reduce} of {x.dtype} without what was there; floats do")
    new = _copied(op, x, op.accumulator)

    def one(c: Coords, taps: Coords) -> Expr:
        return choose(writes.hit(c, taps), ONE, ZERO)

    hits = op.builder.reduce(writes.shape, "i32", writes.extents, add, one)
    if not include_self:
        start = {add: ZERO, mul: ONE, largest: NEGATIVE_INFINITY, smallest: neg(NEGATIVE_INFINITY)}

        def restart(c: Coords, _: Coords) -> list[tuple[Access, Expr]]:
            fresh = choose(compare(hits(*c), ">", ZERO), start[combine], target(new, c))
            return [(target(new, c), fresh)]

        op.builder.nest(writes.shape, (), restart)
    _combine(op, new, writes, combine)
    if reduce == "mean":

        def divide(c: Coords, _: Coords) -> list[tuple[Access, Expr]]:
            count = add(hits(*c), ONE) if include_self else largest(hits(*c), ONE)
            return [(target(new, c), div(target(new, c), count))]

        op.builder.nest(writes.shape, (), divide)
    return op.builder.store(new, op.dtype)


@operator("aten.diagonal_scatter.default")
def diagonal_scatter(
    op: Call, x: Value, source: Value, offset: int, first: int, second: int
) -> Value:
    """A diagonal overwritten."""
    i, j = axis(first, x.rank), axis(second, x.rank)

    def element(*c: Coord) -> Expr:
        row, column = c[i], c[j]
        left, right = (row + offset, column) if offset >= 0 else (row, column - offset)
        along = row if offset >= 0 else column
        rest = [k for d, k in enumerate(c) if d not in (i, j)]
        here = compare(left.to_expr(), "==", right.to_expr())
        return choose(here, source(*rest, along), x(*c))

    return op.builder.compute(op.shape, op.dtype, element)
