"""Laws that turn products into sums, and laws that gather the terms of a sum."""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr, Int, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.strategies.algebra.products import (
    beside,
    is_polynomial,
    operations,
    square_base,
    whole_sum,
)
from steptp_dagster.strategies.algebra.rules import (
    MORE,
    SUMS,
    Match,
    Need,
    Place,
    Rule,
    lettered,
    more,
    needing,
    needing_nothing,
)
from steptp_dagster.strategies.algebra.trees import (
    At,
    Operand,
    bases,
    divided_by_factor,
    is_literal,
    is_one,
    is_sum,
    part,
    signed,
    sums_in,
    terms,
    times,
    with_part,
    without_terms,
)

#: Preconditions of the laws here.
CANCELS: Final = "digits-may-cancel"
INFINITE: Final = "factor-may-be-infinite"
#: The form of a law with more terms beside those that are gathered than it has letters for.
_APART: Final = "apart"


def values(found: tuple[Operand, ...]) -> tuple[Expr, ...]:
    """Terms with their signs."""
    return tuple(signed(t.expr, t.inverse) for t in found)


def is_term(place: Place) -> bool:
    """Whether a part is a term of a sum."""
    around = place.around
    return around is not None and (is_sum(around) or isinstance(around, Unary))


def _distribute(place: Place) -> Iterator[Match]:
    """``a*(b+c) -> a*b+a*c``, for each side of the product that is a sum."""
    expr = place.expr
    if not (isinstance(expr, Binary) and expr.op == "*"):
        return
    sides = ((expr.right, expr.left, True), (expr.left, expr.right, False))
    choices = [side for side in sides if is_sum(side[0])]
    for total, factor, first in choices:
        found = terms(total)
        products, result = [], total
        for term in found:
            new = times(factor, term.expr) if first else times(term.expr, factor)
            products.append(new)
            result = with_part(result, term.at, new)
        letters, unlettered = lettered("bc", values(found))
        yield Match(
            result=result,
            letters=(("a", factor), *letters),
            choice=expr_text(total) if len(choices) > 1 else "",
            form=more(unlettered),
            unlettered=unlettered,
            needs=(
                Need(CANCELS, "no-cancellation", values(found)),
                Need(INFINITE, "finite", (factor,)),
            ),
            smaller=(*products, *sums_in(result)),
            one_sign=values(found),
        )


def _distribute_alone(place: Place) -> Iterator[Match]:
    if not is_term(place):
        yield from _distribute(place)


def _distribute_term(place: Place) -> Iterator[Match]:
    if is_term(place):
        yield from _distribute(place)


DISTRIBUTE: Final = Rule(
    "distribute",
    "a*(b+c) -> a*b+a*c",
    "range",
    "distributive-law",
    _distribute_alone,
    (CANCELS, INFINITE),
    heads=("*",),
    forms=((MORE, "a*(b+c+...) -> a*b+a*c+..."),),
)
DISTRIBUTE_TERM: Final = Rule(
    "distribute-term",
    "a*(b+c)+... -> a*b+a*c+...",
    "range",
    "distributive-law",
    _distribute_term,
    (CANCELS, INFINITE),
    heads=("*",),
    forms=((MORE, "a*(b+c+...)+... -> a*b+a*c+..."),),
)


def _expand_square(place: Place) -> Iterator[Match]:
    base = square_base(place.expr)
    found = () if base is None else terms(base)
    if base is None or len(found) != 2 or not is_sum(base):
        return
    (a, b), (sign_a, sign_b) = (tuple(t.expr for t in found), tuple(t.inverse for t in found))
    squares = tuple(e if is_one(e) else Binary("**", e, Int(2)) for e in (a, b))
    mixed = times(times(Int(2), a), b)
    first = Binary("-" if sign_a != sign_b else "+", squares[0], mixed)
    yield Match(
        result=Binary("+", first, squares[1]),
        letters=tuple(zip("ab", values(found), strict=True)),
        needs=(
            Need(CANCELS, "no-cancellation", values(found)),
            Need(INFINITE, "finite", (a, b)),
        ),
        smaller=(*squares, mixed, times(Int(2), a), first),
        one_sign=values(found),
    )


