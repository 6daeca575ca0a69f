"""Laws that turn sums into products."""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr, Int, Real, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.walk import iter_expr
from steptp_dagster.strategies.algebra.rules import MORE, SUMS, Match, Place, Rule, lettered, more
from steptp_dagster.strategies.algebra.trees import (
    Operand,
    bases,
    divided_by_factor,
    factors,
    is_literal,
    is_negative,
    is_one,
    is_sum,
    plus,
    signed,
    terms,
    times,
    with_part,
)

#: Parts and degrees of the polynomials that are gathered without looking at the size of data.
_LARGEST: Final = 2.0**96
_DEGREE: Final = 4


def whole_sum(place: Place) -> tuple[Operand, ...]:
    """The terms of the sum at a place; none where it is no sum or part of a larger one."""
    around = place.around
    if around is not None and (is_sum(around) or isinstance(around, Unary)):
        return ()
    found = terms(place.expr)
    return found if len(found) > 1 else ()


def square_base(expr: Expr) -> Expr | None:
    """``u`` of ``u*u`` and ``u**2``, else None."""
    match expr:
        case Binary(op="*", left=left, right=right) if left == right:
            return left
        case Binary(op="**", left=left, right=Int() | Real() as n) if n.value == 2:
            return left
        case Int(1):
            return expr
    return None


def common_factors(found: tuple[Operand, ...]) -> tuple[Expr, ...]:
    """Factors that all of the terms have, in the order of the first."""
    rest = found[1:]
    return tuple(c for c in bases(found[0].expr) if all(divided_by_factor(t.expr, c) for t in rest))


def beside(factor: Expr, rest: Expr, first: Expr) -> Expr:
    """``factor*rest``, or ``rest*factor`` where the factor is the last one of ``first``."""
    own = factors(first)
    last = len(own) > 1 and own[-1].expr == factor and own[0].expr != factor
    return times(rest, factor) if last else times(factor, rest)


def is_polynomial(expr: Expr, x: Expr) -> bool:
    """Whether an expression adds and multiplies nothing but ``x`` and literals of moderate size.

    Then gathering takes no value out of range: where x is at least 1 in size, what is computed
    now is no larger than what was computed with one x more; elsewhere no part exceeds ``_LARGEST``.
    """
    return _bound(expr, x) is not None


def _bound(expr: Expr, x: Expr) -> float | None:
    """What a polynomial does not exceed for x up to 1 in size, nor any part of it; else None."""
    if expr == x:
        return 1.0
    match expr:
        case Int() | Real():
            found = abs(float(expr.value))
        case Unary(operand=inner):
            return _bound(inner, x)
        case Binary(op="**", left=base, right=Int(n)) if 0 <= n <= _DEGREE:
            low = _bound(base, x)
            if low is None:
                return None
            found = max(low, 1.0) ** n
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            first, second = _bound(left, x), _bound(right, x)
            if first is None or second is None:
                return None
            found = first * second if op == "*" else first + second
        case _:
            return None
    return found if found <= _LARGEST else None


def operations(expr: Expr) -> Iterator[Expr]:
    """The operators in an expression, subscripts included."""
    for node in iter_expr(expr):
        if isinstance(node, Binary):
            yield node


def _common_factor(place: Place) -> Iterator[Match]:
    found = whole_sum(place)
    if not found:
        return
    for factor in common_factors(found):
        total, rest = place.expr, []
        for term in found:
            left = divided_by_factor(term.expr, factor)
            if left is not None:
                rest.append(signed(left, term.inverse))
                total = with_part(total, term.at, left)
        if all(is_literal(r) for r in rest):
            continue
        result = beside(factor, total, found[0].expr)
        letters, unlettered = lettered("bc", tuple(rest))
        yield Match(
            result=result,
            letters=(("a", factor), *letters),
            choice=expr_text(factor),
            form=more(unlettered),
            unlettered=unlettered,
            within=tuple(operations(result)) if is_polynomial(result, factor) else (),
        )


COMMON_FACTOR: Final = Rule(
    "common-factor",
    "a*b+a*c -> a*(b+c)",
    "range",
    "distributive-law",
    _common_factor,
    heads=SUMS,
    forms=((MORE, "a*b+a*c+... -> a*(b+c+...)"),),
)


def _square(place: Place, *, minus: bool) -> Iterator[Match]:
    found = whole_sum(place)
    if len(found) != 3:
        return
    squares = [t for t in found if not t.inverse and square_base(t.expr) is not None]
    mixed = [t for t in found if t not in squares]
    if len(squares) != 2 or len(mixed) != 1:
        return
    u, v = (square_base(t.expr) for t in squares)
    term = mixed[0]
    own = factors(term.expr)
    if u is None or v is None or any(f.inverse for f in own):
        return
    if (term.inverse != is_negative(term.expr)) != minus:
        return
    twos = [f for f in own if isinstance(f.expr, Int | Real) and f.expr.value == 2]
    rest = [f.expr for f in own if f not in twos]
    wanted = [e for e in (u, v) if not is_one(e)]
    if len(twos) != 1 or not wanted or rest not in (wanted, wanted[::-1]):
        return
    yield Match(result=Binary("**", plus(u, v, minus=minus), Int(2)), letters=(("a", u), ("b", v)))


def _square_of_sum(place: Place) -> Iterator[Match]:
    return _square(place, minus=False)


def _square_of_difference(place: Place) -> Iterator[Match]:
    return _square(place, minus=True)


SQUARE_OF_SUM: Final = Rule(
    "square-of-sum",
    "a**2+2*a*b+b**2 -> (a+b)**2",
    "range",
    "binomial-law",
    _square_of_sum,
    heads=SUMS,
)
SQUARE_OF_DIFFERENCE: Final = Rule(
    "square-of-difference",
    "a**2-2*a*b+b**2 -> (a-b)**2",
    "range",
    "binomial-law",
    _square_of_difference,
    heads=SUMS,
)


def _difference_of_squares(place: Place) -> Iterator[Match]:
    found = whole_sum(place)
    if len(found) != 2 or found[0].inverse or not found[1].inverse:
        return
    u, v = (square_base(t.expr) for t in found)
    if u is None or v is None or u == v or (is_literal(u) and is_literal(v)):
        return
    yield Match(
        result=Binary("*", plus(u, v, minus=True), plus(u, v)), letters=(("a", u), ("b", v))
    )


DIFFERENCE_OF_SQUARES: Final = Rule(
    "difference-of-squares",
    "a**2-b**2 -> (a-b)*(a+b)",
    "range",
    "binomial-law",
    _difference_of_squares,
    heads=SUMS,
)
