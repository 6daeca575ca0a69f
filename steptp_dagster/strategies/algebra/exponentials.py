"""Laws about exponentials: products of them, and exponentials of sums."""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Binary, Call, Expr, Int, Real, Unary
from steptp_dagster.strategies.algebra.powers import whole_exponent
from steptp_dagster.strategies.algebra.rules import (
    Match,
    Need,
    Place,
    Rule,
    needing,
    needing_nothing,
)
from steptp_dagster.strategies.algebra.trees import is_literal, is_one, negated, plus

#: Preconditions of the laws here.
EXPONENTS: Final = "exponents-of-unknown-size"
LARGE: Final = "exponent-may-be-large"
SHIFT: Final = "undoes-shift"
#: Exponents by which multiplication rounds nothing.
_POWERS_OF_TWO: Final = (2, 4, 8)


def exponent_of(expr: Expr) -> Expr | None:
    """``a`` of ``exp(a)``, else None."""
    match expr:
        case Call(function="exp", arguments=(inside,)) if not is_literal(inside):
            return inside
    return None


def exponential(expr: Expr) -> Call:
    """``exp(expr)``."""
    return Call("exp", (expr,))


# -- powsimp ---------------------------------------------------------------------------------


def _product(place: Place) -> Iterator[Match]:
    """``exp(a)*exp(b) -> exp(a+b)``."""
    match place.expr:
        case Binary(op="*", left=left, right=right) if left != right:
            a, b = exponent_of(left), exponent_of(right)
            if a is not None and b is not None:
                needs = (Need(EXPONENTS, "exponents", (a, b)),)
                yield Match(exponential(plus(a, b)), (("a", a), ("b", b)), needs=needs)


def _quotient(place: Place) -> Iterator[Match]:
    """``exp(a)/exp(b) -> exp(a-b)``."""
    match place.expr:
        case Binary(op="/", left=left, right=right):
            a, b = exponent_of(left), exponent_of(right)
            if a is not None and b is not None and a != b:
                needs = (Need(EXPONENTS, "exponents", (a, negated(b))),)
                total = plus(a, b, minus=True)
                yield Match(exponential(total), (("a", a), ("b", b)), needs=needs)


def _reciprocal(place: Place) -> Iterator[Match]:
    """``b/exp(a) -> b*exp(-a)``, and ``1/exp(a) -> exp(-a)``."""
    match place.expr:
        case Binary(op="/", left=above, right=below):
            a = exponent_of(below)
            if a is None or exponent_of(above) is not None:
                return
            result = exponential(negated(a))
            if is_one(above):
                yield Match(result, (("a", a),))
                return
            needs = (Need(LARGE, "not-large", (negated(a),)),)
            yield Match(Binary("*", above, result), (("a", a), ("b", above)), needs=needs)


def _power(place: Place) -> Iterator[Match]:
    """``exp(a)**n -> exp(n*a)`` for n that round nothing."""
    found = whole_exponent(place.expr)
    a = None if found is None else exponent_of(found[0])
    if found is not None and a is not None and found[1] in _POWERS_OF_TWO:
        yield Match(exponential(Binary("*", Int(found[1]), a)), (("a", a),))


PRODUCT_OF_EXPONENTIALS: Final = Rule(
    "product-of-exponentials",
    "exp(a)*exp(b) -> exp(a+b)",
    "range",
    "exponential-law",
    _product,
    (EXPONENTS,),
    heads=("*",),
)
QUOTIENT_OF_EXPONENTIALS: Final = Rule(
    "quotient-of-exponentials",
    "exp(a)/exp(b) -> exp(a-b)",
    "range",
    "exponential-law",
    _quotient,
    (EXPONENTS,),
    heads=("/",),
)
INVERSE_EXPONENTIAL: Final = Rule(
    "inverse-exponential",
    "b/exp(a) -> b*exp(-a)",
    "range",
    "exponential-law",
    needing(_reciprocal),
    (LARGE,),
    heads=("/",),
)
RECIPROCAL_EXPONENTIAL: Final = Rule(
    "reciprocal-exponential",
    "1/exp(a) -> exp(-a)",
    "range",
    "exponential-law",
    needing_nothing(_reciprocal),
    heads=("/",),
)
POWER_OF_EXPONENTIAL: Final = Rule(
    "power-of-exponential",
    "exp(a)**n -> exp(n*a)",
    "range",
    "exponential-law",
    _power,
    heads=("**",),
)


# -- expand_powsimp --------------------------------------------------------------------------


def _sum(place: Place) -> Iterator[Match]:
    """``exp(a+b) -> exp(a)*exp(b)``, and ``exp(a-b) -> exp(a)*exp(-b)``."""
    inside = exponent_of(place.expr)
    match inside:
        case Binary(op="+" | "-", left=a, right=right):
            b = right if inside.op == "+" else negated(right)
            if is_literal(a) or is_literal(b):
                return
            yield Match(
                Binary("*", exponential(a), exponential(b)),
                (("a", a), ("b", b)),
                needs=(
                    Need(SHIFT, "no-shift", (inside,)),
                    Need(EXPONENTS, "exponents", (a, b)),
                ),
            )


def _double(place: Place) -> Iterator[Match]:
    """``exp(2*a) -> exp(a)**2``."""
    match exponent_of(place.expr):
        case Binary(op="*", left=Int() | Real() as n, right=a) if n.value == 2:
            pass
        case Binary(op="*", left=a, right=Int() | Real() as n) if n.value == 2:
            pass
        case _:
            return
    half = exponential(a)
    yield Match(Binary("**", half, Int(2)), (("a", a),), within=(half,))


def _negative(place: Place) -> Iterator[Match]:
    """``exp(-a) -> 1/exp(a)``."""
    match exponent_of(place.expr):
        case Unary(operand=a):
            needs = (Need(LARGE, "small", (a,)),)
            yield Match(Binary("/", Int(1), exponential(a)), (("a", a),), needs=needs)


EXPONENTIAL_OF_SUM: Final = Rule(
    "exponential-of-sum",
    "exp(a+b) -> exp(a)*exp(b)",
    "range",
    "exponential-law",
    _sum,
    (SHIFT, EXPONENTS),
    heads=("exp",),
)
EXPONENTIAL_OF_DOUBLE: Final = Rule(
    "exponential-of-double",
    "exp(2*a) -> exp(a)**2",
    "range",
    "exponential-law",
    _double,
    heads=("exp",),
)
EXPONENTIAL_OF_NEGATIVE: Final = Rule(
    "exponential-of-negative",
    "exp(-a) -> 1/exp(a)",
    "range",
    "exponential-law",
    _negative,
    (LARGE,),
    heads=("exp",),
)
