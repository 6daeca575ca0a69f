"""How like two programs are: the share of their nests that agree, numbers and names aside.

Nests agree when they have the same loops, operators and accesses; their extents, float dtypes,
literals and names, and which of the tensors that they only read it is, do not count, nor does the
order of operands of commutative operators. That errs on the safe side: programs that are called
unlike really are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import assert_never

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Nest,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import equations_in

_COMMUTATIVE = frozenset({"+", "*", "&", "|", "max", "min", "==", "!="})


@dataclass(frozen=True, slots=True)
class Likeness:
    """What is most like a program: its name, and the share of nests that both have."""

    name: str
    share: float


def nest_forms(signed: SignedProgram) -> Counter[str]:
    """How often each form of nest occurs in a program; forms are digests."""
    return Counter(_digest(_nest(nest)) for nest in signed.program.nests)


def share(left: Counter[str], right: Counter[str]) -> float:
    """Nests that both have, of all that one of them has: 0 apart, 1 the same nests.

    >>> share(Counter("aab"), Counter("abc"))
    0.5
    """
    union = (left | right).total()
    return (left & right).total() / union if union else 0.0


def nearest(
    forms: Iterable[Counter[str]], others: Mapping[str, Iterable[Counter[str]]]
) -> Likeness | None:
    """The most like of others, each with one or several programs; of equals the first by name.

    None without others.
    """
    own = list(forms)
    found = [
        Likeness(name, max((share(a, b) for a in own for b in theirs), default=0.0))
        for name, theirs in sorted(others.items())
    ]
    return max(found, key=lambda f: f.share, default=None)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _nest(nest: Nest) -> str:
    written = dict.fromkeys(e.equation.target.name for e in equations_in(nest))
    return _statement(nest, {}, {name: f"#{n}" for n, name in enumerate(written)})


def _statement(statement: Statement, indices: Mapping[str, str], names: Mapping[str, str]) -> str:
    if isinstance(statement, Equation):
        parts = [statement.target, statement.value]
        if statement.guard is not None:
            parts.append(statement.guard)
        return f"{'='.join(_form(part, indices, names) for part in parts)};"
    inner = dict(indices)
    heads = []
    for loop in statement.loops:
        inner[loop.index] = f"${len(inner)}"
        heads.append(f"{loop.kind}{loop.axis or ''}")
    body = "".join(_statement(s, inner, names) for s in statement.body)
    return f"{' '.join(heads)}[{body}]"


def _form(expr: Expr, indices: Mapping[str, str], names: Mapping[str, str]) -> str:
    """An expression without numbers and names, operands of commutative operators sorted."""

    def ordered(operator: str, operands: Iterable[Expr]) -> str:
        parts = [_form(operand, indices, names) for operand in operands]
        return f"{operator}({' '.join(sorted(parts) if operator in _COMMUTATIVE else parts)})"

    match expr:
        case Int() | Real():
            return "n"
        case Inf():
            return "inf"
        case Index():
            return indices.get(expr.name, "?")
        case Access():
            kind = "float" if DTYPES[expr.dtype].is_float else expr.dtype
            return ordered(f"{names.get(expr.name, '?')}{kind}{expr.scope}", expr.subscripts)
        case Unary():
            return ordered("-", (expr.operand,))
        case Binary():
            return ordered(expr.op, (expr.left, expr.right))
        case Compare():
            return ordered(",".join(expr.ops), expr.operands)
        case Call():
            return ordered(expr.function, expr.arguments)
    assert_never(expr)
