"""Laws about powers and roots."""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Binary, Call, Expr, Int, Real, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.walk import iter_expr
from steptp_dagster.strategies.algebra.rules import (
    Match,
    Need,
    Place,
    Rule,
    needing,
    needing_nothing,
)
from steptp_dagster.strategies.algebra.trees import (
    At,
    Operand,
    is_literal,
    is_one,
    with_part,
    without_factors,
)

#: Preconditions of the laws here.
GROWS: Final = "power-may-overflow"
NEGATIVE: Final = "base-may-be-negative"
ZERO: Final = "base-may-be-zero"
SIZE: Final = "factor-of-unknown-size"
#: Powers that are expanded.
_MOST: Final = 8


def whole_exponent(expr: Expr) -> tuple[Expr, int] | None:
    """``(a, n)`` of ``a**n`` with a literal whole number n above 0, else None."""
    match expr:
        case Binary(op="**", left=base, right=Int() | Real() as n) if (
            n.value == int(n.value) and n.value > 0
        ):
            return base, int(n.value)
    return None


def power_of(base: Expr, n: int) -> Expr:
    """``base**n``, the base itself for 1."""
    return base if n == 1 else Binary("**", base, Int(n))


def root_of(expr: Expr) -> Expr | None:
    """``a`` of ``sqrt(a)``, else None."""
    match expr:
        case Call(function="sqrt", arguments=(inside,)):
            return inside
    return None


def is_half(expr: Expr) -> bool:
    """Whether the expression is the literal one half."""
    return isinstance(expr, Real) and expr.value == 0.5


def _with_exponent(expr: Expr) -> tuple[Expr, int]:
    return whole_exponent(expr) or (expr, 1)


# -- powsimp ---------------------------------------------------------------------------------


def _square(place: Place) -> Iterator[Match]:
    match place.expr:
        case Binary(op="*", left=left, right=right) if left == right:
            yield Match(Binary("**", left, Int(2)), (("a", left),))


def _equal_bases(place: Place) -> Iterator[Match]:
    """``a**m*b*a**n -> a**(m+n)*b``; the power stands where its first part stood."""
    around = place.around
    if not _multiplies(place.expr) or (around is not None and _multiplies(around)):
        return
    own = [f for f in _multiplied(place.expr, ()) if not is_literal(f.expr)]
    done = set()
    for i, first in enumerate(own):
        base, m = _with_exponent(first.expr)
        for second in own[i + 1 :]:
            other, n = _with_exponent(second.expr)
            if other != base or base in done:
                continue
            done.add(base)
            match = _joined(place.expr, first, second, base, m + n)
            if match is not None:
                yield match
            break


