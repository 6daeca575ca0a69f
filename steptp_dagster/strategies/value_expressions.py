"""What is known of an expression, given what is known of the tensors that it reads."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

from steptp_dagster.leir.accesses import Statement
from steptp_dagster.leir.ast import (
    LOGICAL,
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
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.typing import Typed
from steptp_dagster.strategies import value_operations as operations
from steptp_dagster.strategies.intervals import INF
from steptp_dagster.strategies.value_facts import ValueFact
from steptp_dagster.strategies.value_operations import joined, stated
from steptp_dagster.strategies.value_rows import RowMaxima

_ARITHMETIC: Final = {
    "+": operations.added,
    "-": operations.subtracted,
    "//": operations.floor_divided,
    "%": operations.remainder,
    "**": operations.raised,
}
_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class ExpressionFacts(ABC):
    """Facts of expressions; who derives from this says what is known of a read."""

    _rows: RowMaxima

    @abstractmethod
    def _read(self, access: Access, statement: Statement) -> ValueFact | None:
        """The fact of what an equation reads; None while that has no value yet."""

    def _fact(
        self, typed: Typed, statement: Statement, known: Mapping[Expr, ValueFact]
    ) -> ValueFact | None:
        """The fact of a typed expression; None while an operand has no value yet.

        ``known``: what the conditions around it say about whole sub-expressions.
        """
        found = self._plain(typed, statement, known)
        if found is None or not known:
            return found
        more = known.get(typed.expr)
        return found if more is None else _both(found, more)

    def _plain(
        self, typed: Typed, statement: Statement, known: Mapping[Expr, ValueFact]
    ) -> ValueFact | None:
        expr, dtype = typed.expr, typed.dtype
        if isinstance(expr, Access):
            return self._read(expr, statement)
        if isinstance(expr, Int):
            return operations.literal(float(expr.value), dtype, exactly=abs(expr.value) <= 2**53)
        if isinstance(expr, Real):
            return operations.literal(expr.value, dtype, exactly=_is_binary(expr.text))
        if isinstance(expr, Index):
            box = statement.bounds.box.get(expr.name)
            return None if box is None else stated(box, DTYPES["i64"], "the range of a loop")
        if isinstance(expr, Inf):
            return operations.infinity(dtype)
        if isinstance(expr, Compare) or (isinstance(expr, Binary) and expr.op in LOGICAL):
            return ValueFact(0.0, 1.0, False, True, True, False, True, "a truth value")
        if isinstance(expr, Call) and expr.function == "if_then_else":
            return self._branches(typed, statement, known)
        operands = []
        for operand in typed.operands:
            found = self._fact(operand, statement, known)
            if found is None:
                return None
            operands.append(operations.converted(found, dtype))
        if isinstance(expr, Unary):
            return operations.negated(operands[0], dtype)
        if isinstance(expr, Binary):
            return self._binary(expr, typed, (operands[0], operands[1]), statement)
        name = expr.function
        if name in ("max", "min"):
            pick = operations.larger if name == "max" else operations.smaller
            return pick(operands[0], operands[1], dtype)
        return operations.applied(name, operands[0], dtype)

    def _binary(
        self, expr: Binary, typed: Typed, operands: tuple[ValueFact, ValueFact], place: Statement
    ) -> ValueFact:
        (x, y), dtype = operands, typed.dtype
        if expr.op == "*":
            if expr.left == expr.right:
                return operations.squared(x, dtype)
            return operations.multiplied(x, y, dtype)
        if expr.op == "/":
            part = x.nonnegative and self._is_part(expr, typed.operands[1], place)
            return operations.divided(x, y, dtype, part=part)
        found = _ARITHMETIC[expr.op](x, y, dtype)
        if expr.op == "-" and dtype.is_float:
            if self._rows.below(expr.left, expr.right, place):
                return _clipped(found, -INF, 0.0, "a score minus the maximum of its row")
            if self._rows.below(expr.right, expr.left, place):
                return _clipped(found, 0.0, INF, "the maximum of a row minus a score")
        return found

    def _is_part(self, quotient: Binary, divisor: Typed, place: Statement) -> bool:
        """Whether the divisor is the dividend plus something that is not negative."""
        whole = quotient.right
        if not isinstance(whole, Binary) or whole.op != "+" or not divisor.dtype.is_float:
            return False
        for part, other in zip((whole.left, whole.right), divisor.operands[::-1], strict=True):
            if part == quotient.left:
                rest = self._fact(other, place, {})
                return rest is not None and rest.nonnegative
        return False

    def _branches(
        self, typed: Typed, statement: Statement, known: Mapping[Expr, ValueFact]
    ) -> ValueFact | None:
        condition, yes, no = typed.operands
        found: ValueFact | None = None
        for holds, branch in ((True, yes), (False, no)):
            more = self._conditions(condition, statement, holds=holds)
            value = self._fact(branch, statement, _merged(known, more))
            if value is not None:
                value = operations.converted(value, typed.dtype)
                found = value if found is None else joined(found, value)
        return found

    def _conditions(
        self, condition: Typed, statement: Statement, *, holds: bool
    ) -> dict[Expr, ValueFact]:
        """What a comparison of a tensor or an index says about it in the branch."""
        expr = condition.expr
        if not isinstance(expr, Compare) or len(expr.ops) != 1:
            return {}
        if len({operand.dtype.is_float for operand in condition.operands}) > 1:
            return {}
        left, right = (self._fact(o, statement, {}) for o in condition.operands)
        if left is None or right is None:
            return {}
        op = expr.ops[0] if holds else _OPPOSITE[expr.ops[0]]
        found: dict[Expr, ValueFact] = {}
        for side, own, other, how in (
            (expr.operands[0], left, right, op),
            (expr.operands[1], right, left, _MIRRORED[op]),
        ):
            # a comparison with NaN does not hold: its failure says nothing of the other side
            if not isinstance(side, Access | Index) or how == "!=" or (other.nan and not holds):
                continue
            low = other.lower if how in (">", ">=", "==") else -INF
            high = other.upper if how in ("<", "<=", "==") else INF
            nan = own.nan and not holds
            found[side] = ValueFact(low, high, nan, False, False, False, False, "a condition")
        return found


def _clipped(fact: ValueFact, low: float, high: float, why: str) -> ValueFact:
    lower, upper = max(fact.lower, low), min(fact.upper, high)
    return fact._replace(lower=min(lower, upper), upper=max(lower, upper), why=why)


def _both(x: ValueFact, y: ValueFact) -> ValueFact:
    """What follows from two facts about one value."""
    lower, upper = max(x.lower, y.lower), min(x.upper, y.upper)
    if lower > upper:
        return x  # the branch is never taken
    why = x.why if (lower, upper) == x.interval else y.why
    return ValueFact(
        lower,
        upper,
        x.nan and y.nan,
        x.whole or y.whole,
        x.plus or y.plus or lower > 0.0,
        x.exact_nonzero or y.exact_nonzero or lower > 0.0 or upper < 0.0,
        x.exact_finite,
        why,
    )


def _merged(
    known: Mapping[Expr, ValueFact], more: Mapping[Expr, ValueFact]
) -> Mapping[Expr, ValueFact]:
    """What both say, about whatever one of them speaks of."""
    if not known or not more:
        return known or more
    both = {e: _both(known[e], fact) if e in known else fact for e, fact in more.items()}
    return {**known, **both}


@lru_cache(maxsize=1024)
def _is_binary(literal: str) -> bool:
    """Whether a decimal literal is a binary64 number."""
    return Fraction(literal) == Fraction(float(literal))
