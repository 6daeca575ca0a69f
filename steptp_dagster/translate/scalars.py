"""Python scalars as LEIR literals, and short constructors for expressions."""

import math
from functools import reduce

from steptp_dagster.leir.ast import Binary, Call, Compare, Expr, Inf, Int, Real, Unary
from steptp_dagster.leir.literals import spell

Scalar = int | float | bool

#: Whole floats below this size are written as integers (``2`` for ``2.0``): in an operation with
#: a float operand, which is the only place they are used, an integer literal takes its type.
_WHOLE = 1 << 20


class NotANumber(ValueError):
    """A NaN has no literal in LEIR."""


def literal(value: Scalar) -> Expr:
    """The shortest literal of a number used next to, or stored into, a value of its own kind.

    Raises NotANumber for a NaN.

    >>> literal(0.5), literal(2.0), literal(-1e-05)
    (Real(text='0.5'), Int(value=2), Unary(op='-', operand=Real(text='1e-5')))
    """
    if isinstance(value, float):
        if math.isnan(value):
            raise NotANumber("NaN has no literal in LEIR")
        if math.copysign(1.0, value) < 0:
            return Unary("-", literal(-value))
        if math.isinf(value):
            return Inf()
        if value.is_integer() and value < _WHOLE:
            return Int(int(value))
        return Real(spell(value))
    return Unary("-", Int(-int(value))) if value < 0 else Int(int(value))


ZERO = Int(0)
ONE = Int(1)
NEGATIVE_INFINITY = Unary("-", Inf())


def add(left: Expr, right: Expr) -> Expr:
    """``left+right``."""
    return Binary("+", left, right)


def sub(left: Expr, right: Expr) -> Expr:
    """``left-right``."""
    return Binary("-", left, right)


def mul(left: Expr, right: Expr) -> Expr:
    """``left*right``."""
    return Binary("*", left, right)


def div(left: Expr, right: Expr) -> Expr:
    """``left/right`` (real division)."""
    return Binary("/", left, right)


def power(base: Expr, exponent: Scalar) -> Expr:
    """``base**exponent``."""
    return Binary("**", base, literal(exponent))


def neg(expr: Expr) -> Expr:
    """``-expr``."""
    return Unary("-", expr)


def call(function: str, *arguments: Expr) -> Expr:
    """``function(arguments)``."""
    return Call(function, arguments)


def choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """``if_then_else(condition,then,otherwise)``."""
    return Call("if_then_else", (condition, then, otherwise))


def compare(left: Expr, op: str, right: Expr) -> Expr:
    """``left op right``."""
    return Compare((left, right), (op,))


def conjunction(conditions: list[Expr]) -> Expr | None:
    """``c1&c2&...``, or None where there is no condition."""
    return reduce(lambda a, b: Binary("&", a, b), conditions) if conditions else None


def sigmoid(x: Expr) -> Expr:
    """``1/(1+exp(-x))``: 0 where the exponential overflows."""
    return div(ONE, add(ONE, call("exp", neg(x))))
