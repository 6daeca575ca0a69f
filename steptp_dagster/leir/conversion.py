"""From integer expressions to quasi-affine forms, and from conditions to formulas.

Values follow LEIR's integer types: an operation has the widest type of its typed operands
(indices count as i64, literals adapt), and a result that might leave that type is opaque, so
that wrap-around never goes unnoticed.
"""

import itertools
from collections.abc import Callable
from typing import Final

from steptp_dagster.leir.affine import (
    Bounds,
    Form,
    Interval,
    Opaque,
    add,
    floor_div,
    index,
    is_large,
    modulo,
    scale,
)
from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Expr, Index, Int, Unary
from steptp_dagster.leir.dtypes import DTYPES, DType
from steptp_dagster.leir.formulas import (
    UNKNOWN,
    Formula,
    comparison,
    conjunction,
    disjunction,
    simplified,
)

#: Form and integer type of an expression; the type of a literal is None.
Typed = tuple[Form, DType | None]
_Operands = tuple[Form, Form, DType | None]
#: What the value of an access to an integer tensor is known to be.
TableReader = Callable[[Access, "Converter"], Form]

_I64: Final = DTYPES["i64"]
#: More case distinctions than this (from ``min`` and ``max``) make a condition unknown.
_MAX_CASES: Final = 16


def integer_range(dtype: DType) -> Interval:
    """Lowest and highest value of an integer type (bool: 0 and 1)."""
    found = _RANGES.get(dtype.name)
    return _range(dtype) if found is None else found


def _range(dtype: DType) -> Interval:
    if dtype.kind == "bool":
        return 0, 1
    if dtype.signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


_RANGES: Final = {name: _range(dtype) for name, dtype in DTYPES.items() if not dtype.is_float}


def widest(left: DType | None, right: DType | None) -> DType | None:
    """The type of an operation on two integers; None where both are literals."""
    if left is None or right is None:
        return left or right
    if left.signed == right.signed:
        return left if left.bits >= right.bits else right
    unsigned, signed = (left, right) if right.signed else (right, left)
    bits = max(signed.bits, unsigned.bits * 2)
    return DTYPES[f"i{min(bits, 64)}"]


#: Stands for what was not asked yet.
_UNASKED: Final[Typed] = (Form(0), None)


