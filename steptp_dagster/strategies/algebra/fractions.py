"""Laws about quotients: common denominators, partial fractions, and what cancels."""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Expr, Int
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.typing import Typed
from steptp_dagster.leir.walk import children, iter_expr
from steptp_dagster.strategies.algebra.exponentials import EXPONENTS, exponent_of
from steptp_dagster.strategies.algebra.products import whole_sum
from steptp_dagster.strategies.algebra.rules import (
    MORE,
    PRODUCTS,
    SUMS,
    Match,
    Need,
    Place,
    Rule,
    lettered,
    more,
)
from steptp_dagster.strategies.algebra.sums import CANCELS, values
from steptp_dagster.strategies.algebra.trees import (
    factor_place,
    factors,
    is_literal,
    is_one,
    is_product,
    is_sum,
    negated,
    signed,
    sums_in,
    terms,
    times,
    with_part,
    without_factors,
    without_terms,
)

ZERO: Final = "factor-may-vanish"
INFINITE: Final = "factor-may-be-infinite"
TERM: Final = "term-may-be-infinite"
DIGITS: Final = "digits-may-be-lost"
SIZE: Final = "factor-of-unknown-size"
NEGATIVE: Final = "term-may-be-negative"
LARGER: Final = "term-may-be-larger"
#: Larger expressions get no more factors, so that no chain of steps grows without end.
_MOST_NODES: Final = 48
#: Factors that a fraction is expanded by, at most.
_MOST_FACTORS: Final = 3


def quotient(expr: Expr) -> Binary | None:
    """The expression if it is a division, else None."""
    return expr if isinstance(expr, Binary) and expr.op == "/" else None


# -- together --------------------------------------------------------------------------------


def _common_denominator(place: Place) -> Iterator[Match]:
    """``a/c+b/c -> (a+b)/c``: all terms are divided by the same."""
    found = whole_sum(place)
    if not found:
        return
    first = quotient(found[0].expr)
    if first is None:
        return
    numerators, total = [], place.expr
    for term in found:
        fraction = quotient(term.expr)
        if fraction is None or fraction.right != first.right:
            return
        numerators.append(signed(fraction.left, term.inverse))
        total = with_part(total, term.at, fraction.left)
    letters, unlettered = lettered("ab", tuple(numerators))
    yield Match(
        Binary("/", total, first.right),
        (*letters, ("c", first.right)),
        form=more(unlettered),
        unlettered=unlettered,
    )


def _onto_denominator(place: Place) -> Iterator[Match]:
    """``a/c+b -> (a+b*c)/c``: one term is a fraction, the others are not."""
    found = whole_sum(place)
    fractions = [t for t in found if quotient(t.expr) is not None]
    if len(fractions) != 1:
        return
    fraction = quotient(fractions[0].expr)
    if fraction is None:
        return
    total = place.expr
    for term in found:
        new = fraction.left if term is fractions[0] else times(term.expr, fraction.right)
        total = with_part(total, term.at, new)
    others = tuple(signed(t.expr, t.inverse) for t in found if t is not fractions[0])
    letters, unlettered = lettered("b", others)
    yield Match(
        Binary("/", total, fraction.right),
        (
            ("a", signed(fraction.left, fractions[0].inverse)),
            *letters,
            ("c", fraction.right),
        ),
        form=more(unlettered),
        unlettered=unlettered,
        needs=(Need(SIZE, "moderate", (fraction.right,)),),
    )


def _two_denominators(place: Place) -> Iterator[Match]:
    """``a/b+c/d -> (a*d+c*b)/(b*d)``."""
    found = whole_sum(place)
    if len(found) != 2:
        return
    first, second = (quotient(t.expr) for t in found)
    if first is None or second is None or first.right == second.right:
        return
    a, c = (signed(f.left, t.inverse) for f, t in zip((first, second), found, strict=True))
    total = with_part(place.expr, found[0].at, times(first.left, second.right))
    total = with_part(total, found[1].at, times(second.left, first.right))
    yield Match(
        Binary("/", total, times(first.right, second.right)),
        (("a", a), ("b", first.right), ("c", c), ("d", second.right)),
        needs=(Need(SIZE, "moderate", (first.right, second.right)),),
    )


def _product_of_fraction(place: Place) -> Iterator[Match]:
    """``a*(b/c) -> a*b/c``."""
    expr = place.expr
    if not (isinstance(expr, Binary) and expr.op == "*"):
        return
    fraction = quotient(expr.right)
    if fraction is not None and not is_literal(fraction):
        yield Match(
            Binary("/", times(expr.left, fraction.left), fraction.right),
            (("a", expr.left), ("b", fraction.left), ("c", fraction.right)),
        )


def _fraction_of_fractions(place: Place) -> Iterator[Match]:
    """``a/(b/c) -> a*c/b``."""
    outer = quotient(place.expr)
    inner = None if outer is None else quotient(outer.right)
    if outer is None or inner is None or is_literal(inner):
        return
    yield Match(
        Binary("/", times(outer.left, inner.right), inner.left),
        (("a", outer.left), ("b", inner.left), ("c", inner.right)),
    )


