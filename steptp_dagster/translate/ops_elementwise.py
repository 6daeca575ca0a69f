"""Element-wise operators: one nest each, computed in the evaluation type and stored once."""

import math
from collections.abc import Callable
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Compare, Expr, Inf
from steptp_dagster.translate.builder import Element
from steptp_dagster.translate.coords import Coord
from steptp_dagster.translate.operators import Call, Unsupported, operator
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
    power,
    sigmoid,
    sub,
)
from steptp_dagster.translate.values import Value

Operand = Value | Scalar


def floating(op: Call, x: Value) -> Value:
    """An operand of float arithmetic: integers and bools are first stored as the result's type."""
    if x.is_float or op.dtype not in _FLOATS:
        return x
    return op.builder.compute(x.shape, op.accumulator, x)


_FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})


def elementwise(op: Call, function: Callable[..., Expr], *operands: Operand) -> Value:
    """``function`` of the elements of the operands, broadcast to the result's shape."""
    wide = [floating(op, x).broadcast(op.shape) if isinstance(x, Value) else x for x in operands]

    def element(*c: Coord) -> Expr:
        return function(*(x(*c) if isinstance(x, Value) else literal(x) for x in wide))

    return op.builder.compute(op.shape, op.dtype, element)


def _minus_one(x: Expr) -> Expr:
    return sub(x, ONE)


def _softsign(x: Expr) -> Expr:
    return div(x, add(ONE, call("abs", x)))


def _hardsigmoid(x: Expr) -> Expr:
    return div(_between(add(x, literal(3)), 0, 6), literal(6))


def _between(x: Expr, low: Scalar, high: Scalar) -> Expr:
    return call("min", call("max", x, literal(low)), literal(high))


def _log_one_plus_exp(x: Expr) -> Expr:
    """``log(1+exp(x))`` without overflow: ``max(x,0)+log(1+exp(-abs(x)))``."""
    return add(call("max", x, ZERO), call("log", add(ONE, call("exp", neg(call("abs", x))))))


def _sign(x: Expr) -> Expr:
    return choose(compare(x, ">", ZERO), ONE, choose(compare(x, "<", ZERO), literal(-1), ZERO))


def _trunc(x: Expr) -> Expr:
    return choose(compare(x, "<", ZERO), call("ceil", x), call("floor", x))


UNARY: Final[dict[str, Callable[[Expr], Expr]]] = {
    "abs": lambda x: call("abs", x),
    "ceil": lambda x: call("ceil", x),
    "cos": lambda x: call("cos", x),
    "erf": lambda x: call("erf", x),
    "erfc": lambda x: sub(ONE, call("erf", x)),
    "exp": lambda x: call("exp", x),
    "exp2": lambda x: Binary("**", literal(2), x),
    "expm1": lambda x: _minus_one(call("exp", x)),
    "floor": lambda x: call("floor", x),
    "hardsigmoid": _hardsigmoid,
    "hardswish": lambda x: mul(x, _hardsigmoid(x)),
    "log": lambda x: call("log", x),
    "log10": lambda x: mul(call("log", x), literal(1 / math.log(10))),
    "log1p": lambda x: call("log", add(ONE, x)),
    "log2": lambda x: mul(call("log", x), literal(1 / math.log(2))),
    "neg": neg,
    "reciprocal": lambda x: div(ONE, x),
    "relu": lambda x: call("max", x, ZERO),
    "round": lambda x: call("round", x),
    "rsqrt": lambda x: div(ONE, call("sqrt", x)),
    "sigmoid": sigmoid,
    "sign": _sign,
    "sin": lambda x: call("sin", x),
    "sqrt": lambda x: call("sqrt", x),
    "square": lambda x: power(x, 2),
    "trunc": _trunc,
}
COMPARISONS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _register_unary(name: str, function: Callable[[Expr], Expr]) -> None:
    @operator(f"aten.{name}.default")
    def translate(op: Call, x: Value) -> Value:
        return elementwise(op, function, x)


def _register_comparison(name: str, sign: str) -> None:
    @operator(f"aten.{name}.Tensor", f"aten.{name}.Scalar")
    def translate(op: Call, x: Value, other: Operand) -> Value:
        if not x.is_float and isinstance(other, float) and not other.is_integer():
            x = op.builder.compute(x.shape, "f32", x)
        return elementwise(op, lambda a, b: compare(a, sign, b), x, other)


