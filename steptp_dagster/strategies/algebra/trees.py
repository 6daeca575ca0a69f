"""Places in expressions, and sums and products as lists of their operands.

A *place* is a tuple of positions among ``walk.children``, from the root of an expression down.
Nothing here reorders: an operand that goes leaves all others where they are.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from steptp_dagster.leir.ast import Access, Binary, Expr, Index, Int, Real, Unary
from steptp_dagster.leir.walk import children, iter_expr, with_children

At = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a sum or product, with its place below the root of it.

    ``inverse``: it is subtracted, or divided by.
    """

    at: At
    expr: Expr
    inverse: bool


def part(expr: Expr, at: At) -> Expr:
    """The part of an expression at a place. Raises IndexError where there is none."""
    for i in at:
        expr = children(expr)[i]
    return expr


def with_part(expr: Expr, at: At, new: Expr) -> Expr:
    """The expression with the part at a place replaced."""
    if not at:
        return new
    below = list(children(expr))
    below[at[0]] = with_part(below[at[0]], at[1:], new)
    return with_children(expr, tuple(below))


def parts_of(expr: Expr, at: At = ()) -> Iterator[tuple[At, Expr]]:
    """All parts with their places, pre-order, subscripts included."""
    yield at, expr
    for i, child in enumerate(children(expr)):
        yield from parts_of(child, (*at, i))


def is_literal(expr: Expr) -> bool:
    """Whether an expression is made of literals alone."""
    if isinstance(expr, Access | Index):
        return False
    return all(map(is_literal, children(expr)))


def negated(expr: Expr) -> Expr:
    """``-expr``; a minus sign in front goes instead."""
    return expr.operand if isinstance(expr, Unary) else Unary("-", expr)


def signed(expr: Expr, minus: bool) -> Expr:
    """``-expr`` where ``minus``, else ``expr``."""
    return negated(expr) if minus else expr


def plus(left: Expr, right: Expr, *, minus: bool = False) -> Expr:
    """``left+right``, or ``left-right``; a negated right operand turns the sign around."""
    if isinstance(right, Unary):
        return Binary("+" if minus else "-", left, right.operand)
    return Binary("-" if minus else "+", left, right)


def times(left: Expr, right: Expr) -> Expr:
    """``left*right``; a factor 1 goes."""
    if is_one(left):
        return right
    return left if is_one(right) else Binary("*", left, right)


def is_one(expr: Expr) -> bool:
    """Whether the expression is a literal 1."""
    return isinstance(expr, Int | Real) and expr.value == 1


def is_sum(expr: Expr) -> bool:
    """Whether the outermost operator adds or subtracts."""
    return isinstance(expr, Binary) and expr.op in ("+", "-")


def is_product(expr: Expr) -> bool:
    """Whether the outermost operator multiplies or divides."""
    return isinstance(expr, Binary) and expr.op in ("*", "/")


def terms(expr: Expr) -> tuple[Operand, ...]:
    """The terms of a sum, left to right; another expression is its own only term."""
    return tuple(_operands(expr, ("+", "-"), (), False))


def factors(expr: Expr) -> tuple[Operand, ...]:
    """The factors and divisors of a product, left to right; signs inside it are left out."""
    return tuple(_operands(expr, ("*", "/"), (), False))


def _operands(expr: Expr, ops: tuple[str, str], at: At, inverse: bool) -> Iterator[Operand]:
    if isinstance(expr, Binary) and expr.op in ops:
        yield from _operands(expr.left, ops, (*at, 0), inverse)
        yield from _operands(expr.right, ops, (*at, 1), inverse != (expr.op == ops[1]))
    elif isinstance(expr, Unary):
        # a minus sign turns a term around; in a product it stays where it is
        yield from _operands(expr.operand, ops, (*at, 0), inverse != (ops[0] == "+"))
    else:
        yield Operand(at, expr, inverse)


def is_negative(product: Expr) -> bool:
    """Whether the signs inside a product make up one minus."""
    minus = False
    stack = [product]
    while stack:
        match stack.pop():
            case Unary(operand=inner):
                minus = not minus
                stack.append(inner)
            case Binary(op="*" | "/", left=left, right=right):
                stack += [left, right]
            case _:
                pass
    return minus


def without_terms(expr: Expr, *places: At) -> Expr | None:
    """A sum without the terms at some places; None where nothing is left."""
    return _left(expr, frozenset(places), ())


