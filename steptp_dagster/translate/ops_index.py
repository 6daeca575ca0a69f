"""Elements picked by integer tensors: indirect subscripts."""

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.translate.coords import Axis, Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, axis, operator
from steptp_dagster.translate.values import Value


def picker(op: Call, index: Value, extent: int) -> Value:
    """An integer value fit for subscripts: elements of a tensor, bounded by ``0 .. extent-1``."""
    if index.dtype not in ("i64", "i32"):
        raise Unsupported("index", f"an index of {index.dtype}; i64 and i32 do")
    if not isinstance(index(*(Coord() for _ in index.shape)), Access):
        index = op.builder.store(index)
    op.builder.restrict_source(index, 0, extent - 1)
    return index


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


@operator("aten.index.Tensor")
def index_(op: Call, x: Value, indices: list[Value | None]) -> Value:
    """Positions of the first dimension by one index tensor (not negative)."""
    first, *others = indices
    if first is None or any(i is not None for i in others):
        raise Unsupported("indices", "indexing beyond the first dimension; index_select does")
    index = picker(op, first, x.shape[0])
    rank = index.rank

    def back(coords: Coords) -> Coords:
        return (place(index(*coords[:rank]), x.shape[0]), *coords[rank:])

    return op.builder.store(x.view(op.shape, back))
