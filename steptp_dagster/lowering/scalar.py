"""Scalar operations as TIR nodes, with LEIR's meaning on the ``llvm`` target.

TIR's own integer ``+ - *`` promise LLVM that nothing overflows; LEIR's wrap (``_wrap``). TIR's
``floor``-division needs a pass that also contracts ``a*b+c``; here it is spelled out, so that no
pass is needed at all. Transcendental functions run in binary64 and are rounded once: their result
then hardly depends on the C library. An operand that stands in a node twice is compiled twice;
operations that nest deeply (sums, maxima) use each operand once.
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
            if dtype.startswith("u"):
                return value
            keep_lowest = tirx.IntImm("bool", 0)
            return tirx.call_llvm_pure_intrin(prim(dtype), "llvm.abs", value, keep_lowest)
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
    """The larger or smaller operand; NaN wins, so that poisoned memory cannot hide in a maximum."""
    if is_float(dtype):
        name = "llvm.maximum" if op == "max" else "llvm.minimum"
    else:
        name = f"llvm.{'u' if dtype.startswith('u') else 's'}{op}"
    return tirx.call_llvm_pure_intrin(prim(dtype), name, left, right)


def _floored(left: Node, right: Node, dtype: str) -> tuple[Node, Node]:
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
    quotient = tirx.Select(by_minus_one, negate(left, dtype), quotient)
    return tirx.Select(by_zero, zero, quotient), tirx.Select(by_zero, zero, remainder)


def _wrap(op: str, left: Node, right: Node, dtype: str) -> Node:
    """Two's complement ``+ - *`` that cannot overflow in any type it passes through."""
    if dtype == "int64":
        return _wrap_64(op, left, right)
    wide = _PLAIN[op](tirx.Cast("int64", left), tirx.Cast("int64", right))
    return tirx.Cast(dtype, wide)


def _wrap_64(op: str, left: Node, right: Node) -> Node:
    """Two's complement ``+ - *`` on int64: reductions of vectors carry no promise to LLVM."""
    if op == "-":  # a - b = a + ~b + 1
        operands = [left, tirx.bitwise_not(right), integer("int64", 1), integer("int64", 0)]
    else:
        operands = [left, right]
    lanes = [integer("int32", lane) for lane in range(len(operands))]
    name = "llvm.vector.reduce.mul" if op == "*" else "llvm.vector.reduce.add"
    return tirx.call_llvm_pure_intrin(prim("int64"), name, tirx.Shuffle(operands, lanes))