def _multiplies(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op == "*"


def _multiplied(expr: Expr, at: At) -> Iterator[Operand]:
    """The operands of a product, quotients in one piece."""
    if isinstance(expr, Binary) and expr.op == "*":
        yield from _multiplied(expr.left, (*at, 0))
        yield from _multiplied(expr.right, (*at, 1))
    else:
        yield Operand(at, expr, False)


def _joined(product: Expr, first: Operand, second: Operand, base: Expr, n: int) -> Match | None:
    power = power_of(base, n)
    rest = without_factors(product, first.at, second.at)
    if is_one(rest):
        return None if n == 2 else Match(power, (("a", base),), expr_text(base))
    result = without_factors(with_part(product, first.at, power), second.at)
    enlarged = isinstance(rest, Int | Real) and rest.value >= 1
    shown = (("b", rest),) if rest in (*iter_expr(product), *iter_expr(result)) else ()
    return Match(
        result,
        (("a", base), *shown),
        expr_text(base),
        "between" if enlarged else "",
        needs=() if enlarged else (Need(SIZE, "moderate", (base,)),),
        within=(power,),
    )


def _power_of_power(place: Place) -> Iterator[Match]:
    outer = whole_exponent(place.expr)
    inner = None if outer is None else whole_exponent(outer[0])
    if outer is not None and inner is not None:
        yield Match(power_of(inner[0], inner[1] * outer[1]), (("a", inner[0]),))


def _double(place: Place) -> Iterator[Match]:
    match place.expr:
        case Binary(op="+", left=left, right=right) if left == right:
            yield Match(Binary("*", Int(2), left), (("a", left),))


def _squared_root(place: Place) -> Iterator[Match]:
    """``sqrt(a)*sqrt(a) -> a`` and ``sqrt(a)**2 -> a``."""
    match place.expr:
        case Binary(op="*", left=left, right=right) if left == right:
            inside = root_of(left)
        case Binary(op="**", left=left, right=Int(2)):
            inside = root_of(left)
        case _:
            return
    if inside is not None:
        needs = (Need(NEGATIVE, "nonnegative", (inside,)),)
        yield Match(inside, (("a", inside),), needs=needs)


def _root_of_square(place: Place) -> Iterator[Match]:
    inside = root_of(place.expr)
    match inside:
        case Binary(op="**", left=base, right=Int(2)):
            pass
        case Binary(op="*", left=base, right=other) if base == other:
            pass
        case _:
            return
    yield Match(Call("abs", (base,)), (("a", base),))


def _product_of_roots(place: Place) -> Iterator[Match]:
    match place.expr:
        case Binary(op="*", left=left, right=right) if left != right:
            a, b = root_of(left), root_of(right)
            if a is not None and b is not None:
                yield Match(
                    Call("sqrt", (Binary("*", a, b),)),
                    (("a", a), ("b", b)),
                    needs=(
                        Need(NEGATIVE, "nonnegative", (a, b)),
                        Need(SIZE, "moderate", (a, b)),
                    ),
                )


def _inverse_root(place: Place) -> Iterator[Match]:
    """``b/sqrt(a) -> b*a**-0.5``."""
    match place.expr:
        case Binary(op="/", left=above, right=below):
            inside = root_of(below)
            if inside is None or is_literal(inside):
                return
            power = Binary("**", inside, Unary("-", Real("0.5")))
            yield Match(
                power if is_one(above) else Binary("*", above, power),
                (("a", inside), ("b", above)),
                needs=(Need(ZERO, "positive", (inside,)),),
            )


def _power_of_half(place: Place) -> Iterator[Match]:
    match place.expr:
        case Binary(op="**", left=base, right=n) if is_half(n):
            yield Match(
                Call("sqrt", (base,)),
                (("a", base),),
                needs=(Need(NEGATIVE, "nonnegative", (base,)),),
            )


SQUARE: Final = Rule("square", "a*a -> a**2", "exact", "power-by-definition", _square, heads=("*",))
_BETWEEN: Final = "a**m*b*a**n -> a**(m+n)*b"
EQUAL_BASES: Final = Rule(
    "equal-bases",
    "a**m*a**n -> a**(m+n)",
    "range",
    "power-law",
    needing_nothing(_equal_bases),
    heads=("*",),
    forms=(("between", _BETWEEN),),
)
#: The power alone may leave its type earlier than the product with what stands between.
EQUAL_BASES_APART: Final = Rule(
    "equal-bases-apart",
    _BETWEEN,
    "range",
    "power-law",
    needing(_equal_bases),
    (SIZE,),
    heads=("*",),
)
POWER_OF_POWER: Final = Rule(
    "power-of-power",
    "(a**m)**n -> a**(m*n)",
    "reassoc",
    "power-law",
    _power_of_power,
    heads=("**",),
)
DOUBLE: Final = Rule("double", "a+a -> 2*a", "exact", "doubling", _double, heads=("+",))
SQUARED_ROOT: Final = Rule(
    "squared-root",
    "sqrt(a)*sqrt(a) -> a",
    "domain",
    "power-law",
    _squared_root,
    (NEGATIVE,),
    heads=("*", "**"),
)
ROOT_OF_SQUARE: Final = Rule(
    "root-of-square",
    "sqrt(a**2) -> abs(a)",
    "reassoc",
    "power-law",
    _root_of_square,
    heads=("sqrt",),
)
PRODUCT_OF_ROOTS: Final = Rule(
    "product-of-roots",
    "sqrt(a)*sqrt(b) -> sqrt(a*b)",
    "domain",
    "power-law",
    _product_of_roots,
    (NEGATIVE, SIZE),
    heads=("*",),
)
INVERSE_ROOT: Final = Rule(
    "inverse-root",
    "b/sqrt(a) -> b*a**-0.5",
    "domain",
    "power-law",
    _inverse_root,
    (ZERO,),
    heads=("/",),
)
POWER_OF_HALF: Final = Rule(
    "power-of-half",
    "a**0.5 -> sqrt(a)",
    "domain",
    "power-law",
    _power_of_half,
    (NEGATIVE,),
    heads=("**",),
)


# -- expand_powsimp --------------------------------------------------------------------------


def _square_as_product(place: Place) -> Iterator[Match]:
    found = whole_exponent(place.expr)
    if found is not None and found[1] == 2:
        yield Match(Binary("*", found[0], found[0]), (("a", found[0]),))


def _peel_power(place: Place) -> Iterator[Match]:
    """``a**n -> a**(n-1)*a`` for n above 2."""
    found = whole_exponent(place.expr)
    if found is None or not 3 <= found[1] <= _MOST:
        return
    base, n = found
    rest = power_of(base, n - 1)
    yield Match(Binary("*", rest, base), (("a", base),), within=(rest,))


def _halve_power(place: Place) -> Iterator[Match]:
    """``a**(2*n) -> (a**n)**2`` for n above 1."""
    found = whole_exponent(place.expr)
    if found is None or not 4 <= found[1] <= _MOST or found[1] % 2:
        return
    base, n = found
    half = power_of(base, n // 2)
    yield Match(Binary("**", half, Int(2)), (("a", base),), within=(half,))


def _twice(place: Place) -> Iterator[Match]:
    match place.expr:
        case Binary(op="*", left=Int(2), right=a):
            pass
        case Binary(op="*", left=a, right=Int(2)):
            pass
        case _:
            return
    yield Match(Binary("+", a, a), (("a", a),))


def _root_of_product(place: Place) -> Iterator[Match]:
    match root_of(place.expr):
        case Binary(op="*", left=a, right=b) as product if a != b:
            yield Match(
                Binary("*", Call("sqrt", (a,)), Call("sqrt", (b,))),
                (("a", a), ("b", b)),
                needs=(
                    Need(NEGATIVE, "nonnegative", (a, b)),
                    Need(GROWS, "finite", (product,)),
                ),
                within=(Call("sqrt", (a,)), Call("sqrt", (b,))),
            )


def _root_from_power(place: Place) -> Iterator[Match]:
    """``a**-0.5 -> 1/sqrt(a)``."""
    match place.expr:
        case Binary(op="**", left=base, right=Unary(operand=n)) if is_half(n):
            root = Call("sqrt", (base,))
            yield Match(
                Binary("/", Int(1), root),
                (("a", base),),
                needs=(Need(ZERO, "positive", (base,)),),
                within=(root,),
            )


def _root_as_power(place: Place) -> Iterator[Match]:
    inside = root_of(place.expr)
    if inside is not None and not is_literal(inside):
        yield Match(
            Binary("**", inside, Real("0.5")),
            (("a", inside),),
            needs=(Need(NEGATIVE, "nonnegative", (inside,)),),
        )


SQUARE_AS_PRODUCT: Final = Rule(
    "square-as-product",
    "a**2 -> a*a",
    "exact",
    "power-by-definition",
    _square_as_product,
    heads=("**",),
)
PEEL_POWER: Final = Rule(
    "peel-power", "a**n -> a**(n-1)*a", "range", "power-law", _peel_power, heads=("**",)
)
HALVE_POWER: Final = Rule(
    "halve-power", "a**(2*n) -> (a**n)**2", "range", "power-law", _halve_power, heads=("**",)
)
TWICE: Final = Rule("twice", "2*a -> a+a", "exact", "doubling", _twice, heads=("*",))
ROOT_OF_PRODUCT: Final = Rule(
    "root-of-product",
    "sqrt(a*b) -> sqrt(a)*sqrt(b)",
    "domain",
    "power-law",
    _root_of_product,
    (NEGATIVE, GROWS),
    heads=("sqrt",),
)
ROOT_FROM_POWER: Final = Rule(
    "root-from-power",
    "a**-0.5 -> 1/sqrt(a)",
    "domain",
    "power-law",
    _root_from_power,
    (ZERO,),
    heads=("**",),
)
ROOT_AS_POWER: Final = Rule(
    "root-as-power",
    "sqrt(a) -> a**0.5",
    "domain",
    "power-law",
    _root_as_power,
    (NEGATIVE,),
    heads=("sqrt",),
)
