"""Partial fractions: a product of two denominators whose sum or difference is a constant.

``1/(p*(1-p))`` is ``1/p+1/(1-p)``, and ``1/((x+1)*(x+2))`` is ``1/(x+1)-1/(x+2)``. The sum loses
no digits where both denominators are positive. The difference does as soon as they are large
beside the constant that they differ by; then the rule is refused. Fractions of higher degree, and
numerators that depend on the denominators, are not taken apart.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr, Int, Real
from steptp_dagster.leir.literals import spell
from steptp_dagster.strategies.algebra.fractions import INFINITE, SIZE, quotient
from steptp_dagster.strategies.algebra.products import whole_sum
from steptp_dagster.strategies.algebra.rules import SUMS, Match, Need, Place, Rule
from steptp_dagster.strategies.algebra.sums import CANCELS
from steptp_dagster.strategies.algebra.trees import (
    constant_sum,
    is_literal,
    is_one,
    terms,
    times,
)


def literal(value: Decimal, like: Expr) -> Expr:
    """A positive number as a literal, an integer where those of ``like`` are."""
    decimal = any(isinstance(term.expr, Real) for term in terms(like))
    if value == value.to_integral_value() and not decimal:
        return Int(int(value))
    return Real(spell(value))


def _denominators(product: Expr) -> Iterator[tuple[Expr, Expr, bool, Decimal]]:
    """Both factors of a denominator, whether they differ by a constant, and that or their sum.

    The smaller factor comes first where they differ.
    """
    if not isinstance(product, Binary) or product.op != "*":
        return
    b, c = product.left, product.right
    if is_literal(b) or is_literal(c):
        return
    yield from _related(b, c)


def _related(b: Expr, c: Expr) -> Iterator[tuple[Expr, Expr, bool, Decimal]]:
    total = constant_sum(b, c)
    if total is not None and total > 0:
        yield b, c, False, total
    over = constant_sum(c, b, minus=True)
    if over is not None and over > 0:
        yield b, c, True, over
    elif over is not None and over < 0:
        yield c, b, True, -over


def _needs(b: Expr, c: Expr, a: Expr, *, minus: bool) -> tuple[Need, ...]:
    shared = (
        Need(SIZE, "moderate", (b, c)),
        Need(CANCELS, "constant-difference" if minus else "constant-sum", (b, c)),
    )
    # an infinite numerator over both denominators, one subtracted from the other, is no number
    return (*shared, Need(INFINITE, "finite", (a,))) if minus else shared


# -- apart -----------------------------------------------------------------------------------


def _apart(place: Place, *, minus: bool) -> Iterator[Match]:
    fraction = quotient(place.expr)
    if fraction is None:
        return
    for b, c, differ, k in _denominators(fraction.right):
        if differ != minus:
            continue
        a = fraction.left
        total: Expr = Binary("-" if minus else "+", Binary("/", a, b), Binary("/", a, c))
        constant = literal(k, Binary("+", b, c))
        yield Match(
            total if is_one(constant) else Binary("/", total, constant),
            (("a", a), ("b", b), ("c", c)),
            needs=_needs(b, c, a, minus=minus),
        )


def _apart_sum(place: Place) -> Iterator[Match]:
    """``a/(b*c) -> (a/b+a/c)/(b+c)``."""
    return _apart(place, minus=False)


def _apart_difference(place: Place) -> Iterator[Match]:
    """``a/(b*c) -> (a/b-a/c)/(c-b)``."""
    return _apart(place, minus=True)


PARTIAL_FRACTIONS: Final = Rule(
    "partial-fractions",
    "a/(b*c) -> (a/b+a/c)/(b+c)",
    "domain",
    "partial-fractions",
    _apart_sum,
    (SIZE, CANCELS),
    heads=("/",),
)
PARTIAL_DIFFERENCE: Final = Rule(
    "partial-difference",
    "a/(b*c) -> (a/b-a/c)/(c-b)",
    "domain",
    "partial-fractions",
    _apart_difference,
    (SIZE, CANCELS, INFINITE),
    heads=("/",),
)


# -- together --------------------------------------------------------------------------------


def _together(place: Place, *, minus: bool) -> Iterator[Match]:
    """Both ways back: with the constant below the sum, and of the sum alone."""
    outer = quotient(place.expr)
    if outer is not None and is_literal(outer.right):
        found = terms(outer.left)
        below: Expr | None = outer.right
    else:
        found, below = whole_sum(place), None
    fractions = [quotient(t.expr) for t in found]
    if len(found) != 2 or found[0].inverse or found[1].inverse != minus:
        return
    first, second = fractions
    if first is None or second is None or first.left != second.left:
        return
    for b, c, differ, k in _related(first.right, second.right):
        # of a difference the fraction with the smaller denominator comes first
        if differ != minus or b != first.right or is_literal(b) or is_literal(c):
            continue
        constant = literal(k, Binary("+", b, c))
        if below is not None and below != constant:
            continue
        a = first.left
        above = a if below is not None else times(constant, a)
        yield Match(
            Binary("/", above, Binary("*", b, c)),
            (("a", a), ("b", b), ("c", c)),
            needs=_needs(b, c, a, minus=minus),
        )


def _together_sum(place: Place) -> Iterator[Match]:
    """``a/b+a/c -> (b+c)*a/(b*c)``."""
    return _together(place, minus=False)


def _together_difference(place: Place) -> Iterator[Match]:
    """``a/b-a/c -> (c-b)*a/(b*c)``."""
    return _together(place, minus=True)


FROM_PARTIAL_FRACTIONS: Final = Rule(
    "from-partial-fractions",
    "a/b+a/c -> (b+c)*a/(b*c)",
    "domain",
    "partial-fractions",
    _together_sum,
    (SIZE, CANCELS),
    heads=(*SUMS, "/"),
)
FROM_PARTIAL_DIFFERENCE: Final = Rule(
    "from-partial-difference",
    "a/b-a/c -> (c-b)*a/(b*c)",
    "domain",
    "partial-fractions",
    _together_difference,
    (SIZE, CANCELS, INFINITE),
    heads=(*SUMS, "/"),
)
