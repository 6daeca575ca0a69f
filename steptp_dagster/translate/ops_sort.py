"""Order statistics by counting: the rank of an element is how many come before it.

With the ranks known, the element at a place is the only one of that rank. This takes a comparison
for every pair of elements in a row, which no comparison sort needs, but every one of them is
independent, and there is no control flow that depends on data.
"""

from steptp_dagster.leir.ast import Access, Binary, Expr
from steptp_dagster.translate.coords import Coord, Coords, constant, reshaped
from steptp_dagster.translate.operators import Call, Unsupported, axis, operator
from steptp_dagster.translate.ops_reduce import largest
from steptp_dagster.translate.scalars import ONE, ZERO, Scalar, add, choose, compare, literal
from steptp_dagster.translate.values import Value, filled

#: Why positions are refused where PyTorch leaves the order of equal values open.
_TIES = "positions of values that may be equal, in any order; those of sort(stable=True) do"


def _ranks(op: Call, x: Value, at: int, descending: bool) -> Value:
    """How many elements of a row come before each: smaller ones, and equal ones further ahead."""
    if x.dtype == "bool":
        raise Unsupported("self", "an order of bools; that of numbers does (x.int())")

    def element(c: Coords, taps: Coords) -> Expr:
        other = x(*c[:at], taps[0], *c[at + 1 :])
        this = x(*c)
        ahead = compare(taps[0].to_expr(), "<", c[at].to_expr())
        equal = Binary("&", compare(other, "==", this), ahead)
        before = Binary("|", compare(other, ">" if descending else "<", this), equal)
        return choose(before, ONE, ZERO)

    return op.builder.reduce(x.shape, "i64", (x.shape[at],), add, element)


def _at_rank(
    op: Call, x: Value, ranks: Value, at: int, shape: tuple[int, ...], first: int = 0
) -> Value:
    """The elements of rank ``first``, ``first + 1``, ... in each row."""

    def element(c: Coords, taps: Coords) -> Expr:
        there = (*c[:at], taps[0], *c[at + 1 :])
        hit = compare(ranks(*there), "==", (c[at] + first).to_expr())
        return choose(hit, x(*there), ZERO)

    return op.builder.reduce(shape, x.dtype, (x.shape[at],), add, element)


def _positions(op: Call, ranks: Value, at: int, shape: tuple[int, ...]) -> Value:
    """Where the elements of each rank stand."""

    def element(c: Coords, taps: Coords) -> Expr:
        there = (*c[:at], taps[0], *c[at + 1 :])
        hit = compare(ranks(*there), "==", c[at].to_expr())
        return choose(hit, taps[0].to_expr(), ZERO)

    return op.builder.reduce(shape, "i64", (ranks.shape[at],), largest, element)


def _sorted(op: Call, x: Value, dim: int, descending: bool) -> tuple[Value, ...]:
    if x.rank == 0:
        return op.builder.store(x), filled((), "i64", ZERO)
    at = axis(dim, x.rank)
    ranks = _ranks(op, x, at, descending)
    values = _at_rank(op, x, ranks, at, x.shape) if 0 in op.used else x
    if 1 not in op.used:
        return (values,)
    return values, _positions(op, ranks, at, x.shape)


@operator("aten.sort.default")
def sort(op: Call, x: Value, dim: int = -1, descending: bool = False) -> tuple[Value, ...]:
    """Rows in order. Equal elements keep theirs, as they do in PyTorch on CPUs."""
    return _sorted(op, x, dim, descending)


@operator("aten.sort.stable")
def sort_stable(
    op: Call, x: Value, _stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Value, ...]:
    """Rows in order; equal elements keep theirs."""
    return _sorted(op, x, dim, descending)


@operator("aten.topk.default")
def topk(op: Call, x: Value, k: int, dim: int, largest_: bool, sorted_: bool) -> tuple[Value, ...]:
    """The first ``k`` of each row in order."""
    if 1 in op.used:
        raise Unsupported("self", _TIES)
    if not sorted_:
        raise Unsupported("sorted", "False, which leaves the order open; True does")
    if x.rank == 0:
        return (op.builder.store(x),)
    at = axis(dim, x.rank)
    return (_at_rank(op, x, _ranks(op, x, at, largest_), at, op.shape),)


def _picked(op: Call, x: Value, dim: int, rank: int) -> Value:
    """The element of one rank of each row, in the shape of the result."""
    if x.rank == 0:
        return op.builder.store(x)
    at = axis(dim, x.rank)
    shape = (*x.shape[:at], 1, *x.shape[at + 1 :])
    found = _at_rank(op, x, _ranks(op, x, at, False), at, shape, rank)
    if op.shape == shape:
        return found
    return found.view(op.shape, lambda c: (*c[:at], constant(0), *c[at:]))


@operator("aten.kthvalue.default")
def kthvalue(op: Call, x: Value, k: int, dim: int, _keepdim: bool) -> tuple[Value, ...]:
    """The ``k``-th smallest element of each row."""
    if 1 in op.used:
        raise Unsupported("self", _TIES)
    return (_picked(op, x, dim, k - 1),)


@operator("aten.median.dim")
def median_dim(op: Call, x: Value, dim: int, _keepdim: bool) -> tuple[Value, ...]:
    """The median of each row, the lower one of two."""
    if 1 in op.used:
        raise Unsupported("self", _TIES)
    count = x.shape[axis(dim, x.rank)] if x.rank else 1
    return (_picked(op, x, dim, (count - 1) // 2),)


@operator("aten.median.default")
def median(op: Call, x: Value) -> Value:
    """The median of all elements, the lower one of two."""
    count = 1
    for n in x.shape:
        count *= n
    flat = x.view((count,), lambda c: reshaped(c, (count,), x.shape))
    return _picked(op, flat, 0, (count - 1) // 2)


def _is_input(op: Call, x: Value) -> bool:
    read = x(*(Coord() for _ in x.shape))
    known = op.builder.variables.get(read.name) if isinstance(read, Access) else None
    return known is not None and known.role in ("input", "param")


@operator("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    op: Call,
    ordered: Value,
    x: Value | Scalar,
    _out_int32: bool,
    right: bool,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """How many elements of an ordered row come before ``x``: with ``right``, equal ones too."""
    if sorter is not None:
        raise Unsupported("sorter", "a row in another order; an ordered row does")
    if _is_input(op, ordered):
        message = "an input that nothing shows to be in order; a constant, or a sorted row, does"
        raise Unsupported("sorted_sequence", message)
    sign = "<=" if right or side == "right" else "<"

    def element(c: Coords, taps: Coords) -> Expr:
        row = c[: ordered.rank - 1]
        value = x(*c) if isinstance(x, Value) else literal(x)
        return choose(compare(ordered(*row, *taps), sign, value), ONE, ZERO)

    return op.builder.reduce(op.shape, op.dtype, (ordered.shape[-1],), add, element)


@operator("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(op: Call, x: Value | Scalar, ordered: Value, out_int32: bool, right: bool) -> Value:
    """How many boundaries come before each element."""
    return searchsorted(op, ordered, x, out_int32, right)
