"""Derivations by trial: expressions evaluated with random elements in place of what they read.

Nothing is proved here. A claim that a strategy proved is tried once more, in another way.
"""

import math
import operator
import random
from collections.abc import Callable, Mapping
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Expr,
    Index,
    Inf,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import children, iter_expr, with_children
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    dtype_of_part,
    equation_at,
    expr_of,
    part_named,
)
from steptp_dagster.strategies.algebra.data import values_of
from steptp_dagster.strategies.facts import Value
from steptp_dagster.strategies.intervals import LARGEST
from steptp_dagster.strategies.values import ValueFacts

#: Draws of operand values on which two sides of a law are compared, and how many must be usable.
_DRAWS: Final = 16
_FEWEST_DRAWS: Final = 3
_TOLERANCE: Final = 1e-10
#: Powers of two that elements of all sizes have.
_SIZES: Final = 80.0
#: Bounds of elements beyond this are cut off for the comparison.
_WIDEST: Final = 64.0


def same_algebra(before: SignedProgram, after: SignedProgram, path: Value) -> bool:
    """Whether the right sides at ``path`` are one function of the elements that they read.

    Compared by evaluation, at random values of all elements and indices, in binary64. Where the
    right sides as a whole have no values at most of them, the parts that differ are compared.
    """
    return _equal(equation_at(before, path).value, equation_at(after, path).value, before)


def same_value(
    before: SignedProgram, after: SignedProgram, path: Value, a: Value, b: Value
) -> bool:
    """Whether a part of a right side before and one after are one function of what they read."""
    new = expr_of(b)
    if new not in tuple(iter_expr(equation_at(after, path).value)):
        raise DerivationError(f"{b!r} is no part of the right side of {path!r}")
    return _equal(part_named(before, path, a), new, before)


def range_kept(signed: SignedProgram, path: Value, old: Value, new: Value) -> bool:
    """Whether some new values stay within the range of a part's type wherever its own do.

    Tried with elements of all sizes, as far as their bounds reach.
    """
    part = part_named(signed, path, old)
    limit = LARGEST[dtype_of_part(signed, path, part)]
    texts = new if isinstance(new, tuple) else (new,)
    parts = tuple(expr_of(text) for text in texts)
    facts = values_of(signed)
    usable = 0
    for draw in range(2 * _DRAWS):
        own = _largest(part, draw, facts)
        if own is not None and own <= limit:
            found = [_largest(expr, draw, facts) for expr in parts]
            if any(x is not None and not x <= limit for x in found):
                return False
            usable += 1
    if usable < _FEWEST_DRAWS:
        raise DerivationError(f"{old!r} has too few values to try")
    return True


def _largest(expr: Expr, draw: int, facts: ValueFacts) -> float | None:
    """The largest value on the way to that of an expression; None where it has none."""
    evaluation = _OfAllSizes(draw, facts)
    try:
        evaluation.of(expr)
    except OverflowError:
        return math.inf
    except (ArithmeticError, ValueError):
        return None
    return evaluation.largest


def _equal(old: Expr, new: Expr, before: SignedProgram) -> bool:
    """Whether two expressions agree; where they have no values, the parts that differ."""
    facts = values_of(before)
    found = _compared(old, new, facts)
    while found is None:
        inner = _differing(old, new)
        if inner is None:
            raise DerivationError("the right sides have no values to compare")
        old, new = inner
        found = _compared(old, new, facts)
    return found


def _compared(old: Expr, new: Expr, facts: ValueFacts) -> bool | None:
    """Whether two expressions have equal values; None with too few values to tell."""
    usable = 0
    for draw in range(_DRAWS):
        try:
            a, b = (_Evaluation(draw, facts).of(expr) for expr in (old, new))
        except (ArithmeticError, ValueError):
            continue
        if math.isnan(a) or math.isinf(a):
            continue
        usable += 1
        if not abs(a - b) <= _TOLERANCE * max(1.0, abs(a), abs(b)):
            return False
    return True if usable >= _FEWEST_DRAWS else None


def _differing(old: Expr, new: Expr) -> tuple[Expr, Expr] | None:
    """The only operands in which two expressions differ, or None."""
    first, second = children(old), children(new)
    if len(first) != len(second) or with_children(old, second) != new:
        return None
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    return pairs[0] if len(pairs) == 1 else None


class _Evaluation:
    """Expressions as numbers. Elements and indices are drawn at random within their bounds.

    Odd draws have both signs where the bounds admit them.
    """

    def __init__(self, draw: int, facts: ValueFacts) -> None:
        self.draw = draw
        self.facts = facts

    def _drawn(self, expr: Access | Index) -> float:
        drawn = random.Random(f"{self.draw} {expr_text(expr)}")
        value = drawn.uniform(0.5, 1.5)
        if self.draw % 2 and drawn.random() < 0.5:
            value = -value
        if isinstance(expr, Index):
            return abs(value)
        known = self.facts.tensor(expr.name)
        if known.lower <= value <= known.upper:
            return value
        if known.lower <= -value <= known.upper:
            return -value
        low, high = max(known.lower, -_WIDEST), min(known.upper, _WIDEST)
        return low + (high - low) * drawn.random() if low <= high else value

    def of(self, expr: Expr) -> float:
        """The value. Raises ArithmeticError or ValueError outside the domain."""
        match expr:
            case Int():
                return float(expr.value)
            case Real():
                return expr.value
            case Inf():
                return math.inf
            case Access() | Index():
                return self._drawn(expr)
            case Unary():
                return -self.of(expr.operand)
            case Compare():
                values = [self.of(operand) for operand in expr.operands]
                pairs = zip(values, expr.ops, values[1:], strict=False)
                return float(all(_COMPARE[op](a, b) for a, op, b in pairs))
            case Binary(op="&" | "|"):
                sides = bool(self.of(expr.left)), bool(self.of(expr.right))
                return float(all(sides) if expr.op == "&" else any(sides))
            case Binary():
                return float(_BINARY[expr.op](self.of(expr.left), self.of(expr.right)))
            case Call(function="if_then_else"):
                condition, yes, no = expr.arguments
                return self.of(yes if self.of(condition) else no)
            case Call():
                return float(_CALLS[expr.function](*(self.of(a) for a in expr.arguments)))


class _OfAllSizes(_Evaluation):
    """Elements from tiny to huge, within their bounds, and the largest value on the way."""

    def __init__(self, draw: int, facts: ValueFacts) -> None:
        super().__init__(draw, facts)
        self.largest = 0.0

    def _drawn(self, expr: Access | Index) -> float:
        value = super()._drawn(expr)
        if isinstance(expr, Index):
            return value
        scaled = value * 2.0 ** random.Random(f"{self.draw} size {expr_text(expr)}").uniform(
            -_SIZES, _SIZES
        )
        known = self.facts.tensor(expr.name)
        return scaled if known.lower <= scaled <= known.upper else value

    def of(self, expr: Expr) -> float:
        """The value, noting how large it is."""
        value = super().of(expr)
        self.largest = max(self.largest, abs(value))
        return value


_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_BINARY: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": math.pow,
}
_CALLS: Final[Mapping[str, Callable[..., float]]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "erf": math.erf,
    "max": max,
    "min": min,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
}


PAIRED: Final[Mapping[str, Derivation]] = {f.__name__: f for f in (same_algebra, same_value)}
KINDS: Final[Mapping[str, Derivation]] = {"range_kept": range_kept}
