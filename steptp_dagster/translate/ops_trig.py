"""Trigonometric and hyperbolic functions, as far as LEIR's own functions express them.

``tan``, ``sinh``, ``cosh`` and the inverse hyperbolic functions are formulas over ``sin``, ``cos``,
``exp``, ``tanh``, ``log`` and ``sqrt``. The inverse trigonometric functions all rest on the arc
tangent: its argument is brought into 0 .. 1, its angle is halved three times by
``tan(a/2) = tan(a)/(1+sqrt(1+tan(a)**2))``, and what is left is so small (at most tan(pi/32)) that
eleven terms of the Taylor series are exact to the last digits of float64.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr
from steptp_dagster.translate.coords import Coord
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.ops_elementwise import Operand, elementwise, floating
from steptp_dagster.translate.scalars import (
    ONE,
    ZERO,
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

_HALVINGS: Final = 3
_TERMS: Final = 11
#: From here on ``x*x+1`` and ``x*x-1`` are ``x*x`` in every float type, and would overflow later.
_LARGE: Final = 1e9


def _tan(x: Expr) -> Expr:
    return div(call("sin", x), call("cos", x))


def _cosh(x: Expr) -> Expr:
    return div(add(call("exp", x), call("exp", neg(x))), literal(2))


def _sinh(x: Expr) -> Expr:
    """``tanh(x)*cosh(x)``: unlike ``(exp(x)-exp(-x))/2`` it cancels nothing near 0."""
    return mul(call("tanh", x), _cosh(x))


def _asinh(x: Expr) -> Expr:
    """``log(abs(x)+sqrt(x*x+1))`` with the sign of ``x``; ``log(2*abs(x))`` where it is large."""
    size = call("abs", x)
    root = call("log", add(size, call("sqrt", add(mul(x, x), ONE))))
    large = add(call("log", size), call("log", literal(2)))
    value = choose(compare(size, ">", literal(_LARGE)), large, root)
    return choose(compare(x, "<", ZERO), neg(value), value)


def _acosh(x: Expr) -> Expr:
    root = call("log", add(x, call("sqrt", mul(sub(x, ONE), add(x, ONE)))))
    large = add(call("log", x), call("log", literal(2)))
    return choose(compare(x, ">", literal(_LARGE)), large, root)


def _atanh(x: Expr) -> Expr:
    return mul(literal(0.5), call("log", div(add(ONE, x), sub(ONE, x))))


FORMULAS: Final[dict[str, Callable[[Expr], Expr]]] = {
    "acosh": _acosh,
    "asinh": _asinh,
    "atanh": _atanh,
    "cosh": _cosh,
    "sinh": _sinh,
    "tan": _tan,
}


def _register(name: str, function: Callable[[Expr], Expr]) -> None:
    @operator(f"aten.{name}.default")
    def translate(op: Call, x: Value) -> Value:
        return elementwise(op, function, x)


for _name, _function in FORMULAS.items():
    _register(_name, _function)


def _arc_tangent(op: Call, shape: tuple[int, ...], tangent: Callable[..., Expr]) -> Value:
    """The angle, in 0 .. pi/2, of tangents from 0 to infinity; in the accumulator's type."""
    kind = op.accumulator

    def new(element: Callable[..., Expr]) -> Value:
        return op.builder.compute(shape, kind, element)

    whole = new(tangent)
    small = new(
        lambda *c: choose(compare(whole(*c), ">", ONE), div(ONE, whole(*c)), whole(*c)),
    )
    for _ in range(_HALVINGS):
        small = new(_halved(small))

    def angle(*c: Coord) -> Expr:
        series = mul(literal(2**_HALVINGS), _series(small(*c)))
        return choose(compare(whole(*c), ">", ONE), sub(literal(math.pi / 2), series), series)

    return new(angle)


def _halved(tangent: Value) -> Callable[..., Expr]:
    def element(*c: Coord) -> Expr:
        t = tangent(*c)
        return div(t, add(ONE, call("sqrt", add(ONE, mul(t, t)))))

    return element


def _series(t: Expr) -> Expr:
    """``t - t**3/3 + t**5/5 - ...`` by Horner's rule in ``t*t``."""
    square = mul(t, t)
    factors = [1 / (2 * k + 1) for k in range(_TERMS)]

    def step(total: Expr, factor: float) -> Expr:
        return sub(literal(factor), mul(square, total))

    return mul(t, reduce(step, factors[-2::-1], literal(factors[-1])))


