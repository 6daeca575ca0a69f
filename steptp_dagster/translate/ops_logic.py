"""Logic on truth values, and those bit-wise operators on integers that are arithmetic."""

from collections.abc import Callable

from steptp_dagster.leir.ast import Binary, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_elementwise import Operand, elementwise, truth
from steptp_dagster.translate.scalars import ONE, ZERO, compare, literal, neg, sub
from steptp_dagster.translate.values import Value

_BITS = "LEIR has no bit-wise operators; {} does"


@operator("aten.logical_not.default", "aten.bitwise_not.default")
def logical_not(op: Call, x: Value) -> Value:
    """Whether an element is zero; of integers, ``bitwise_not`` is ``-x-1``."""
    if op.name == "aten.bitwise_not.default" and x.dtype != "bool":
        return elementwise(op, lambda a: sub(neg(a), ONE), x)
    return op.builder.compute(op.shape, op.dtype, lambda *c: compare(x(*c), "==", ZERO))


def _logical(op: Call, join: Callable[[Expr, Expr], Expr], x: Operand, other: Operand) -> Value:
    if not isinstance(x, Value) or not isinstance(other, Value):
        raise Unsupported("other", _BITS.format("a comparison"))
    if "bitwise" in op.name and not x.dtype == other.dtype == "bool":
        raise Unsupported("self", _BITS.format("arithmetic, or logic on bools,"))
    left, right = truth(x.broadcast(op.shape)), truth(other.broadcast(op.shape))
    return op.builder.compute(op.shape, op.dtype, lambda *c: join(left(*c), right(*c)))


@operator("aten.logical_and.default", "aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar")
def logical_and(op: Call, x: Value, other: Operand) -> Value:
    """Whether both are non-zero; of integers, the lowest bits (``x & 7`` is ``x % 8``)."""
    if op.dtype != "bool" and not isinstance(other, Value):
        mask = int(other)
        if mask < 0 or mask & (mask + 1) or mask + 1 >= 1 << (DTYPES[x.dtype].bits - 1):
            raise Unsupported("other", _BITS.format("a mask 2**n - 1"))
        return elementwise(op, lambda a: Binary("%", a, literal(mask + 1)), x)
    return _logical(op, lambda a, b: Binary("&", a, b), x, other)


@operator("aten.logical_or.default", "aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar")
def logical_or(op: Call, x: Value, other: Operand) -> Value:
    """Whether one is non-zero."""
    return _logical(op, lambda a, b: Binary("|", a, b), x, other)


@operator("aten.logical_xor.default", "aten.bitwise_xor.Tensor", "aten.bitwise_xor.Scalar")
def logical_xor(op: Call, x: Value, other: Operand) -> Value:
    """Whether exactly one is non-zero."""
    return _logical(op, lambda a, b: compare(a, "!=", b), x, other)


def _factor(x: Value, other: Operand) -> Expr:
    """``2**n`` for a constant shift by ``n``, which the type of ``x`` can hold."""
    most = DTYPES[x.dtype].bits - 2
    if isinstance(other, Value) or not 0 <= int(other) <= most:
        raise Unsupported("other", _BITS.format(f"a shift of {x.dtype} by a constant 0 .. {most}"))
    return literal(1 << int(other))


@operator(
    "aten.__lshift__.Scalar", "aten.bitwise_left_shift.Tensor_Scalar", "aten.__lshift__.Tensor"
)
def left_shift(op: Call, x: Value, other: Operand) -> Value:
    """``x * 2**n``, which overflows as the shift does."""
    factor = _factor(x, other)
    return elementwise(op, lambda a: Binary("*", a, factor), x)


@operator(
    "aten.__rshift__.Scalar", "aten.bitwise_right_shift.Tensor_Scalar", "aten.__rshift__.Tensor"
)
def right_shift(op: Call, x: Value, other: Operand) -> Value:
    """``x // 2**n``, rounded down."""
    factor = _factor(x, other)
    return elementwise(op, lambda a: Binary("//", a, factor), x)