def _complement(place: Place) -> Iterator[Match]:
    """``1-b/(a+b) -> a/(a+b)``."""
    found = whole_sum(place)
    if len(found) != 2 or not is_one(found[0].expr) or found[0].inverse or not found[1].inverse:
        return
    fraction = quotient(found[1].expr)
    if fraction is None or not is_sum(fraction.right):
        return
    whole = terms(fraction.right)
    if len(whole) != 2 or any(t.inverse for t in whole):
        return
    for own, other in (whole, whole[::-1]):
        if own.expr == fraction.left:
            yield Match(
                Binary("/", other.expr, fraction.right),
                (("a", other.expr), ("b", own.expr)),
                needs=(
                    Need(NEGATIVE, "nonnegative", (other.expr, own.expr)),
                    Need(INFINITE, "finite", (other.expr, fraction.right)),
                ),
            )
            return


COMMON_DENOMINATOR: Final = Rule(
    "common-denominator",
    "a/c+b/c -> (a+b)/c",
    "range",
    "common-denominator",
    _common_denominator,
    heads=SUMS,
    forms=((MORE, "a/c+b/c+... -> (a+b+...)/c"),),
)
ONTO_DENOMINATOR: Final = Rule(
    "onto-denominator",
    "a/c+b -> (a+b*c)/c",
    "domain",
    "common-denominator",
    _onto_denominator,
    (SIZE,),
    heads=SUMS,
    forms=((MORE, "a/c+b+... -> (a+b*c+...)/c"),),
)
TWO_DENOMINATORS: Final = Rule(
    "two-denominators",
    "a/b+c/d -> (a*d+c*b)/(b*d)",
    "domain",
    "common-denominator",
    _two_denominators,
    (SIZE,),
    heads=SUMS,
)
PRODUCT_OF_FRACTION: Final = Rule(
    "product-of-fraction",
    "a*(b/c) -> a*b/c",
    "range",
    "one-quotient",
    _product_of_fraction,
    heads=("*",),
)
FRACTION_OF_FRACTIONS: Final = Rule(
    "fraction-of-fractions",
    "a/(b/c) -> a*c/b",
    "range",
    "one-quotient",
    _fraction_of_fractions,
    heads=("/",),
)
COMPLEMENT: Final = Rule(
    "complement",
    "1-b/(a+b) -> a/(a+b)",
    "domain",
    "common-denominator",
    _complement,
    (NEGATIVE, INFINITE),
    heads=SUMS,
)


# -- apart -----------------------------------------------------------------------------------


def _split_fraction(place: Place) -> Iterator[Match]:
    """``(a+b)/c -> a/c+b/c``."""
    fraction = quotient(place.expr)
    if fraction is None or not is_sum(fraction.left):
        return
    found = terms(fraction.left)
    parts, total = [], fraction.left
    for term in found:
        new = Binary("/", term.expr, fraction.right)
        parts.append(new)
        total = with_part(total, term.at, new)
    letters, unlettered = lettered("ab", values(found))
    yield Match(
        total,
        (*letters, ("c", fraction.right)),
        form=more(unlettered),
        unlettered=unlettered,
        needs=(Need(CANCELS, "no-cancellation", values(found)),),
        smaller=(*parts, *sums_in(total)),
        one_sign=values(found),
    )


def _proper_fraction(place: Place) -> Iterator[Match]:
    """``a/(a+b) -> 1-b/(a+b)`` where a is at least b."""
    fraction = quotient(place.expr)
    if fraction is None or not is_sum(fraction.right):
        return
    found = terms(fraction.right)
    if len(found) != 2 or any(t.inverse for t in found):
        return
    for own, other in (found, found[::-1]):
        if own.expr == fraction.left and not is_literal(fraction.right):
            rest = Binary("/", other.expr, fraction.right)
            yield Match(
                Binary("-", Int(1), rest),
                (("a", own.expr), ("b", other.expr)),
                needs=(
                    Need(NEGATIVE, "nonnegative", (other.expr,)),
                    Need(LARGER, "at-least", (own.expr, other.expr)),
                    Need(INFINITE, "unmasked", (own.expr,)),
                ),
            )
            return


SPLIT_FRACTION: Final = Rule(
    "split-fraction",
    "(a+b)/c -> a/c+b/c",
    "range",
    "common-denominator",
    _split_fraction,
    (CANCELS,),
    heads=("/",),
    forms=((MORE, "(a+b+...)/c -> a/c+b/c+..."),),
)
PROPER_FRACTION: Final = Rule(
    "proper-fraction",
    "a/(a+b) -> 1-b/(a+b)",
    "domain",
    "common-denominator",
    _proper_fraction,
    (NEGATIVE, LARGER, INFINITE),
    heads=("/",),
)


# -- cancellation ----------------------------------------------------------------------------


