"""Scalar arithmetic of the reference interpreter: rounding, wrapping, IEEE special values.

Floats are Python floats (binary64), integers Python integers, bools Python bools. An f32 operation
is computed in binary64 and rounded once to binary32, which is exact rounding for ``+ - * / sqrt``;
for the functions of the mathematical library it is the binary64 result, rounded. Nothing here
raises for any value of the right kind, except that the callers guard integer division by zero.
"""

import math
from array import array
from collections.abc import Callable
from typing import Final

from steptp_dagster.leir.dtypes import DTYPES

Value = float | int | bool
Rounding = Callable[[float], float]

#: dtype -> (bits of precision, smallest exponent of a quantum, smallest power of two above all).
_NARROW: Final = {"f16": (11, -24, 16), "bf16": (8, -133, 128)}


def exact(value: float) -> float:
    """The rounding of binary64: none."""
    return value


def single_rounding() -> Rounding:
    """A function that rounds to binary32 (overflow gives an infinity). It owns its buffer."""
    buffer = array("f", [0.0])

    def to_single(value: float) -> float:
        buffer[0] = value
        return buffer[0]

    return to_single


def narrow_rounding(dtype: str) -> Rounding:
    """A function that rounds once, half to even, to ``f16`` or ``bf16``, subnormals included."""
    precision, lowest, limit = _NARROW[dtype]

    def to_narrow(value: float) -> float:
        if value == 0.0 or not math.isfinite(value):
            return value
        _, exponent = math.frexp(value)
        quantum = max(exponent - precision, lowest)
        if exponent > limit:
            return math.copysign(math.inf, value)
        rounded = math.ldexp(float(round(math.ldexp(value, -quantum))), quantum)
        if abs(rounded) >= 2.0**limit:
            return math.copysign(math.inf, value)
        return math.copysign(rounded, value)

    return to_narrow


def rounding(dtype: str) -> Rounding:
    """The rounding of a float dtype."""
    if dtype == "f64":
        return exact
    return single_rounding() if dtype == "f32" else narrow_rounding(dtype)


def wrapping(dtype: str) -> Callable[[int], int]:
    """Two's complement of an integer dtype: reduces any integer into its range."""
    kind = DTYPES[dtype]
    span = 1 << kind.bits
    if not kind.signed:
        return lambda value: value % span
    half = span >> 1
    return lambda value: (value + half) % span - half


def integer_range(dtype: str) -> tuple[int, int]:
    """Lowest and highest value of an integer dtype."""
    kind = DTYPES[dtype]
    if kind.signed:
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


def identity(op: str, dtype: str) -> Value:
    """What an implicitly initialised update with ``op`` starts from, in memory of ``dtype``."""
    kind = DTYPES[dtype].kind
    if op in ("+", "*"):
        start = 0 if op == "+" else 1
        return float(start) if kind == "float" else start if kind == "int" else bool(start)
    if kind == "float":
        return -math.inf if op == "max" else math.inf
    if kind == "bool":
        return op == "min"
    lowest, highest = integer_range(dtype)
    return lowest if op == "max" else highest


def divide(left: float, right: float) -> float:
    """IEEE division: x/0 is an infinity, 0/0 is NaN."""
    if right == 0.0:
        if left == 0.0 or left != left:
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def power(base: float, exponent: float) -> float:
    """C's ``pow``, with infinities and NaN instead of exceptions; squares are products."""
    if exponent == 2.0:
        return base * base
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent.is_integer() and exponent % 2.0 == 1.0
        return -math.inf if base < 0.0 and odd else math.inf
    except ValueError:
        if base != 0.0:  # a negative base with a fractional exponent
            return math.nan
        odd = exponent.is_integer() and exponent % 2.0 == 1.0
        return math.copysign(math.inf, base) if odd else math.inf


def maximum(left: Value, right: Value) -> Value:
    """The larger value; NaN wins, so that poison shows."""
    return left if left > right or left != left else right


def minimum(left: Value, right: Value) -> Value:
    """The smaller value; NaN wins, so that poison shows."""
    return left if left < right or left != left else right


def exp(value: float) -> float:
    """``exp`` with overflow to infinity."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def log(value: float) -> float:
    """``log``: -inf at zero, NaN below."""
    if value > 0.0:
        return math.log(value)
    return -math.inf if value == 0.0 else math.nan


def sqrt(value: float) -> float:
    """``sqrt``: NaN below zero, and -0 stays."""
    return math.sqrt(value) if value >= 0.0 else math.nan


def _finite_only(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if math.isfinite(value) else math.nan


def _integral(function: Callable[[float], int]) -> Callable[[float], float]:
    """Rounding to a whole number that keeps infinities, NaN and the sign of a zero."""
    return lambda value: (
        math.copysign(float(function(value)), value) if math.isfinite(value) else value
    )


#: Functions of one float, before the rounding to the type they are evaluated in.
FLOAT_FUNCTIONS: Final[dict[str, Callable[[float], float]]] = {
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "erf": math.erf,
    "tanh": math.tanh,
    "sin": _finite_only(math.sin),
    "cos": _finite_only(math.cos),
    "abs": abs,
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "round": _integral(round),
}
