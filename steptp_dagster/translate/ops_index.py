"""Elements picked by integer tensors: indirect subscripts."""

from dataclasses import replace

from steptp_dagster.leir.ast import Access, Binary, Expr, Index, Int
from steptp_dagster.translate.coords import Axis, Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, axis, operator
from steptp_dagster.translate.scalars import ZERO, add, call, choose, compare
from steptp_dagster.translate.values import Value


def picker(op: Call, index: Value, extent: int, subscript: bool = True) -> Value:
    """An integer value fit for subscripts: elements of a tensor, bounded by ``0 .. extent-1``.

    Where LEIR cannot show the bounds of what the program computes (``builder.bounded``), they are
    made: positions from the end are counted from 0, and what is out of range, which PyTorch would
    not accept, is moved to the nearest position. Without ``subscript`` the value is only compared.
    """
    if index.dtype not in ("i64", "i32"):
        raise Unsupported("index", f"an index of {index.dtype}; i64 and i32 do")
    read = index(*(Coord() for _ in index.shape))
    if _of_loops(read):
        return index
    known = op.builder.variables.get(read.name) if isinstance(read, Access) else None
    if known is None:
        return _bounded(op, index, extent) if subscript else index
    low, high = op.builder.seen(index)
    if known.values is None:
        if low is not None and high is not None and not (low >= 0 and high < extent):
            # the example itself counts from the end, or leaves out of use what is out of range
            return clamped(op, index, extent) if subscript else index
        op.builder.restrict_source(index, 0, extent - 1)
        return index
    values = [int(v) for v in known.values]
    if min(values) >= 0:
        return index
    if min(values) < -extent:
        raise Unsupported("index", f"a position {min(values)} among {extent}")
    positive = tuple(v % extent for v in values)
    fixed = op.builder.declare(lambda name: replace(known, name=name, values=positive))
    # the view of the constant that ``index`` is, with every read turned to the new one
    name = fixed.tensor
    assert name is not None

    def element(coords: Coords) -> Expr:
        old = index(*coords)
        assert isinstance(old, Access)
        return replace(old, name=name)

    return Value(index.shape, index.dtype, element)


def _bounded(op: Call, index: Value, extent: int) -> Value:
    """A computed index as a tensor, within bounds if that is asked for."""
    op.builder.computed_indices = True
    if not op.builder.bounded:
        plain = isinstance(index(*(Coord() for _ in index.shape)), Access)
        return index if plain else op.builder.store(index)
    return clamped(op, index, extent)


def clamped(op: Call, index: Value, extent: int) -> Value:
    """An index as a tensor of positions in ``0 .. extent-1``, counted from the end or nearest."""

    def element(*c: Coord) -> Expr:
        negative = compare(index(*c), "<", ZERO)
        from_start = choose(negative, add(index(*c), Int(extent)), index(*c))
        return call("min", call("max", from_start, ZERO), Int(extent - 1))

    return op.builder.compute(index.shape, index.dtype, element)


def _of_loops(expr: Expr) -> bool:
    """Whether an expression is made of loop indices and numbers: its range is known."""
    match expr:
        case Index() | Int():
            return True
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            return _of_loops(expr.left) and _of_loops(expr.right)
    return False


def place(index: Expr, extent: int) -> Coord:
    """An index value as a coordinate."""
    return Coord(((Axis(index, extent), 1),))


@operator("aten.embedding.default")
def embedding(
    op: Call, weight: Value, index: Value, _padding: int, _scale: bool, _sparse: bool
) -> Value:
    """Rows of a table."""
    index = picker(op, index, weight.shape[0])

    def back(coords: Coords) -> Coords:
        *at, column = coords
        return place(index(*at), weight.shape[0]), column

    return op.builder.store(weight.view(op.shape, back))


@operator("aten.index_select.default")
def index_select(op: Call, x: Value, dim: int, index: Value) -> Value:
    """Positions of one dimension."""
    at = axis(dim, x.rank)
    index = picker(op, index, x.shape[at])

    def back(coords: Coords) -> Coords:
        return (*coords[:at], place(index(coords[at]), x.shape[at]), *coords[at + 1 :])

    return op.builder.store(x.view(op.shape, back))


@operator("aten.gather.default")
def gather(op: Call, x: Value, dim: int, index: Value, _sparse: bool) -> Value:
    """One element of a dimension for every element of the index."""
    at = axis(dim, x.rank)
    index = picker(op, index, x.shape[at])

    def back(coords: Coords) -> Coords:
        return (*coords[:at], place(index(*coords), x.shape[at]), *coords[at + 1 :])

    return op.builder.store(x.view(op.shape, back))


@operator("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index_(op: Call, x: Value, indices: list[Value | None]) -> Value:
    """Positions of dimensions by index tensors that are broadcast to one shape.

    Index tensors of inputs hold positions from 0 on; those of the program may count from the end.
    """
    given = {i: index for i, index in enumerate(indices) if index is not None}
    if any(index.dtype == "bool" for index in given.values()):
        raise Unsupported("indices", "a mask, whose result has no fixed shape; where does")
    ranks = max(index.rank for index in given.values())
    kept = [i for i in range(x.rank) if i not in given]
    shape = op.shape
    # index dimensions that stand together stay where they are, otherwise they come first
    together = max(given) - min(given) == len(given) - 1
    lead = min(given) if together else 0
    of_index = shape[lead : lead + ranks]
    wide = {i: picker(op, k, x.shape[i]).broadcast(of_index) for i, k in given.items()}

    def back(coords: Coords) -> Coords:
        here = coords[lead : lead + ranks]
        rest = dict(zip(kept, (*coords[:lead], *coords[lead + ranks :]), strict=True))
        return tuple(
            rest[i] if i in rest else place(wide[i](*here), x.shape[i]) for i in range(x.rank)
        )

    return op.builder.store(x.view(shape, back))


@operator("aten.one_hot.default")
def one_hot(op: Call, index: Value, _classes: int) -> Value:
    """1 at the position that an index names, 0 elsewhere."""

    def element(*c: Coord) -> Expr:
        return choose(compare(index(*c[:-1]), "==", c[-1].to_expr()), Int(1), ZERO)

    return op.builder.compute(op.shape, op.dtype, element)
