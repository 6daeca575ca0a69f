"""Matrix products: one nest per product, accumulated in the evaluation type."""

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.scalars import Scalar, add, literal, mul
from steptp_dagster.translate.values import Value


def product(call: Call, left: Value, right: Value) -> Value:
    """``left @ right`` for any ranks, in the accumulator type of the result.

    A vector on either side has no dimension in the result; batch dimensions are broadcast.
    """
    rows = 0 if left.rank == 1 else 1
    columns = 0 if right.rank == 1 else 1
    batch = call.shape[: len(call.shape) - rows - columns]
    if rows:
        left = left.broadcast((*batch, *left.shape[-2:]))
    if columns:
        right = right.broadcast((*batch, *right.shape[-2:]))

    def element(coords: Coords, taps: Coords) -> Expr:
        here, row_column = coords[: len(batch)], coords[len(batch) :]
        of_left = (*here, *row_column[:1]) if rows else ()
        of_right = row_column[rows:] if columns else ()
        batch_right = here if columns else ()
        return mul(left(*of_left, *taps), right(*batch_right, *taps, *of_right))

    return call.builder.reduce(call.shape, call.accumulator, (left.shape[-1],), add, element)


@operator(
    "aten.matmul.default",
    "aten.mm.default",
    "aten.bmm.default",
    "aten.mv.default",
    "aten.dot.default",
)
def matmul(call: Call, left: Value, right: Value) -> Value:
    """A matrix product."""
    return call.builder.store(product(call, left, right), call.dtype)


@operator("aten.linear.default")
def linear(call: Call, x: Value, weight: Value, bias: Value | None) -> Value:
    """``x @ weight.T + bias``; the weight is read in place, ``[out, in]``."""
    weight_t = weight.view(weight.shape[::-1], lambda c: c[::-1])
    total = product(call, x, weight_t)
    if bias is None:
        return call.builder.store(total, call.dtype)
    wide = bias.broadcast(call.shape)
    return call.builder.compute(call.shape, call.dtype, lambda *c: add(total(*c), wide(*c)))


@operator("aten.addmm.default", "aten.addmv.default", "aten.baddbmm.default")
def addmm(call: Call, x: Value, left: Value, right: Value, beta: Scalar, alpha: Scalar) -> Value:
    """``beta*x + alpha*(left @ right)``."""
    total = product(call, left, right)
    wide = x.broadcast(call.shape)

    def element(*c: Coord) -> Expr:
        scaled = total(*c) if alpha == 1 else mul(total(*c), literal(alpha))
        if beta == 0:
            return scaled
        return add(scaled, wide(*c) if beta == 1 else mul(wide(*c), literal(beta)))

    return call.builder.compute(call.shape, call.dtype, element)
