"""Laws about logarithms: splitting and combining them."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from steptp_dagster.leir.ast import Binary, Call, Expr, Int, Real, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.strategies.algebra.exponentials import LARGE, exponent_of
from steptp_dagster.strategies.algebra.powers import (
    NEGATIVE,
    SIZE,
    is_half,
    power_of,
    root_of,
    whole_exponent,
)
from steptp_dagster.strategies.algebra.products import whole_sum
from steptp_dagster.strategies.algebra.rules import (
    MORE,
    PRODUCTS,
    SUMS,
    Match,
    Need,
    Place,
    Rule,
    needing,
    needing_nothing,
)
from steptp_dagster.strategies.algebra.trees import (
    is_literal,
    is_one,
    with_part,
    without_terms,
)
from steptp_dagster.strategies.dataflow import MINUS

#: Precondition: the logarithms of the parts may be large and nearly opposite.
CANCELS: Final = "logarithms-may-cancel"
#: Precondition: an exponential of next to nothing is one, and one of far less than zero is zero;
#: their logarithms have lost the digits.
DIGITS: Final = "digits-may-be-lost"
#: Powers that are taken into a logarithm.
_MOST: Final = 4


def inside_log(expr: Expr) -> Expr | None:
    """``a`` of ``log(a)``, else None."""
    match expr:
        case Call(function="log", arguments=(inside,)) if not is_literal(inside):
            return inside
    return None


def logarithm(expr: Expr) -> Call:
    """``log(expr)``."""
    return Call("log", (expr,))


# -- expand_log ------------------------------------------------------------------------------


def _product(place: Place) -> Iterator[Match]:
    """``log(a*b) -> log(a)+log(b)``."""
    match inside_log(place.expr):
        case Binary(op="*", left=a, right=b) if a != b:
            parts = (logarithm(a), logarithm(b))
            yield Match(
                Binary("+", *parts),
                (("a", a), ("b", b)),
                needs=(
                    Need(NEGATIVE, "nonnegative", (a, b)),
                    Need(CANCELS, "log-product", (a, b)),
                ),
                within=parts,
            )


def _quotient(place: Place) -> Iterator[Match]:
    """``log(a/b) -> log(a)-log(b)``."""
    match inside_log(place.expr):
        case Binary(op="/", left=a, right=b) if not is_one(a) and not is_literal(b):
            parts = (logarithm(a), logarithm(b))
            yield Match(
                Binary("-", *parts),
                (("a", a), ("b", b)),
                needs=(
                    Need(NEGATIVE, "nonnegative", (a, b)),
                    Need(CANCELS, "log-quotient", (a, b)),
                ),
                within=parts,
            )


def _inverse(place: Place) -> Iterator[Match]:
    """``log(1/a) -> -log(a)``."""
    match inside_log(place.expr):
        case Binary(op="/", left=one, right=a) if is_one(one):
            yield Match(Unary("-", logarithm(a)), (("a", a),), within=(logarithm(a),))


def _power(place: Place) -> Iterator[Match]:
    """``log(a**n) -> n*log(a)``; the base of an even power must not be negative."""
    inside = inside_log(place.expr)
    found = None if inside is None else whole_exponent(inside)
    if found is None:
        return
    base, n = found
    needs = () if n % 2 else (Need(NEGATIVE, "nonnegative", (base,)),)
    result = logarithm(base)
    if n > 1:
        yield Match(Binary("*", Int(n), result), (("a", base),), needs=needs, within=(result,))


def _root(place: Place) -> Iterator[Match]:
    """``log(sqrt(a)) -> 0.5*log(a)``."""
    inside = inside_log(place.expr)
    base = None if inside is None else root_of(inside)
    if base is not None:
        result = logarithm(base)
        yield Match(Binary("*", Real("0.5"), result), (("a", base),), within=(result,))


LOG_OF_PRODUCT: Final = Rule(
    "log-of-product",
    "log(a*b) -> log(a)+log(b)",
    "domain",
    "logarithm-law",
    _product,
    (NEGATIVE, CANCELS),
    heads=("log",),
)
LOG_OF_QUOTIENT: Final = Rule(
    "log-of-quotient",
    "log(a/b) -> log(a)-log(b)",
    "domain",
    "logarithm-law",
    _quotient,
    (NEGATIVE, CANCELS),
    heads=("log",),
)
LOG_OF_INVERSE: Final = Rule(
    "log-of-inverse", "log(1/a) -> -log(a)", "reassoc", "logarithm-law", _inverse, heads=("log",)
)
LOG_OF_POWER: Final = Rule(
    "log-of-power",
    "log(a**n) -> n*log(a)",
    "domain",
    "logarithm-law",
    needing(_power),
    (NEGATIVE,),
    heads=("log",),
)
#: A negative base has no logarithm, and nor has its odd power.
LOG_OF_ODD_POWER: Final = Rule(
    "log-of-odd-power",
    "log(a**n) -> n*log(a)",
    "reassoc",
    "logarithm-law",
    needing_nothing(_power),
    heads=("log",),
)
LOG_OF_ROOT: Final = Rule(
    "log-of-root", "log(sqrt(a)) -> 0.5*log(a)", "reassoc", "logarithm-law", _root, heads=("log",)
)


# -- logsimp ---------------------------------------------------------------------------------


def _sum(place: Place) -> Iterator[Match]:
    """``log(a)+log(b) -> log(a*b)`` and ``log(a)-log(b) -> log(a/b)``, other terms left alone."""
    found = whole_sum(place)
    logs = [(t, a) for t in found if (a := inside_log(t.expr)) is not None]
    for i, (first, a) in enumerate(logs):
        for second, b in logs[i + 1 :]:
            same = first.inverse == second.inverse
            if a == b and not same:
                continue
            joined = logarithm(Binary("*" if same else "/", a, b))
            left = without_terms(with_part(place.expr, first.at, joined), second.at)
            if left is None:
                continue
            yield Match(
                left,
                (("a", a), ("b", b)),
                f"{expr_text(first.expr)} and {expr_text(second.expr)}" if len(found) > 2 else "",
                _form(first.inverse, second.inverse, len(found) > 2),
                needs=(Need(SIZE, "moderate", (a, b)),),
            )


def _form(first: bool, second: bool, beside: bool) -> str:
    """The form of a law for two logarithms: which are subtracted, and whether there is more."""
    signs = "" if not first and not second else "+-"[first] + "+-"[second]
    return " ".join(filter(None, (signs, MORE if beside else "")))


def _forms() -> Iterator[tuple[str, str]]:
    """The laws for two logarithms, by their forms, but for the first."""
    for first, second, beside in product((False, True), repeat=3):
        minus = "-" if first else ""
        op, rest = "/" if first != second else "*", "+..." if beside else ""
        law = f"{minus}log(a){'+-'[second]}log(b){rest} -> {minus}log(a{op}b){rest}"
        if first or second or beside:
            yield _form(first, second, beside), law


def _multiple(place: Place) -> Iterator[Match]:
    """``n*log(a) -> log(a**n)``."""
    match place.expr:
        case Binary(op="*", left=Int() | Real() as n, right=log):
            pass
        case Binary(op="*", left=log, right=Int() | Real() as n):
            pass
        case _:
            return
    a = inside_log(log)
    if a is not None and n.value == int(n.value) and 2 <= n.value <= _MOST:
        needs = (Need(SIZE, "moderate", (a,)),)
        yield Match(logarithm(power_of(a, int(n.value))), (("a", a),), needs=needs)


def _half(place: Place) -> Iterator[Match]:
    """``0.5*log(a) -> log(sqrt(a))``, and ``log(a)/2``."""
    match place.expr:
        case Binary(op="*", left=n, right=log) if is_half(n):
            pass
        case Binary(op="*", left=log, right=n) if is_half(n):
            pass
        case Binary(op="/", left=log, right=Int() | Real() as n) if n.value == 2:
            pass
        case _:
            return
    a = inside_log(log)
    if a is not None:
        root = Call("sqrt", (a,))
        yield Match(logarithm(root), (("a", a),), within=(root,))


def _negative(place: Place) -> Iterator[Match]:
    """``-log(a) -> log(1/a)``."""
    match place.expr:
        case Unary(operand=log):
            a = inside_log(log)
            if a is not None:
                needs = (Need(SIZE, "moderate", (a,)),)
                yield Match(logarithm(Binary("/", Int(1), a)), (("a", a),), needs=needs)


def _log_of_exponential(place: Place) -> Iterator[Match]:
    """``log(exp(a)) -> a``."""
    inside = inside_log(place.expr)
    a = None if inside is None else exponent_of(inside)
    if a is not None:
        needs = (Need(LARGE, "not-large", (a,)), Need(DIGITS, "kept-by-exponential", (a,)))
        yield Match(a, (("a", a),), needs=needs)


def _exponential_of_log(place: Place) -> Iterator[Match]:
    """``exp(log(a)) -> a``."""
    inside = exponent_of(place.expr)
    a = None if inside is None else inside_log(inside)
    if a is not None:
        yield Match(a, (("a", a),), needs=(Need(NEGATIVE, "nonnegative", (a,)),))


SUM_OF_LOGS: Final = Rule(
    "sum-of-logs",
    "log(a)+log(b) -> log(a*b)",
    "range",
    "logarithm-law",
    _sum,
    (SIZE,),
    heads=SUMS,
    forms=tuple(_forms()),
)
MULTIPLE_OF_LOG: Final = Rule(
    "multiple-of-log",
    "n*log(a) -> log(a**n)",
    "range",
    "logarithm-law",
    _multiple,
    (SIZE,),
    heads=("*",),
)
HALF_OF_LOG: Final = Rule(
    "half-of-log", "0.5*log(a) -> log(sqrt(a))", "reassoc", "logarithm-law", _half, heads=PRODUCTS
)
NEGATIVE_LOG: Final = Rule(
    "negative-log",
    "-log(a) -> log(1/a)",
    "range",
    "logarithm-law",
    _negative,
    (SIZE,),
    heads=(MINUS,),
)
LOG_OF_EXPONENTIAL: Final = Rule(
    "log-of-exponential",
    "log(exp(a)) -> a",
    "range",
    "inverse-functions",
    _log_of_exponential,
    (LARGE, DIGITS),
    heads=("log",),
)
EXPONENTIAL_OF_LOG: Final = Rule(
    "exponential-of-log",
    "exp(log(a)) -> a",
    "domain",
    "inverse-functions",
    _exponential_of_log,
    (NEGATIVE,),
    heads=("exp",),
)
