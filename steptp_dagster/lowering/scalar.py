"""Scalar operations as TIR nodes, with LEIR's meaning on the ``llvm`` target.

TIR's own integer ``+ - *`` promise LLVM that nothing overflows; LEIR's wrap, so integer data
takes the longer ways of ``_wrap``. TIR's ``floor``-division needs a pass that also contracts
``a*b+c``; here it is spelled out, so that no pass is needed at all. Transcendental functions run
in binary64 and are rounded once: their result then hardly depends on the C library.
"""

from collections.abc import Callable
from typing import Final

from tvm import tirx

from steptp_dagster.lowering.storage import convert, is_float
from steptp_dagster.lowering.tir import Node, integer, prim, real

_PLAIN: Final[dict[str, Callable[[Node, Node], Node]]] = {
    "+": tirx.Add,
    "-": tirx.Sub,
    "*": tirx.Mul,
    "/": tirx.Div,
}
_LOW_32: Final = 0xFFFFFFFF
_LLVM: Final[dict[str, str]] = {
    "abs": "llvm.fabs",
    "sqrt": "llvm.sqrt",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "round": "llvm.roundeven",
}
_LIBM: Final = frozenset({"exp", "log", "erf", "tanh", "sin", "cos"})


def negate(value: Node, dtype: str) -> Node:
    """``-value``; a float's sign flips, that of zero included."""
    if is_float(dtype):
        return tirx.Mul(value, real(dtype, -1.0))
    return arithmetic("-", integer(dtype, 0), value, dtype)


def arithmetic(op: str, left: Node, right: Node, dtype: str) -> Node:
    """``left op right`` for ``+ - * / max min``, both operands and the result of ``dtype``."""
    if op in ("max", "min"):
        return _extreme(op, left, right, dtype)
    if op in ("+", "-", "*") and not is_float(dtype):
        return _wrap(op, left, right, dtype)
    return _PLAIN[op](left, right)


def floor_divide(left: Node, right: Node, dtype: str) -> Node:
    """``left // right``, rounded down; an integer divided by zero gives 0."""
    if is_float(dtype):
        return function("floor", tirx.Div(left, right), dtype)
    return _floored(left, right, dtype)[0]


def floor_modulo(left: Node, right: Node, dtype: str) -> Node:
    """``left % right`` with the sign of ``right``; an integer modulo zero gives 0."""
    if is_float(dtype):
        quotient = function("floor", tirx.Div(left, right), dtype)
        return tirx.Sub(left, tirx.Mul(quotient, right))
    return _floored(left, right, dtype)[1]


def power(base: Node, exponent: Node, dtype: str) -> Node:
    """``base ** exponent`` of floats, through binary64, rounded once; squares are products."""
    if isinstance(exponent, tirx.FloatImm) and float(exponent.value) == 2.0:
        return tirx.Mul(base, base)
    wide = tirx.call_pure_extern(
        prim("float64"), "pow", convert(base, dtype, "float64"), convert(exponent, dtype, "float64")
    )
    return convert(wide, "float64", dtype)


def integer_power(base: Node, exponent: int, dtype: str) -> Node:
    """``base ** exponent`` for a literal exponent >= 0, by repeated squaring."""
    result: Node = None
    square = base
    while exponent:
        if exponent & 1:
            result = square if result is None else arithmetic("*", result, square, dtype)
        exponent >>= 1
        if exponent:
            square = arithmetic("*", square, square, dtype)
    if result is not None:
        return result
    return real(dtype, 1.0) if is_float(dtype) else integer(dtype, 1)


def function(name: str, value: Node, dtype: str) -> Node:
    """``name(value)`` for a function of one argument; value and result have type ``dtype``."""
    if not is_float(dtype):
        if name == "abs":
            negative = tirx.LT(value, integer(dtype, 0))
            return (
                value
                if dtype.startswith("u")
                else tirx.Select(negative, negate(value, dtype), value)
            )
        if name in ("floor", "ceil", "round"):
            return value
        raise TypeError(f"{name} of {dtype}: integers are converted before")
    if name in _LLVM:
        return tirx.call_llvm_pure_intrin(prim(dtype), _LLVM[name], value)
    if name in _LIBM:
        wide = convert(value, dtype, "float64")
        return convert(tirx.call_pure_extern(prim("float64"), name, wide), "float64", dtype)
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


def _extreme(op: str, left: Node, right: Node, dtype: str) -> Node:
    """The larger or smaller operand; NaN wins, so that poisoned memory cannot hide in a maximum.

    One intrinsic, since a comparison and a selection would write each operand several times, and
    chains of them would grow exponentially.
    """
    if is_float(dtype):
        name = {"max": "llvm.maximum", "min": "llvm.minimum"}[op]
    else:
        name = f"llvm.{'u' if dtype.startswith('u') else 's'}{op}"
    return tirx.call_llvm_pure_intrin(prim(dtype), name, left, right)


def _floored(left: Node, right: Node, dtype: str) -> tuple[Node, Node]:
    """Quotient and remainder of floor division, without the traps of the hardware's."""
    zero, one = integer(dtype, 0), integer(dtype, 1)
    if isinstance(right, tirx.IntImm) and int(right.value) > 0:
        quotient, remainder = tirx.Div(left, right), tirx.Mod(left, right)
        below = tirx.LT(remainder, zero)
        return (
            tirx.Select(below, tirx.Sub(quotient, one), quotient),
            tirx.Select(below, tirx.Add(remainder, right), remainder),
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
    quotient = tirx.Select(by_minus_one, negate(left, dtype), quotient)
    return tirx.Select(by_zero, zero, quotient), tirx.Select(by_zero, zero, remainder)


def _wrap(op: str, left: Node, right: Node, dtype: str) -> Node:
    """Two's complement ``+ - *`` that cannot overflow in any type it passes through."""
    if dtype in ("int64", "uint64"):
        return _wrap_64(op, left, right)
    wide = _PLAIN[op](tirx.Cast("int64", left), tirx.Cast("int64", right))
    return tirx.Cast(dtype, wide)


def _wrap_64(op: str, left: Node, right: Node) -> Node:
    """Two's complement ``+ - *`` on int64, by 32-bit halves in uint64."""
    a, b = _halves(left), _halves(right)
    word = integer("uint64", 32)
    if op == "*":
        low = tirx.Mul(a[0], b[0])
        crossed = tirx.Add(_low(tirx.Mul(a[0], b[1])), _low(tirx.Mul(a[1], b[0])))
        high = tirx.Add(tirx.shift_right(low, word), crossed)
    else:
        if op == "-":  # a - b = a + ~b + 1
            b = tuple(tirx.bitwise_xor(half, integer("uint64", _LOW_32)) for half in b)
        low = tirx.Add(tirx.Add(a[0], b[0]), integer("uint64", 1 if op == "-" else 0))
        high = tirx.Add(tirx.Add(a[1], b[1]), tirx.shift_right(low, word))
    joined = tirx.bitwise_or(tirx.shift_left(_low(high), word), _low(low))
    return tirx.Cast("int64", joined)


def _halves(value: Node) -> tuple[Node, ...]:
    """Low and high 32 bits of an int64, each as a uint64."""
    bits = tirx.Cast("uint64", value)
    return _low(bits), tirx.shift_right(bits, integer("uint64", 32))


def _low(value: Node) -> Node:
    """The low 32 bits of a uint64."""
    return tirx.bitwise_and(value, integer("uint64", _LOW_32))
