"""Views by strides, of tensors that lie in memory in row-major order without gaps."""

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords, flattened, unflattened
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.scalars import ZERO, choose, compare, conjunction
from steptp_dagster.translate.values import Value
from steptp_dagster.translate.windows import inside


def _plain(op: Call) -> None:
    if not op.plain:
        raise Unsupported(
            "self",
            "strides over a tensor with gaps or permuted dimensions; a contiguous() one does",
        )


@operator("aten.as_strided.default")
def as_strided(
    op: Call, x: Value, _size: list[int], stride: list[int], offset: int | None
) -> Value:
    """Elements at ``offset + sum(coordinate * stride)`` of the flattened tensor."""
    _plain(op)

    def back(coords: Coords) -> Coords:
        flat = Coord((), offset or 0)
        for c, step in zip(coords, stride, strict=True):
            flat = flat + c * step
        return unflattened(flat, x.shape)

    return x.view(op.shape, back)


@operator("aten.as_strided_scatter.default")
def as_strided_scatter(
    op: Call,
    x: Value,
    source: Value,
    size: list[int],
    stride: list[int],
    offset: int | None,
) -> Value:
    """Every ``stride``-th element of the flattened tensor overwritten."""
    _plain(op)
    if len(size) != 1 or stride[0] < 1:
        raise Unsupported("size", "more than one dimension; slices do")

    def element(*c: Coord) -> Expr:
        flat = flattened(c, x.shape) - (offset or 0)
        at, rest = flat // stride[0], flat % stride[0]
        tests = [compare(rest.to_expr(), "==", ZERO)] if stride[0] > 1 else []
        within = inside(at, size[0])
        condition = conjunction([*tests, *([within] if within is not None else [])])
        new = source(at)
        return new if condition is None else choose(condition, new, x(*c))

    return op.builder.compute(op.shape, op.dtype, element)
