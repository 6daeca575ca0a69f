"""Partial fractions: a product of two denominators whose sum or difference is a constant.

``1/(p*(1-p))`` is ``1/p+1/(1-p)``, and ``1/((x+1)*(x+2))`` is ``1/(x+1)-1/(x+2)``. The sum loses
no digits where both denominators are positive. The difference does as soon as they are large
beside the constant that they differ by; then the rule is refused. Fractions of higher degree, and
numerators that depend on the denominators, are not taken apart.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr, Int, Real
from steptp_dagster.leir.literals import spell
from steptp_dagster.strategies.algebra.fractions import SIZE, quotient
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

#: Preconditions of the difference: the sizes of its fractions, and the value above both.
CLOSE: Final = "fractions-nearly-equal"
NUMERATOR: Final = "numerator-may-be-infinite"


def literal(value: Decimal, like: Expr) -> Expr:
    """A positive number as a literal, an integer where those of ``like`` are."""
    decimal = any(isinstance(term.expr, Real) for term in terms(like))
    if value == value.to_integral_value() and not decimal:
        return Int(int(value))
    return Real(spell(value))


def _related(b: Expr, c: Expr, *, minus: bool) -> tuple[Expr, Expr, Decimal] | None:
    """Two denominators and the constant that they add up to or, with ``minus``, differ by.

    The smaller one comes first where they differ.
    """
    if is_literal(b) or is_literal(c):
        return None
    constant = constant_sum(c, b, minus=minus)
    if constant is None or constant == 0:
        return None
    if constant > 0:
        return b, c, constant
    return (c, b, -constant) if minus else None


def _needs(b: Expr, c: Expr, a: Expr, *, minus: bool) -> tuple[Need, ...]:
    size = Need(SIZE, "moderate", (b, c))
    if not minus:
        return (size, Need(CANCELS, "constant-sum", (b, c)))
    # an infinite numerator over both denominators, one subtracted from the other, is no number
    return (size, Need(CLOSE, "constant-difference", (b, c)), Need(NUMERATOR, "finite", (a,)))


# -- apart -----------------------------------------------------------------------------------


def _apart(place: Place, *, minus: bool) -> Iterator[Match]:
    """``a/(b*c) -> (a/b+a/c)/(b+c)``, and for a difference."""
    fraction = quotient(place.expr)
    product = None if fraction is None else fraction.right
    if fraction is None or not isinstance(product, Binary) or product.op != "*":
        return
    related = _related(product.left, product.right, minus=minus)
    if related is not None:
        a, (b, c, k) = fraction.left, related
        total = Binary("-" if minus else "+", Binary("/", a, b), Binary("/", a, c))
        constant = literal(k, Binary("+", b, c))
        yield Match(
            total if is_one(constant) else Binary("/", total, constant),
            (("a", a), ("b", b), ("c", c)),
            needs=_needs(b, c, a, minus=minus),
        )


PARTIAL_FRACTIONS: Final = Rule(
    "partial-fractions",
    "a/(b*c) -> (a/b+a/c)/(b+c)",
    "domain",
    "partial-fractions",
    partial(_apart, minus=False),
    (SIZE, CANCELS),
    heads=("/",),
)
PARTIAL_DIFFERENCE: Final = Rule(
    "partial-difference",
    "a/(b*c) -> (a/b-a/c)/(c-b)",
    "domain",
    "partial-fractions",
    partial(_apart, minus=True),
    (SIZE, CLOSE, NUMERATOR),
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
    related = _related(first.right, second.right, minus=minus)
    # of a difference the fraction with the smaller denominator comes first
    if related is None or related[0] != first.right:
        return
    a, (b, c, k) = first.left, related
    constant = literal(k, Binary("+", b, c))
    if below is None or below == constant:
        yield Match(
            Binary("/", times(constant, a) if below is None else a, Binary("*", b, c)),
            (("a", a), ("b", b), ("c", c)),
            form="" if below is None else "below",
            needs=_needs(b, c, a, minus=minus),
        )


FROM_PARTIAL_FRACTIONS: Final = Rule(
    "from-partial-fractions",
    "a/b+a/c -> (b+c)*a/(b*c)",
    "domain",
    "partial-fractions",
    partial(_together, minus=False),
    (SIZE, CANCELS),
    heads=(*SUMS, "/"),
    forms=(("below", "(a/b+a/c)/(b+c) -> a/(b*c)"),),
)
FROM_PARTIAL_DIFFERENCE: Final = Rule(
    "from-partial-difference",
    "a/b-a/c -> (c-b)*a/(b*c)",
    "domain",
    "partial-fractions",
    partial(_together, minus=True),
    (SIZE, CLOSE, NUMERATOR),
    heads=(*SUMS, "/"),
    forms=(("below", "(a/b-a/c)/(c-b) -> a/(b*c)"),),
)