for _name, _function in UNARY.items():
    _register_unary(_name, _function)
for _name, _sign_of in COMPARISONS.items():
    _register_comparison(_name, _sign_of)


def _tanh(op: Call, x: Element, *, positive: bool = False) -> Element:
    """``tanh(x)``; in the naive form a quotient of exponentials, with a nest for each of its sides.

    They are ``1-exp(-2*abs(x))`` and ``1+exp(-2*abs(x))``; the sign of ``x`` comes last, if it has
    one (not ``positive``). Nothing overflows, unlike in ``(exp(x)-exp(-x))/(exp(x)+exp(-x))``.
    """
    if not op.builder.naive:
        return lambda *c: call("tanh", x(*c))

    def shrunk(*c: Coord) -> Expr:
        size = x(*c) if positive else call("abs", x(*c))
        return call("exp", mul(literal(-2), size))

    kind = op.accumulator
    above = op.builder.compute(op.shape, kind, lambda *c: sub(ONE, shrunk(*c)))
    below = op.builder.compute(op.shape, kind, lambda *c: add(ONE, shrunk(*c)))

    def quotient(*c: Coord) -> Expr:
        size = div(above(*c), below(*c))
        return size if positive else choose(compare(x(*c), "<", ZERO), neg(size), size)

    return quotient


@operator("aten.tanh.default")
def tanh(op: Call, x: Value) -> Value:
    """The hyperbolic tangent."""
    return op.builder.compute(op.shape, op.dtype, _tanh(op, floating(op, x)))


@operator("aten.mish.default")
def mish(op: Call, x: Value) -> Value:
    """``x * tanh(softplus(x))``."""
    smooth = op.builder.step(op.shape, op.accumulator, lambda *c: _log_one_plus_exp(x(*c)))
    bent = _tanh(op, smooth, positive=True)
    return op.builder.compute(op.shape, op.dtype, lambda *c: mul(x(*c), bent(*c)))


@operator("aten.silu.default")
def silu(op: Call, x: Value) -> Value:
    """``x * sigmoid(x)``, a quotient where it is one nest."""
    if not op.builder.naive:
        return elementwise(op, lambda a: div(a, add(ONE, call("exp", neg(a)))), x)
    gate = op.builder.compute(op.shape, op.accumulator, lambda *c: sigmoid(x(*c)))
    return op.builder.compute(op.shape, op.dtype, lambda *c: mul(x(*c), gate(*c)))


def _numeric(op: Call) -> None:
    if op.dtype == "bool":
        raise Unsupported("self", "arithmetic on bools; convert them to numbers first")


def _scaled(y: Expr, alpha: Scalar) -> Expr:
    return y if alpha == 1 else mul(y, literal(alpha))


