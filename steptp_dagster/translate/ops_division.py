"""Quotients and rests: of floats as far as they can be exact, of integers by constants.

A rest of floats is exact in PyTorch, and so is the floor of a quotient that it is made from. Taken
from a quotient that was rounded they are wrong near every multiple of the divisor, whatever the
formula. Only a power of two divides without rounding.
"""

import math
from collections.abc import Callable
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.translate.coords import Coord
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_elementwise import Operand, elementwise, floating
from steptp_dagster.translate.scalars import (
    ONE,
    ZERO,
    Scalar,
    add,
    call,
    choose,
    compare,
    div,
    literal,
    mul,
    neg,
    sub,
)
from steptp_dagster.translate.values import Value


def _truncated(x: Expr) -> Expr:
    return choose(compare(x, "<", ZERO), call("ceil", x), call("floor", x))


@operator("aten.div.Tensor", "aten.div.Scalar")
def div_(op: Call, x: Operand, other: Operand) -> Value:
    """``x / other``, real division; by the number 1, as some decompositions write it, nothing."""
    if isinstance(x, Value) and not isinstance(other, Value) and other == 1 and x.dtype == op.dtype:
        return x
    return elementwise(op, div, x, other)


@operator("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(op: Call, x: Operand, other: Operand, rounding_mode: str | None) -> Value:
    """Division rounded down (``floor``), towards 0 (``trunc``) or not at all."""
    if rounding_mode is None:
        return div_(op, x, other)
    if op.dtype in _FLOATS:
        return _float_quotient(op, x, other, rounding_mode)
    divisor = _whole_divisor(op, other)

    def floor(a: Expr) -> Expr:
        return Binary("//", a, literal(divisor)) if divisor > 0 else floor_negative(a)

    def floor_negative(a: Expr) -> Expr:
        return Binary("//", neg(a), literal(-divisor))

    def trunc(a: Expr) -> Expr:
        size = abs(divisor)
        down, up = Binary("//", a, literal(size)), neg(Binary("//", neg(a), literal(size)))
        quotient = choose(compare(a, "<", ZERO), up, down)
        return quotient if divisor > 0 else neg(quotient)

    return elementwise(op, floor if rounding_mode == "floor" else trunc, x)


_FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})
#: From this many times the divisor on every number of any float type is a multiple of it.
_HUGE: Final = 2.0**53


def _float_quotient(op: Call, x: Operand, other: Operand, rounding_mode: str) -> Value:
    if rounding_mode == "trunc":
        left, right = _operand(op, x), _operand(op, other)

        def quotient(*c: Coord) -> Expr:
            return div(left(*c), right(*c))

        whole = op.builder.compute(op.shape, op.accumulator, quotient)
        return elementwise(op, _truncated, whole)
    if not _power_of_two(other):
        message = (
            "the floor of a float quotient is exact in PyTorch, which no rounded quotient is; "
            "torch.floor(x / other), or a constant power of two, does"
        )
        raise Unsupported("other", message)
    assert not isinstance(other, Value)
    divisor, left = other, _operand(op, x)
    rest = op.builder.compute(op.shape, op.accumulator, lambda *c: _rest(left(*c), abs(divisor)))

    def floor(*c: Coord) -> Expr:
        # the rest has the sign of x: towards 0 is up where it differs from that of the divisor
        up = compare(rest(*c), "<" if divisor > 0 else ">", ZERO)
        whole = div(sub(left(*c), rest(*c)), literal(divisor))
        return choose(up, sub(whole, ONE), whole)

    return op.builder.compute(op.shape, op.dtype, floor)


def _rest(a: Expr, size: Scalar) -> Expr:
    """The rest of a division by a power of two, rounded towards 0."""
    rest = sub(a, mul(_truncated(div(a, literal(size))), literal(size)))
    # so large a number is a multiple of the divisor, and its quotient might overflow
    return choose(compare(call("abs", a), "<", literal(size * _HUGE)), rest, sub(a, a))


def _operand(op: Call, x: Operand) -> Callable[..., Expr]:
    return floating(op, x).broadcast(op.shape) if isinstance(x, Value) else lambda *_: literal(x)


def _power_of_two(other: Operand) -> bool:
    """Whether a divisor is a constant power of two, in the range of every float type."""
    if isinstance(other, Value):
        return False
    size = abs(float(other))
    return 2.0**-100 <= size <= 2.0**100 and math.frexp(size)[0] == 0.5


def _whole_divisor(op: Call, other: Operand) -> int:
    """A divisor of integers of the result's type: a constant other than 0 that fits it."""
    dtype = DTYPES[op.dtype]
    if isinstance(other, int) and not isinstance(other, bool) and other != 0:
        negative_of_unsigned = other < 0 and not dtype.signed
        if abs(other) < 1 << (dtype.bits - 1) and not negative_of_unsigned:
            return other
    message = (
        f"{dtype.name} is divided by constants other than 0 that fit it; "
        "torch.floor(x.float() / other) does"
    )
    raise Unsupported("other", message)


@operator("aten.remainder.Scalar", "aten.remainder.Tensor")
def remainder(op: Call, x: Operand, other: Operand) -> Value:
    """The rest with the sign of the divisor."""
    if op.dtype not in _FLOATS:
        divisor = _whole_divisor(op, other)

        def rest(a: Expr) -> Expr:
            size = literal(abs(divisor))
            return Binary("%", a, size) if divisor > 0 else neg(Binary("%", neg(a), size))

        return elementwise(op, rest, x)
    divisor_of_floats = _exact_divisor(other)
    towards_zero = fmod(op, x, other)

    def signed(r: Expr) -> Expr:
        amiss = compare(r, "<" if divisor_of_floats > 0 else ">", ZERO)
        return choose(amiss, add(r, literal(divisor_of_floats)), r)

    return elementwise(op, signed, towards_zero)


@operator("aten.fmod.Scalar", "aten.fmod.Tensor")
def fmod(op: Call, x: Operand, other: Operand) -> Value:
    """The rest with the sign of ``x``."""
    if op.dtype in _FLOATS:
        size = abs(_exact_divisor(other))

        return elementwise(op, lambda a: _rest(a, size), x)
    size = abs(_whole_divisor(op, other))

    def rest(a: Expr) -> Expr:
        negative = neg(Binary("%", neg(a), literal(size)))
        return choose(compare(a, "<", ZERO), negative, Binary("%", a, literal(size)))

    return elementwise(op, rest, x)


def _exact_divisor(other: Operand) -> Scalar:
    if _power_of_two(other):
        assert not isinstance(other, Value)
        return other
    message = (
        "the rest of floats is exact in PyTorch, which no formula over a rounded quotient is; "
        "x - torch.floor(x / other) * other, or a constant power of two, does"
    )
    raise Unsupported("other", message)
