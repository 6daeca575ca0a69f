"""Scalar operations as TIR nodes, with LEIR's meaning on every target.

TIR's own integer ``+ - *`` promise the compiler that nothing overflows; LEIR's wrap (``_wrap``).
TIR's ``floor``-division needs a pass that also contracts ``a*b+c``; here it is spelled out, so that
no pass is needed at all. An operand that stands in a node twice is compiled twice;
operations that nest deeply (sums, maxima) use each operand once.
"""

from typing import Final

from tvm import tirx

from steptp_dagster.lowering.machine import PLAIN, ROUNDING, Machine
from steptp_dagster.lowering.storage import is_float
from steptp_dagster.lowering.tir import Node, integer, real

_LIBM: Final = frozenset({"exp", "log", "erf", "tanh", "sin", "cos"})


def negate(value: Node, dtype: str, machine: Machine) -> Node:
    """``-value``; a float's sign flips, that of zero included."""
    if is_float(dtype):
        return tirx.Mul(value, real(dtype, -1.0))
    return arithmetic("-", integer(dtype, 0), value, dtype, machine)


def arithmetic(op: str, left: Node, right: Node, dtype: str, machine: Machine) -> Node:
    """``left op right`` for ``+ - * / max min``, both operands and the result of ``dtype``."""
    if op in ("max", "min"):
        return machine.extreme(op, left, right, dtype)
    if op in ("+", "-", "*") and not is_float(dtype):
        return _wrap(op, left, right, dtype, machine)
    return machine.rounded(op, left, right, dtype)


def floor_divide(left: Node, right: Node, dtype: str, machine: Machine) -> Node:
    """``left // right``, rounded down; an integer divided by zero gives 0."""
    if is_float(dtype):
        return function("floor", tirx.Div(left, right), dtype, machine)
    return _floored(left, right, dtype, machine)[0]


def floor_modulo(left: Node, right: Node, dtype: str, machine: Machine) -> Node:
    """``left % right`` with the sign of ``right``; an integer modulo zero gives 0."""
    if is_float(dtype):
        quotient = function("floor", tirx.Div(left, right), dtype, machine)
        return tirx.Sub(left, tirx.Mul(quotient, right))
    return _floored(left, right, dtype, machine)[1]


def power(base: Node, exponent: Node, dtype: str, machine: Machine) -> Node:
    """``base ** exponent`` of floats; squares are products."""
    if isinstance(exponent, tirx.FloatImm) and float(exponent.value) == 2.0:
        return machine.rounded("*", base, base, dtype)
    return machine.library("pow", (base, exponent), dtype)


def integer_power(base: Node, exponent: int, dtype: str, machine: Machine) -> Node:
    """``base ** exponent`` for a literal exponent >= 0, by repeated squaring."""
    result: Node = None
    square = base
    while exponent:
        if exponent & 1:
            result = square if result is None else arithmetic("*", result, square, dtype, machine)
        exponent >>= 1
        if exponent:
            square = arithmetic("*", square, square, dtype, machine)
    if result is not None:
        return result
    return real(dtype, 1.0) if is_float(dtype) else integer(dtype, 1)


def function(name: str, value: Node, dtype: str, machine: Machine) -> Node:
    """``name(value)`` for a function of one argument; value and result have type ``dtype``."""
    if not is_float(dtype):
        if name == "abs":
            if dtype.startswith("u"):
                return value
            return machine.absolute(value, dtype)
        if name in ("floor", "ceil", "round"):
            return value
        raise TypeError(f"{name} of {dtype}: integers are converted before")
    if name in ROUNDING:
        return machine.rounding(name, value, dtype)
    if name in _LIBM:
        return machine.library(name, (value,), dtype)
    raise KeyError(name)


def compare(op: str, left: Node, right: Node) -> Node:
    """``left op right`` as a TIR ``bool``; every comparison with NaN is false, but ``!=``."""
    match op:
        case "<":
            return tirx.LT(left, right)
        case "<=":
            return tirx.LE(left, right)
        case ">":
            return tirx.GT(left, right)
        case ">=":
            return tirx.GE(left, right)
        case "==":
            return tirx.EQ(left, right)
        case "!=":
            # TIR's own NE is "ordered and different", which is false for NaN.
            return tirx.Not(tirx.EQ(left, right))
    raise KeyError(op)


def _floored(left: Node, right: Node, dtype: str, machine: Machine) -> tuple[Node, Node]:
    """Quotient and remainder of floor division, without the traps of the hardware's."""
    zero, one = integer(dtype, 0), integer(dtype, 1)
    if isinstance(right, tirx.IntImm) and int(right.value) > 0:
        remainder = tirx.Mod(left, right)
        below = tirx.Cast(dtype, tirx.LT(remainder, zero))
        return (
            tirx.Sub(tirx.Div(left, right), below),
            tirx.Add(remainder, tirx.Mul(below, right)),
        )
    by_zero = tirx.EQ(right, zero)
    if dtype.startswith("u"):
        safe = tirx.Select(by_zero, one, right)
        return (
            tirx.Select(by_zero, zero, tirx.Div(left, safe)),
            tirx.Select(by_zero, zero, tirx.Mod(left, safe)),
        )
    # The lowest integer divided by -1 traps; negation wraps instead.
    by_minus_one = tirx.EQ(right, integer(dtype, -1))
    safe = tirx.Select(tirx.Or(by_zero, by_minus_one), one, right)
    quotient, remainder = tirx.Div(left, safe), tirx.Mod(left, safe)
    opposite = tirx.Or(
        tirx.And(tirx.LT(remainder, zero), tirx.GT(safe, zero)),
        tirx.And(tirx.GT(remainder, zero), tirx.LT(safe, zero)),
    )
    quotient = tirx.Select(opposite, tirx.Sub(quotient, one), quotient)
    remainder = tirx.Select(opposite, tirx.Add(remainder, safe), remainder)
    quotient = tirx.Select(by_minus_one, negate(left, dtype, machine), quotient)
    return tirx.Select(by_zero, zero, quotient), tirx.Select(by_zero, zero, remainder)


def _wrap(op: str, left: Node, right: Node, dtype: str, machine: Machine) -> Node:
    """Two's complement ``+ - *`` that cannot overflow in any type it passes through."""
    if dtype == "int64":
        return machine.wrapped(op, left, right)
    wide = PLAIN[op](tirx.Cast("int64", left), tirx.Cast("int64", right))
    return tirx.Cast(dtype, wide)