def _left(expr: Expr, places: frozenset[At], at: At) -> Expr | None:
    if at in places:
        return None
    if not any(place[: len(at)] == at for place in places):
        return expr
    if isinstance(expr, Unary):
        inner = _left(expr.operand, places, (*at, 0))
        return None if inner is None else negated(inner)
    if not isinstance(expr, Binary):
        raise ValueError(f"no term at {at}")
    left, right = _left(expr.left, places, (*at, 0)), _left(expr.right, places, (*at, 1))
    if left is None:
        return None if right is None else signed(right, expr.op == "-")
    return left if right is None else plus(left, right, minus=expr.op == "-")


def without_factors(expr: Expr, *places: At) -> Expr:
    """A product without the factors and divisors at some places; 1 where nothing is left."""
    left = _dropped(expr, frozenset(places), ())
    return Int(1) if left is None else left


def _dropped(expr: Expr, places: frozenset[At], at: At) -> Expr | None:
    """None stands for 1."""
    if at in places:
        return None
    if not any(place[: len(at)] == at for place in places):
        return expr
    if isinstance(expr, Unary):
        inner = _dropped(expr.operand, places, (*at, 0))
        return negated(Int(1) if inner is None else inner)
    if not isinstance(expr, Binary):
        raise ValueError(f"no factor at {at}")
    left, right = _dropped(expr.left, places, (*at, 0)), _dropped(expr.right, places, (*at, 1))
    if right is None:
        return left
    if left is None:
        return right if expr.op == "*" else Binary("/", Int(1), right)
    return Binary(expr.op, left, right)


def factor_place(product: Expr, factor: Expr, *, inverse: bool = False) -> At | None:
    """Where a factor, or a divisor, first stands in a product; None where it does not."""
    for found in factors(product):
        if found.inverse == inverse and found.expr == factor:
            return found.at
    return None


def divided_by_factor(product: Expr, factor: Expr) -> Expr | None:
    """What is left of a product without a factor, or with one power of it less; else None."""
    at = factor_place(product, factor)
    if at is not None:
        return without_factors(product, at)
    for found in factors(product):
        match found.expr:
            case Binary(op="**", left=base, right=Int(n)) if n > 1 and not found.inverse:
                m = 1 if factor == base else exponent_of(factor, base)
                if 0 < m < n:
                    less = base if n - m == 1 else Binary("**", base, Int(n - m))
                    return with_part(product, found.at, less)
            case _:
                pass
    return None


def exponent_of(power: Expr, base: Expr) -> int:
    """``n`` of ``base**n`` with a literal integer, else 0."""
    match power:
        case Binary(op="**", left=own, right=Int(n)) if own == base:
            return n
    return 0


def sums_in(expr: Expr) -> Iterator[Expr]:
    """The sum itself and the sums that are terms of it."""
    if isinstance(expr, Unary):
        yield from sums_in(expr.operand)
    elif isinstance(expr, Binary) and expr.op in ("+", "-"):
        yield expr
        yield from sums_in(expr.left)
        yield from sums_in(expr.right)


def subtracted(expr: Expr, part: Expr) -> bool:
    """Whether a sum in an expression subtracts a part, or a multiple or quotient of it."""
    return any(
        term.inverse and part in (term.expr, *_multiplied(term.expr))
        for node in iter_expr(expr)
        if is_sum(node) or isinstance(node, Unary)
        for term in terms(node)
    )


def _multiplied(product: Expr) -> Iterator[Expr]:
    """What a product is a multiple of: its factors, and itself without one of them."""
    yield from bases(product)
    for base in bases(product):
        rest = divided_by_factor(product, base)
        if rest is not None:
            yield rest
    if isinstance(product, Binary) and product.op == "/":
        yield product.left


def bases(product: Expr) -> tuple[Expr, ...]:
    """The factors of a product, divisors aside, powers by their base, each once; no 1."""
    found = []
    for one in factors(product):
        if one.inverse or is_one(one.expr):
            continue
        match one.expr:
            case Binary(op="**", left=base, right=Int(n)) if n > 1:
                found += [one.expr, base]
            case _:
                found.append(one.expr)
    return tuple(dict.fromkeys(found))


def constant_sum(b: Expr, c: Expr, *, minus: bool = False) -> Decimal | None:
    """``b+c``, or ``b-c``, if it is the same number whatever the two read; else None.

    Terms are compared by their text; those that are not literals must be opposite, one by one.
    """
    total = Decimal(0)
    signs: Counter[Expr] = Counter()
    for expr, side in ((b, 1), (c, -1 if minus else 1)):
        for term in terms(expr):
            sign = -side if term.inverse else side
            match term.expr:
                case Int(value):
                    total += sign * value
                case Real(text):
                    total += sign * Decimal(text)
                case other:
                    signs[other] += sign
    return None if any(signs.values()) else total