@operator("aten.atan.default")
def atan(op: Call, x: Value) -> Value:
    """The arc tangent."""
    x = floating(op, x)
    angle = _arc_tangent(op, op.shape, lambda *c: call("abs", x(*c)))
    return _with_sign(op, angle, x)


@operator("aten.asin.default")
def asin(op: Call, x: Value) -> Value:
    """The arc sine: the arc tangent of ``x/sqrt(1-x*x)``, which is infinite at 1."""
    x = floating(op, x)

    def tangent(*c: Coord) -> Expr:
        size = call("abs", x(*c))
        return div(size, call("sqrt", mul(sub(ONE, size), add(ONE, size))))

    return _with_sign(op, _arc_tangent(op, op.shape, tangent), x)


@operator("aten.acos.default")
def acos(op: Call, x: Value) -> Value:
    """The arc cosine: twice the arc tangent of ``sqrt((1-x)/(1+x))``, which is infinite at -1."""
    x = floating(op, x)

    def tangent(*c: Coord) -> Expr:
        return call("sqrt", div(sub(ONE, x(*c)), add(ONE, x(*c))))

    half = _arc_tangent(op, op.shape, tangent)
    return op.builder.compute(op.shape, op.dtype, lambda *c: mul(literal(2), half(*c)))


def _with_sign(op: Call, size: Value, sign: Value) -> Value:
    def element(*c: Coord) -> Expr:
        return choose(compare(sign(*c), "<", ZERO), neg(size(*c)), size(*c))

    return op.builder.compute(op.shape, op.dtype, element)


def negative(x: Expr) -> Expr:
    """Whether the sign bit of a float is set: also that of a negative zero."""
    return Binary("|", compare(x, "<", ZERO), compare(div(ONE, x), "<", ZERO))


@operator("aten.atan2.default")
def atan2(op: Call, y: Operand, x: Operand) -> Value:
    """The angle of the point ``(x, y)``, -pi .. pi; negative zeros count as below the axis."""
    assert isinstance(y, Value) and isinstance(x, Value)
    up, right = (floating(op, v).broadcast(op.shape) for v in (y, x))

    def tangent(*c: Coord) -> Expr:
        rise, run = call("abs", up(*c)), call("abs", right(*c))
        both = Binary("&", compare(rise, "==", run), compare(div(rise, run), "!=", ONE))
        # 0/0 counts as 0 and inf/inf as 1
        special = choose(compare(rise, "==", ZERO), ZERO, ONE)
        return choose(both, special, div(rise, run))

    angle = _arc_tangent(op, op.shape, tangent)

    def element(*c: Coord) -> Expr:
        turned = choose(negative(right(*c)), sub(literal(math.pi), angle(*c)), angle(*c))
        return choose(negative(up(*c)), neg(turned), turned)

    return op.builder.compute(op.shape, op.dtype, element)


@operator("aten.hypot.default")
def hypot(op: Call, x: Value, y: Value) -> Value:
    """``sqrt(x*x+y*y)`` without overflow: the larger times the root of the rest."""
    a, b = (floating(op, v).broadcast(op.shape) for v in (x, y))
    top = op.builder.compute(
        op.shape, op.accumulator, lambda *c: call("max", call("abs", a(*c)), call("abs", b(*c)))
    )

    def element(*c: Coord) -> Expr:
        first, second = div(a(*c), top(*c)), div(b(*c), top(*c))
        root = call("sqrt", add(mul(first, first), mul(second, second)))
        # 0 and infinity stand for themselves
        itself = compare(mul(top(*c), literal(0.5)), "==", top(*c))
        return choose(itself, top(*c), mul(top(*c), root))

    return op.builder.compute(op.shape, op.dtype, element)


@operator("aten.signbit.default")
def signbit(op: Call, x: Value) -> Value:
    """Whether a number is negative, negative zeros included."""
    sign = negative if x.is_float else (lambda e: compare(e, "<", ZERO))
    return op.builder.compute(op.shape, op.dtype, lambda *c: sign(x(*c)))


@operator("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(op: Call, x: Value, other: Operand) -> Value:
    """The size of ``x`` with the sign of ``other``."""
    if not isinstance(other, Value):
        minus = math.copysign(1.0, other) < 0
        return elementwise(op, lambda a: neg(call("abs", a)) if minus else call("abs", a), x)

    def function(a: Expr, b: Expr) -> Expr:
        return choose(negative(b), neg(call("abs", a)), call("abs", a))

    return elementwise(op, function, x, other)
