"""Laws that move a factor into a choice and out of it: branches, and the larger or smaller of two.

They are exact. Every branch is multiplied as the chosen one was. And rounding keeps order, so the
larger of two products by one positive number is the product of the larger one, bit for bit.
"""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Binary, Call, Expr, Int, Real
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.strategies.algebra.rules import PRODUCTS, Match, Need, Place, Rule
from steptp_dagster.strategies.algebra.trees import is_literal, is_one

POSITIVE: Final = "factor-may-not-be-positive"
INFINITE: Final = "factor-may-be-infinite"
_CHOICES: Final = ("max", "min")


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Int | Real) and expr.value == 0


def _scaled(product: Binary, chosen: Expr, new: Expr, *, zero: bool = False) -> Expr:
    """The product or quotient with another operand in the place of ``chosen``."""
    if zero and _is_zero(new):
        return new  # zero times a positive number
    if product.left is chosen:
        return Binary(product.op, new, product.right)
    return product.left if is_one(new) else Binary(product.op, product.left, new)


def _sides(expr: Expr) -> Iterator[tuple[Binary, Expr, Expr]]:
    """A product with each operand that may be a choice, and the other one; of a quotient one."""
    if isinstance(expr, Binary) and expr.op in ("*", "/"):
        yield expr, expr.left, expr.right
        if expr.op == "*" and expr.right is not expr.left:
            yield expr, expr.right, expr.left


def _into_branches(place: Place) -> Iterator[Match]:
    """``a*if_then_else(p,b,c) -> if_then_else(p,a*b,a*c)``, and for quotients."""
    for product, chosen, factor in _sides(place.expr):
        match chosen:
            case Call(function="if_then_else", arguments=(condition, yes, no)):
                branches = tuple(_scaled(product, chosen, e) for e in (yes, no))
                yield Match(
                    Call("if_then_else", (condition, *branches)),
                    (("a", factor), ("b", yes), ("c", no)),
                    expr_text(chosen) if isinstance(factor, Call) else "",
                    _form("", product.op),
                )


def _into_extremum(place: Place) -> Iterator[Match]:
    """``a*max(b,c) -> max(a*b,a*c)`` for a positive factor, and for ``min`` and quotients."""
    for product, chosen, factor in _sides(place.expr):
        if isinstance(chosen, Call) and chosen.function in _CHOICES:
            both = tuple(_scaled(product, chosen, e, zero=True) for e in chosen.arguments)
            yield Match(
                Call(chosen.function, both),
                (("a", factor), *zip("bc", chosen.arguments, strict=True)),
                expr_text(chosen) if isinstance(factor, Call) else "",
                _form(chosen.function, product.op),
                needs=_positive(factor),
            )


def _form(name: str, op: str) -> str:
    """Which form of a law is applied: of ``max`` and products, the law itself."""
    return " ".join(filter(None, ("min" if name == "min" else "", "/" if op == "/" else "")))


def _positive(factor: Expr) -> tuple[Need, ...]:
    return (Need(POSITIVE, "positive", (factor,)), Need(INFINITE, "finite", (factor,)))


def _operands(expr: Expr) -> tuple[tuple[str, Expr, Expr], ...]:
    """Ways to read an expression as a product or quotient: operator, factor, what is left."""
    found: list[tuple[str, Expr, Expr]] = []
    if isinstance(expr, Binary) and expr.op == "*":
        found = [("*", expr.left, expr.right), ("*", expr.right, expr.left)]
    elif isinstance(expr, Binary) and expr.op == "/":
        found = [("/", expr.right, expr.left)]
    return tuple(found)


def _shared(first: Expr, second: Expr, *, zero: bool) -> Iterator[tuple[str, Expr, Expr, Expr]]:
    """Factors of both expressions with what is left of each.

    An expression is once itself; where ``zero``, a literal 0 is 0 times anything.
    """
    ways = [_operands(e) for e in (first, second)]
    candidates = [(op, factor) for own in ways for op, factor, _ in own]
    for op, factor in dict.fromkeys((*candidates, ("*", first), ("*", second))):
        if is_one(factor):
            continue
        left = [_rest(e, op, factor, zero=zero) for e in (first, second)]
        if left[0] is not None and left[1] is not None:
            yield op, factor, left[0], left[1]