EXPAND_SQUARE: Final = Rule(
    "expand-square",
    "(a+b)**2 -> a**2+2*a*b+b**2",
    "range",
    "binomial-law",
    _expand_square,
    (CANCELS, INFINITE),
    heads=("*", "**"),
)


def _collect(place: Place) -> Iterator[Match]:
    """``a*x+b*x+c -> (a+b)*x+c`` for every x that some terms have, but not all."""
    found = whole_sum(place)
    if len(found) < 3:
        return
    for x in dict.fromkeys(b for t in found for b in bases(t.expr)):
        rest = {t.at: divided_by_factor(t.expr, x) for t in found}
        own = [t for t in found if rest[t.at] is not None]
        if not 2 <= len(own) < len(found):
            continue
        inner = common_root(tuple(t.at for t in found), tuple(t.at for t in own))
        left = {t.at: e for t in own if (e := rest[t.at]) is not None}
        if all(is_literal(e) for e in left.values()):
            continue
        others = tuple(t for t in found if t not in own)
        coefficients, unlettered = lettered("ab", tuple(signed(left[t.at], t.inverse) for t in own))
        rests, apart = lettered("c", values(others))
        form = " ".join(filter(None, (more(unlettered), _APART if apart else "")))
        letters = (("x", x), *coefficients, *rests)
        if inner is not None:
            group = part(place.expr, inner)
            total = group
            for at, new in left.items():
                total = with_part(total, at[len(inner) :], new)
            product = beside(x, total, own[0].expr)
            result = with_part(place.expr, inner, product)
            # the product is what the gathered terms add up to already
            inside = operations(total) if is_polynomial(total, x) else ()
            yield Match(
                result,
                letters,
                expr_text(x),
                form,
                within=(product, *inside),
                unlettered=unlettered,
            )
            continue
        result = _gathered(place.expr, own, left, x)
        yield Match(
            result,
            letters,
            expr_text(x),
            form,
            needs=(Need(CANCELS, "no-cancellation", (_group(own), *values(others))),),
            within=tuple(operations(result)) if is_polynomial(result, x) else (),
            unlettered=(*unlettered, *apart),
        )


def _group(own: list[Operand]) -> Expr:
    """The terms that are gathered, as a sum of their own."""
    total = signed(own[0].expr, own[0].inverse)
    for term in own[1:]:
        total = Binary("-" if term.inverse else "+", total, term.expr)
    return total


def _gathered(expr: Expr, own: list[Operand], left: dict[At, Expr], x: Expr) -> Expr:
    """The sum with one product in the place of the first of the terms, and without the others."""
    first = own[0]
    total = left[first.at]
    for term in own[1:]:
        minus = term.inverse != first.inverse
        total = Binary("-" if minus else "+", total, left[term.at])
    changed = with_part(expr, first.at, beside(x, total, first.expr))
    result = without_terms(changed, *(term.at for term in own[1:]))
    if result is None:
        raise ValueError("the first of the terms stays")
    return result


def common_root(all_places: tuple[At, ...], places: tuple[At, ...]) -> At | None:
    """The root of a part of a sum whose terms are exactly those at ``places``, or None."""
    depth = 0
    while len({p[: depth + 1] for p in places}) == 1 and len(places[0]) > depth:
        depth += 1
    root = places[0][:depth]
    inside = tuple(p for p in all_places if p[:depth] == root)
    return root if inside == places else None


_COLLECTED: Final = (
    (MORE, "a*x+b*x+...+c -> (a+b+...)*x+c"),
    (_APART, "a*x+b*x+c+... -> (a+b)*x+c+..."),
    (f"{MORE} {_APART}", "a*x+b*x+...+c+... -> (a+b+...)*x+c+..."),
)
COLLECT: Final = Rule(
    "collect-terms",
    "a*x+b*x+c -> (a+b)*x+c",
    "range",
    "distributive-law",
    needing(_collect),
    (CANCELS,),
    heads=SUMS,
    forms=_COLLECTED,
)
#: The terms are added in the order in which they were.
COLLECT_NEIGHBOURS: Final = Rule(
    "collect-neighbours",
    "a*x+b*x+c -> (a+b)*x+c",
    "range",
    "distributive-law",
    needing_nothing(_collect),
    heads=SUMS,
    forms=_COLLECTED,
)