class Converter:
    """Converts expressions below a fixed list of loops.

    ``bounds`` holds the loop indices' ranges; an index outside them makes no form. ``table``
    tells what the value of an integer tensor's element is known to be.
    """

    __slots__ = ("_forms", "_table", "bounds")

    def __init__(self, bounds: Bounds, table: TableReader) -> None:
        self.bounds = bounds
        self._table = table
        #: Forms of compound expressions: one subscript stands in many accesses.
        self._forms: dict[Expr, Typed | None] = {}

    def form(self, expr: Expr) -> Form | None:
        """The form of an integer expression, or None where it is not an integer."""
        if isinstance(expr, Index):  # by far the most frequent subscript
            return index(expr.name) if expr.name in self.bounds.box else None
        typed = self._typed_once(expr)
        return None if typed is None else typed[0]

    def _typed_once(self, expr: Expr) -> Typed | None:
        """Form and type of an expression, kept."""
        found = self._forms.get(expr, _UNASKED)
        if found is _UNASKED:
            found = self._forms[expr] = self._typed(expr)
        return found

    def formula(self, condition: Expr) -> Formula:
        """The formula of a condition; ``UNKNOWN`` where it depends on more than integers."""
        return simplified(self._formula(condition), self.bounds)

    def _opaque(self, expr: Expr, interval: Interval) -> Form:
        return Form(0, ((Opaque(repr(expr), *interval), 1),))

    def _checked(self, expr: Expr, form: Form, dtype: DType | None) -> Typed:
        """The form itself where it cannot leave its type, else an opaque value."""
        low, high = self.bounds.interval(form)
        lowest, highest = integer_range(dtype or _I64)
        if not (lowest <= low and high <= highest):
            return self._opaque(expr, (lowest, highest)), dtype
        if len(form.terms) > 1 and is_large(form):
            return self._opaque(expr, (low, high)), dtype
        return form, dtype

    def _typed(self, expr: Expr) -> Typed | None:
        if isinstance(expr, Binary):
            return self._binary(expr)
        if isinstance(expr, Index):
            return (index(expr.name), _I64) if expr.name in self.bounds.box else None
        if isinstance(expr, Int):
            return self._checked(expr, Form(expr.value), None)
        if isinstance(expr, Access):
            dtype = DTYPES[expr.dtype]
            return (self._table(expr, self), dtype) if dtype.is_integer else None
        if isinstance(expr, Unary):
            inner = self._typed(expr.operand)
            return inner and self._checked(expr, scale(inner[0], -1), inner[1])
        return self._call(expr) if isinstance(expr, Call) else None

    def _operands(self, expr: Binary | Call) -> _Operands | None:
        first, second = (expr.left, expr.right) if isinstance(expr, Binary) else expr.arguments[-2:]
        return self._together(self._typed(first), self._typed(second))

    def _together(self, one: Typed | None, other: Typed | None) -> _Operands | None:
        """Two operands and the type of an operation on them."""
        if one is None or other is None:
            return None
        (left, left_type), (right, right_type) = one, other
        dtype = left_type if left_type is right_type else widest(left_type, right_type)
        lowest, highest = integer_range(dtype or _I64)
        for form in (left, right):
            low, high = self.bounds.interval(form)
            if low < lowest or high > highest:  # a literal that its type cannot hold
                return None
        return left, right, dtype

    def _binary(self, expr: Binary) -> Typed | None:
        op = expr.op
        if op not in ("+", "-", "*", "//", "%"):
            return None
        operands = self._operands(expr)
        if operands is None:
            return None
        left, right, dtype = operands
        if op == "+":
            return self._checked(expr, add(left, right), dtype)
        if op == "-":
            return self._checked(expr, add(left, right, -1), dtype)
        if op == "*":
            if right.is_constant:
                return self._checked(expr, scale(left, right.const), dtype)
            if left.is_constant:
                return self._checked(expr, scale(right, left.const), dtype)
            return self._checked(expr, self._opaque(expr, self._product(left, right)), dtype)
        if not right.is_constant or right.const == 0:
            return self._opaque(expr, integer_range(dtype or _I64)), dtype
        divisor = right.const
        if divisor < 0:
            left = scale(left, -1)
        if op == "//":
            return self._checked(expr, floor_div(left, abs(divisor), self.bounds), dtype)
        remainder = modulo(left, abs(divisor), self.bounds)
        return self._checked(expr, remainder if divisor > 0 else scale(remainder, -1), dtype)

    def _product(self, left: Form, right: Form) -> Interval:
        ends = [a * b for a in self.bounds.interval(left) for b in self.bounds.interval(right)]
        return min(ends), max(ends)

    def _call(self, expr: Call) -> Typed | None:
        """Integer functions: opaque values whose interval is known."""
        if expr.function in ("max", "min"):
            operands = self._operands(expr)
            if operands is None:
                return None
            (a, b), (c, d) = (self.bounds.interval(f) for f in operands[:2])
            pick = max if expr.function == "max" else min
            return self._opaque(expr, (pick(a, c), pick(b, d))), operands[2]
        if expr.function == "if_then_else":
            operands = self._operands(expr)  # the two branches
            if operands is None:
                return None
            (a, b), (c, d) = (self.bounds.interval(f) for f in operands[:2])
            return self._opaque(expr, (min(a, c), max(b, d))), operands[2]
        return None

    def _formula(self, condition: Expr) -> Formula:
        match condition:
            case Binary("&", left, right):
                return conjunction((self._formula(left), self._formula(right)))
            case Binary("|", left, right):
                return disjunction((self._formula(left), self._formula(right)))
            case Compare(operands, ops):
                return conjunction(
                    self._comparison(op, a, b)
                    for op, a, b in zip(ops, operands, operands[1:], strict=False)
                )
        return UNKNOWN

    def _comparison(self, op: str, left: Expr, right: Expr) -> Formula:
        if not _has_choice(left) and not _has_choice(right):
            both = self._together(self._typed_once(left), self._typed_once(right))
            return UNKNOWN if both is None else comparison(op, both[0], both[1])
        cases = []
        for (when_left, a), (when_right, b) in itertools.product(
            self._cases(left), self._cases(right)
        ):
            cases.append((when_left, when_right, a, b))
        if not cases or len(cases) > _MAX_CASES:
            return UNKNOWN
        parts = []
        for when_left, when_right, a, b in cases:
            operands = self._operands(Binary("+", a, b))
            if operands is None:
                return UNKNOWN
            compared = comparison(op, operands[0], operands[1])
            parts.append(conjunction((when_left, when_right, compared)))
        return disjunction(parts)

    def _cases(self, expr: Expr) -> list[tuple[Formula, Expr]]:
        """The expression without ``min`` and ``max``, by cases; too many make no list."""
        if not _has_choice(expr):
            return [(conjunction(()), expr)]
        if isinstance(expr, Call) and expr.function in ("max", "min"):
            found = []
            pairs = itertools.product(
                self._cases(expr.arguments[0]), self._cases(expr.arguments[1])
            )
            for (when_left, a), (when_right, b) in pairs:
                operands = self._operands(Binary("+", a, b))
                if operands is None:
                    return []
                left, right, _ = operands
                first, second = (">=", "<") if expr.function == "max" else ("<=", ">")
                when = (when_left, when_right)
                found.append((conjunction((*when, comparison(first, left, right))), a))
                found.append((conjunction((*when, comparison(second, left, right))), b))
            return found if len(found) <= _MAX_CASES else []
        if isinstance(expr, Unary):
            return [(when, Unary("-", e)) for when, e in self._cases(expr.operand)]
        if isinstance(expr, Binary):
            joined: list[tuple[Formula, Expr]] = [
                (conjunction((when_left, when_right)), Binary(expr.op, a, b))
                for (when_left, a), (when_right, b) in itertools.product(
                    self._cases(expr.left), self._cases(expr.right)
                )
            ]
            return joined if len(joined) <= _MAX_CASES else []
        return [(conjunction(()), expr)]


def _has_choice(expr: Expr) -> bool:
    if isinstance(expr, Binary):
        return _has_choice(expr.left) or _has_choice(expr.right)
    if isinstance(expr, Call):
        return expr.function in ("max", "min")
    return isinstance(expr, Unary) and _has_choice(expr.operand)