def _rest(expr: Expr, op: str, factor: Expr, *, zero: bool) -> Expr | None:
    if zero and _is_zero(expr):
        return expr
    for own, found, rest in _operands(expr):
        if (own, found) == (op, factor):
            return rest
    return Int(1) if op == "*" and expr == factor else None


def _joined(op: str, factor: Expr, choice: Expr, first: Expr) -> Expr:
    """``factor*choice``, the factor on the side where ``first`` has it."""
    if op == "/" or (isinstance(first, Binary) and first.right == factor != first.left):
        return Binary(op, choice, factor)
    return Binary(op, factor, choice)


def _out_of_branches(place: Place) -> Iterator[Match]:
    """``if_then_else(p,a*b,a*c) -> a*if_then_else(p,b,c)``."""
    match place.expr:
        case Call(function="if_then_else", arguments=(condition, yes, no)):
            for op, factor, b, c in _shared(yes, no, zero=False):
                if is_literal(factor) and b == c:
                    continue
                yield Match(
                    _joined(op, factor, Call("if_then_else", (condition, b, c)), yes),
                    (("a", factor), ("b", b), ("c", c)),
                    op + expr_text(factor),
                    _form("", op),
                )


def _out_of_extremum(place: Place) -> Iterator[Match]:
    """``max(a*b,a*c) -> a*max(b,c)`` for a positive factor."""
    match place.expr:
        case Call(function="max" | "min" as name, arguments=(first, second)):
            for op, factor, b, c in _shared(first, second, zero=True):
                if factor in (first, second):
                    continue
                product = second if _is_zero(first) else first
                yield Match(
                    _joined(op, factor, Call(name, (b, c)), product),
                    (("a", factor), ("b", b), ("c", c)),
                    op + expr_text(factor),
                    _form(name, op),
                    needs=_positive(factor),
                )


INTO_BRANCHES: Final = Rule(
    "into-branches",
    "a*if_then_else(p,b,c) -> if_then_else(p,a*b,a*c)",
    "exact",
    "factor-of-branches",
    _into_branches,
    heads=PRODUCTS,
    forms=(("/", "if_then_else(p,b,c)/a -> if_then_else(p,b/a,c/a)"),),
)
OUT_OF_BRANCHES: Final = Rule(
    "out-of-branches",
    "if_then_else(p,a*b,a*c) -> a*if_then_else(p,b,c)",
    "exact",
    "factor-of-branches",
    _out_of_branches,
    heads=("if_then_else",),
    forms=(("/", "if_then_else(p,b/a,c/a) -> if_then_else(p,b,c)/a"),),
)
INTO_EXTREMUM: Final = Rule(
    "into-extremum",
    "a*max(b,c) -> max(a*b,a*c)",
    "exact",
    "monotone-rounding",
    _into_extremum,
    (POSITIVE, INFINITE),
    heads=PRODUCTS,
    forms=(
        ("/", "max(b,c)/a -> max(b/a,c/a)"),
        ("min", "a*min(b,c) -> min(a*b,a*c)"),
        ("min /", "min(b,c)/a -> min(b/a,c/a)"),
    ),
)
OUT_OF_EXTREMUM: Final = Rule(
    "out-of-extremum",
    "max(a*b,a*c) -> a*max(b,c)",
    "exact",
    "monotone-rounding",
    _out_of_extremum,
    (POSITIVE, INFINITE),
    heads=("max", "min"),
    forms=(
        ("/", "max(b/a,c/a) -> max(b,c)/a"),
        ("min", "min(a*b,a*c) -> a*min(b,c)"),
        ("min /", "min(b/a,c/a) -> min(b,c)/a"),
    ),
)