@operator("aten.add.Tensor", "aten.add.Scalar")
def add_(op: Call, x: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """``x + alpha*other``; of bools, their disjunction."""
    if op.dtype == "bool":
        return elementwise(op, lambda a, b: Binary("|", holds(a), holds(b)), x, other)
    return elementwise(op, lambda a, b: add(a, _scaled(b, alpha)), x, other)


@operator("aten.sub.Tensor", "aten.sub.Scalar")
def sub_(op: Call, x: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """``x - alpha*other``."""
    _numeric(op)
    return elementwise(op, lambda a, b: sub(a, _scaled(b, alpha)), x, other)


@operator("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(op: Call, x: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """``other - alpha*x``."""
    return sub_(op, other, x, alpha)


@operator("aten.mul.Tensor", "aten.mul.Scalar")
def mul_(op: Call, x: Operand, other: Operand) -> Value:
    """``x * other``; of bools, their conjunction."""
    if op.dtype == "bool":
        return elementwise(op, lambda a, b: Binary("&", holds(a), holds(b)), x, other)
    return elementwise(op, mul, x, other)


@operator("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def pow_(op: Call, x: Operand, exponent: Operand) -> Value:
    """``x ** exponent``; a half is written as a square root."""
    if op.dtype not in _FLOATS and (isinstance(exponent, Value) or exponent < 0):
        raise Unsupported("exponent", "integer powers need a constant exponent >= 0")
    if not isinstance(exponent, Value) and exponent == 0.5:
        return elementwise(op, lambda a: call("sqrt", a), x)
    return elementwise(op, lambda a, b: Binary("**", a, b), x, exponent)


@operator("aten.minimum.default")
def minimum(op: Call, x: Operand, other: Operand) -> Value:
    """The smaller of two."""
    if op.dtype == "bool":
        return mul_(op, x, other)
    return elementwise(op, lambda a, b: call("min", a, b), x, other)


@operator("aten.maximum.default")
def maximum(op: Call, x: Operand, other: Operand) -> Value:
    """The larger of two."""
    if op.dtype == "bool":
        return add_(op, x, other)
    return elementwise(op, lambda a, b: call("max", a, b), x, other)


@operator("aten.fmax.default")
def fmax(op: Call, x: Value, other: Value) -> Value:
    """The larger of two, or the one that is a number."""
    return elementwise(op, lambda a, b: _numbers(a, b, call("max", a, b)), x, other)


@operator("aten.fmin.default")
def fmin(op: Call, x: Value, other: Value) -> Value:
    """The smaller of two, or the one that is a number."""
    return elementwise(op, lambda a, b: _numbers(a, b, call("min", a, b)), x, other)


def _numbers(a: Expr, b: Expr, both: Expr) -> Expr:
    return choose(compare(a, "!=", a), b, choose(compare(b, "!=", b), a, both))


@operator("aten.xlogy.Tensor", "aten.xlogy.Scalar_Self", "aten.xlogy.Scalar_Other")
def xlogy(op: Call, x: Operand, y: Operand) -> Value:
    """``x*log(y)``, which is 0 where ``x`` is 0 and ``y`` a number."""

    def function(a: Expr, b: Expr) -> Expr:
        nothing = Binary("&", compare(a, "==", ZERO), compare(b, "==", b))
        return choose(nothing, ZERO, mul(a, call("log", b)))

    return elementwise(op, function, x, y)


@operator("aten.round.decimals")
def round_decimals(op: Call, x: Value, decimals: int) -> Value:
    """Rounded to a number of decimal digits, by way of a multiplication as PyTorch does it."""
    scale = literal(10 ** abs(decimals))
    if decimals >= 0:
        return elementwise(op, lambda a: div(call("round", mul(a, scale)), scale), x)
    return elementwise(op, lambda a: mul(call("round", div(a, scale)), scale), x)


@operator("aten.clamp.default", "aten.clamp.Tensor")
def clamp(op: Call, x: Value, low: Operand | None, high: Operand | None) -> Value:
    """``min(max(x, low), high)``, either bound optional."""
    if low is not None and high is not None:
        return elementwise(op, lambda a, b, c: call("min", call("max", a, b), c), x, low, high)
    if low is not None:
        return maximum(op, x, low)
    if high is not None:
        return minimum(op, x, high)
    return x


@operator("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(op: Call, x: Value, low: Operand) -> Value:
    """``max(x, low)``."""
    return maximum(op, x, low)


@operator("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(op: Call, x: Value, high: Operand) -> Value:
    """``min(x, high)``."""
    return minimum(op, x, high)


@operator("aten.hardtanh.default")
def hardtanh(op: Call, x: Value, low: Scalar, high: Scalar) -> Value:
    """``x`` limited to ``low .. high``."""
    return elementwise(op, lambda a: _between(a, low, high), x)


@operator("aten.leaky_relu.default")
def leaky_relu(op: Call, x: Value, slope: Scalar) -> Value:
    """``x`` where positive, else ``slope*x``."""
    return elementwise(op, lambda a: choose(compare(a, ">", ZERO), a, mul(a, literal(slope))), x)


@operator("aten.rrelu_with_noise_functional.default")
def rrelu(
    op: Call, x: Value, _noise: Value, lower: Scalar, upper: Scalar, training: bool, _random: object
) -> tuple[Value, ...]:
    """In evaluation a leaky ReLU whose slope is the mean of two; random in training."""
    if training:
        raise Unsupported("training", "random slopes; call .eval()")
    return (leaky_relu(op, x, (lower + upper) / 2),)


@operator("aten.prelu.default", "aten._prelu_kernel.default")
def prelu(op: Call, x: Value, weight: Value) -> Value:
    """``x`` where positive, else ``weight*x``, the weight per channel (dimension 1)."""
    if op.name == "aten.prelu.default" and weight.rank == 1:
        lead, trail = min(1, x.rank - 1), max(0, x.rank - 2)
        shape = (1,) * lead + weight.shape + (1,) * trail
        weight = weight.view(shape, lambda c: c[lead : lead + 1])
    return elementwise(op, lambda a, w: choose(compare(a, ">", ZERO), a, mul(a, w)), x, weight)


@operator("aten.elu.default")
def elu(op: Call, x: Value, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Value:
    """``scale*x`` where positive, else ``scale*alpha*(exp(input_scale*x)-1)``."""

    def function(a: Expr) -> Expr:
        grown = _minus_one(call("exp", _scaled(a, input_scale)))
        return choose(
            compare(a, ">", ZERO), _scaled(a, scale), _scaled(grown, float(alpha) * float(scale))
        )

    return elementwise(op, function, x)


@operator("aten.softplus.default")
def softplus(op: Call, x: Value, beta: Scalar, threshold: Scalar) -> Value:
    """``log(1+exp(beta*x))/beta`` in the form that cannot overflow; ``x`` above the threshold.

    Above the threshold PyTorch returns ``x``; there the safe form differs from it by less than
    ``exp(-threshold)``, which the comparison keeps exact for every threshold.
    """

    def function(a: Expr) -> Expr:
        scaled = _scaled(a, beta)
        smooth = _log_one_plus_exp(scaled)
        smooth = smooth if beta == 1 else div(smooth, literal(beta))
        return choose(compare(scaled, ">", literal(threshold)), a, smooth)

    return elementwise(op, function, x)


@operator("aten.gelu.default")
def gelu(op: Call, x: Value, approximate: str) -> Value:
    """Exact GELU (with erf) or its tanh approximation."""

    def exact(a: Expr) -> Expr:
        half = mul(literal(0.5), a)
        return mul(half, add(ONE, call("erf", div(a, call("sqrt", literal(2))))))

    def inner(*c: Coord) -> Expr:
        cubic = add(x(*c), mul(literal(0.044715), power(x(*c), 3)))
        return mul(literal(math.sqrt(2 / math.pi)), cubic)

    if approximate == "none":
        return elementwise(op, exact, x)
    if approximate != "tanh":
        raise Unsupported("approximate", f"{approximate!r}; none and tanh do")
    bent = _tanh(op, op.builder.step(op.shape, op.accumulator, inner))
    return op.builder.compute(
        op.shape,
        op.dtype,
        lambda *c: mul(mul(literal(0.5), x(*c)), add(ONE, bent(*c))),
    )


@operator("aten.where.self")
def where(op: Call, condition: Value, x: Operand, other: Operand) -> Value:
    """``x`` where the condition holds, else ``other``."""
    return elementwise_where(op, condition, x, other)


def elementwise_where(op: Call, condition: Value, x: Operand, other: Operand) -> Value:
    """A choice whose condition keeps its own type."""
    test = condition.broadcast(op.shape)
    then, otherwise = (y.broadcast(op.shape) if isinstance(y, Value) else y for y in (x, other))

    def element(*c: Coord) -> Expr:
        a, b = (y(*c) if isinstance(y, Value) else literal(y) for y in (then, otherwise))
        return choose(holds(test(*c)), a, b)

    return op.builder.compute(op.shape, op.dtype, element)


@operator("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(op: Call, x: Value, mask: Value, value: Operand) -> Value:
    """``value`` where the mask holds, else ``x``."""
    return elementwise_where(op, mask, value, x)


def holds(expr: Expr) -> Expr:
    """A bool as a condition; a constant or a number is compared with 0."""
    match expr:
        case Access(dtype="bool") | Compare() | Binary(op="&" | "|"):
            return expr
    return compare(expr, "!=", ZERO)


def truth(x: Value) -> Callable[..., Expr]:
    """The condition that an element is not zero (a bool is its own condition)."""
    return lambda *c: holds(x(*c))


@operator("aten.isnan.default")
def isnan(op: Call, x: Value) -> Value:
    """Whether an element differs from itself."""
    return op.builder.compute(op.shape, op.dtype, lambda *c: compare(x(*c), "!=", x(*c)))


@operator("aten.isinf.default")
def isinf(op: Call, x: Value) -> Value:
    """Whether an element is infinite."""
    return op.builder.compute(
        op.shape, op.dtype, lambda *c: compare(call("abs", x(*c)), "==", Inf())
    )