def _cancel_factor(place: Place) -> Iterator[Match]:
    """``(a*b)/(a*c) -> b/c``: a factor and an equal divisor of one product go."""
    around = place.around
    if not is_product(place.expr) or (around is not None and is_product(around)):
        return
    own = factors(place.expr)
    divisors = {f.expr for f in own if f.inverse}
    for factor in dict.fromkeys(f.expr for f in own if not f.inverse and f.expr in divisors):
        if is_literal(factor):
            continue
        above = factor_place(place.expr, factor)
        below = factor_place(place.expr, factor, inverse=True)
        if above is None or below is None:
            continue
        yield Match(
            without_factors(place.expr, above, below),
            (("a", factor),),
            expr_text(factor),
            needs=(Need(ZERO, "nonzero", (factor,)), Need(INFINITE, "finite", (factor,))),
        )


def _cancel_exponentials(place: Place) -> Iterator[Match]:
    """``exp(a)*exp(-a)*b -> b``: both stand above the line, or both below it."""
    around = place.around
    if not is_product(place.expr) or (around is not None and is_product(around)):
        return
    own = [(f, exponent_of(f.expr)) for f in factors(place.expr)]
    for i, (first, a) in enumerate(own):
        if a is None:
            continue
        for second, other in own[i + 1 :]:
            if other is None or other != negated(a) or second.inverse != first.inverse:
                continue
            yield Match(
                without_factors(place.expr, first.at, second.at),
                (("a", a),),
                expr_text(a),
                needs=(Need(EXPONENTS, "mild", (a,)),),
            )
            break


def _cancel_term(place: Place) -> Iterator[Match]:
    """``a+b-b -> a``: a term and its negative go."""
    found = whole_sum(place)
    for i, term in enumerate(found):
        if is_literal(term.expr):
            continue
        for other in found[i + 1 :]:
            if other.expr != term.expr or other.inverse == term.inverse:
                continue
            left = without_terms(place.expr, term.at, other.at)
            finite = Need(TERM, "finite", (term.expr,))
            if left is None:
                yield Match(
                    Int(0), (("b", term.expr),), expr_text(term.expr), "alone", needs=(finite,)
                )
                break
            yield Match(
                left,
                (("a", left), ("b", term.expr)),
                expr_text(term.expr),
                needs=(finite, Need(DIGITS, "keeps-digits", (term.expr, left))),
            )
            break


def _unit(place: Place) -> Iterator[Match]:
    """``a*1 -> a``, ``1*a -> a`` and ``a/1 -> a``."""
    expr = place.expr
    if not is_product(expr) or not isinstance(expr, Binary):
        return
    if is_one(expr.right):
        yield Match(expr.left, (("a", expr.left),))
    elif expr.op == "*" and is_one(expr.left):
        yield Match(expr.right, (("a", expr.right),))


CANCEL_FACTOR: Final = Rule(
    "cancel-factor",
    "a*b/(a*c) -> b/c",
    "domain",
    "cancelled-factor",
    _cancel_factor,
    (ZERO, INFINITE),
    heads=PRODUCTS,
)
CANCEL_EXPONENTIALS: Final = Rule(
    "cancel-exponentials",
    "exp(a)*exp(-a)*b -> b",
    "domain",
    "exponential-law",
    _cancel_exponentials,
    (EXPONENTS,),
    heads=PRODUCTS,
)
CANCEL_TERM: Final = Rule(
    "cancel-term",
    "a+b-b -> a",
    "domain",
    "cancelled-term",
    _cancel_term,
    (TERM, DIGITS),
    heads=SUMS,
    forms=(("alone", "b-b -> 0"),),
)
UNIT: Final = Rule("unit-factor", "a*1 -> a", "exact", "unit-factor", _unit, heads=PRODUCTS)


# -- expansion -------------------------------------------------------------------------------


def _expand_fraction(place: Place) -> Iterator[Match]:
    """``a/b -> a*c/(b*c)`` by a value c that the fraction contains already."""
    fraction = quotient(place.expr)
    if fraction is None or is_literal(fraction.right):
        return
    if sum(1 for _ in iter_expr(place.expr)) > _MOST_NODES:
        return
    known = {f.expr for f in factors(fraction.left)} & {f.expr for f in factors(fraction.right)}
    if known - {Int(1)}:
        return
    offered = 0
    for factor in dict.fromkeys(_computed(place.node)):
        if factor == place.expr or offered == _MOST_FACTORS:
            continue
        offered += 1
        yield Match(
            Binary("/", times(fraction.left, factor), times(fraction.right, factor)),
            (("a", fraction.left), ("b", fraction.right), ("c", factor)),
            expr_text(factor),
            needs=(Need(SIZE, "moderate", (factor,)),),
        )


def _computed(typed: Typed) -> Iterator[Expr]:
    """Operations of a part that are computed wherever it is, innermost last."""
    expr = typed.expr
    if isinstance(expr, Access | Compare) or not children(expr) or is_literal(expr):
        return
    if typed.dtype.is_float:
        yield expr
    if isinstance(expr, Call) and expr.function == "if_then_else":
        return
    for operand in typed.operands:
        yield from _computed(operand)


EXPAND_FRACTION: Final = Rule(
    "expand-fraction",
    "a/b -> a*c/(b*c)",
    "domain",
    "cancelled-factor",
    _expand_fraction,
    (SIZE,),
    heads=("/",),
)
