"""Evaluation types of expressions, worked out independently of ``leir.typing``.

An expression made of literals alone has no type of its own: it is *free* (``INT`` or ``REAL``)
and takes the type of the operand beside it, or of the place where it stands. The rules are those
of ``docs/architecture.md``, Decisions, Types.
"""

from typing import Final, assert_never

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

#: Free types: whole-number literals and arithmetic on them; other literals likewise.
INT: Final = "literal integer"
REAL: Final = "literal real"

_FLOATS: Final = ("f32", "f64")
_WHOLE_STAYS_WHOLE: Final = ("abs", "floor", "ceil", "round")
_SIGNED: Final = {8: "i8", 16: "i16", 32: "i32", 64: "i64"}


class Types:
    """Types of expressions that stand where ``context`` (``f32`` or ``f64``) fixes what is open.

    With ``doubles`` every float tensor counts as f64.
    """

    def __init__(self, context: str, *, doubles: bool) -> None:
        """``context``: the evaluation type of the target if it is a float, else f64."""
        self.context = "f64" if doubles else context
        self.doubles = doubles

    def of(self, expr: Expr) -> str:
        """The type of ``expr``: a dtype name, or ``INT`` or ``REAL``."""
        match expr:
            case Int():
                return INT
            case Real() | Inf():
                return REAL
            case Index():
                return "i64"
            case Access():
                dtype = DTYPES[expr.dtype]
                return "f64" if dtype.is_float and self.doubles else dtype.evaluation.name
            case Unary():
                return self.joined(self.of(expr.operand))
            case Binary():
                if expr.op in LOGICAL:
                    return "bool"
                return self.joined(self.of(expr.left), self.of(expr.right), real=expr.op == "/")
            case Compare():
                return "bool"
            case Call():
                return self._of_call(expr)
        assert_never(expr)

    def _of_call(self, expr: Call) -> str:
        if expr.function == "if_then_else":
            branches = [self.of(a) for a in expr.arguments[1:]]
            return "bool" if branches == ["bool", "bool"] else self.joined(*branches)
        operands = [self.of(a) for a in expr.arguments]
        whole = expr.function in (*_WHOLE_STAYS_WHOLE, "max", "min")
        return self.joined(*operands, real=not whole)

    def joined(self, *operands: str, real: bool = False) -> str:
        """The type of an operation on operands of these types; ``real``: it is never integer."""
        floats = [t for t in operands if t in _FLOATS]
        if floats:
            return "f64" if "f64" in floats else "f32"
        free = all(t in (INT, REAL) for t in operands)
        if real or REAL in operands:
            return REAL if free else self.context
        if free:
            return INT
        whole = [t for t in operands if t not in (INT, "bool")]
        return common_integer(whole) if whole else "i64"

    def settled(self, dtype: str, wanted: str | None = None) -> str:
        """A free type made definite: ``wanted`` where given, else the context (REAL) or i64."""
        if dtype == INT:
            return wanted if wanted is not None else "i64"
        if dtype == REAL:
            return wanted if wanted in _FLOATS else self.context
        return dtype


def common_integer(dtypes: list[str]) -> str:
    """The widest of some integer dtypes; with mixed signs the next wider signed one (<= i64)."""
    kinds = [DTYPES[d] for d in dtypes]
    bits = max(k.bits for k in kinds)
    if all(k.signed for k in kinds):
        return _SIGNED[bits]
    if not any(k.signed for k in kinds):
        return f"u{bits}"
    unsigned = max(k.bits for k in kinds if not k.signed)
    signed = max(k.bits for k in kinds if k.signed)
    return _SIGNED[min(64, max(signed, 2 * unsigned))]
