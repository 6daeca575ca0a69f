"""Tests for infinity in a candidate, and whether what they test is infinite only where data is.

A mask makes what is computed from it infinite, and a test for that is taken on masked data. A value
may also be infinite for reasons of the candidate's own: ``1/(x-12.815)`` hides one sum. So a test
for infinity counts as one only where nothing that it reads comes from a pole or a number that the
original lacks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from steptp_dagster.leir.analysis import per_program
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
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, children, equations, expressions, with_children

#: Numbers that rewrites bring in.
COMMON: Final = frozenset({0.0, 0.5, 1.0, 2.0})

_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def tests_infinity(condition: Expr) -> bool:
    """Whether a condition is that a value is or is not infinite, of one sign or the other."""
    return tested(condition) is not None


def tested(condition: Expr) -> tuple[Expr, Literal["true", "false"]] | None:
    """What a test for infinity tests, and how it comes out where that is infinite; else None."""
    match condition:
        case Compare(operands=(value, end), ops=(op,)) if (sign := _infinity(end)) is not None:
            pass
        case Compare(operands=(end, value), ops=(op,)) if (sign := _infinity(end)) is not None:
            op = _TURNED.get(op, op)
        case _:
            return None
    if op == "==" or (op, sign) in ((">=", 1), ("<=", -1)):
        return value, "true"
    if op == "!=" or (op, sign) in (("<", 1), (">", -1)):
        return value, "false"
    return None


@dataclass(frozen=True, slots=True)
class Infinities:
    """What of a candidate is infinite for reasons of its own.

    ``numbers`` and ``poles`` are those of the original; ``own`` are tensors of the candidate.
    """

    numbers: frozenset[float]
    poles: frozenset[Expr]
    own: frozenset[str]

    @classmethod
    def of(cls, original: SignedProgram, candidate: SignedProgram) -> "Infinities":
        """Follow own poles and numbers through the candidate's tensors, until nothing is new."""
        numbers, poles = numbers_of(original), _poles_of(original)
        defined = [
            (located.equation.target.name, expressions(located.equation)[1:])
            for located in equations(candidate.program)
        ]
        found = cls(numbers, poles, frozenset())
        while True:
            own = frozenset(
                name for name, parts in defined if not all(map(found.come_from_data, parts))
            )
            if own == found.own:
                return found
            found = cls(numbers, poles, own)

    def come_from_data(self, expr: Expr) -> bool:
        """Whether the infinities of an expression are those of data and of the original."""
        if isinstance(expr, Access):
            return expr.name not in self.own
        if isinstance(expr, Int | Real):
            return float(expr.value) in self.numbers | COMMON
        if isinstance(expr, Compare) and not reads(expr):
            return True
        pole = _pole(expr)
        if pole is not None and _cancels(pole) and _shape(pole) not in self.poles:
            return False
        return all(map(self.come_from_data, children(expr)))


@per_program
def numbers_of(signed: SignedProgram) -> frozenset[float]:
    """All numbers of a program, those in subscripts aside."""
    return frozenset(float(n.value) for n in _nodes(signed) if isinstance(n, Int | Real))


@per_program
def _poles_of(signed: SignedProgram) -> frozenset[Expr]:
    poles = map(_pole, _nodes(signed))
    return frozenset(_shape(pole) for pole in poles if pole is not None)


def _nodes(signed: SignedProgram) -> Iterator[Expr]:
    for located in equations(signed.program):
        for root in expressions(located.equation)[1:]:
            yield from inside(root)


def inside(expr: Expr) -> Iterator[Expr]:
    """All nodes of an expression, those of subscripts aside."""
    yield expr
    if not isinstance(expr, Access):
        for child in children(expr):
            yield from inside(child)


def reads(expr: Expr) -> bool:
    """Whether an expression reads tensors."""
    return any(True for _ in accesses_in(expr))


def _infinity(expr: Expr) -> int | None:
    """The sign of a literal infinity."""
    match expr:
        case Inf():
            return 1
        case Unary(op="-", operand=Inf()):
            return -1
        case _:
            return None


def _pole(expr: Expr) -> Expr | None:
    """What makes an expression infinite where it is zero, however finite it is itself."""
    match expr:
        case Binary(op="/" | "//" | "%", right=zero) | Call(function="log", arguments=(zero,)):
            return zero
        case Binary(op="**", left=zero):
            return zero
        case _:
            return None


def _cancels(expr: Expr) -> bool:
    """Whether an expression is zero where two numbers that are not happen to be equal."""
    return any(
        isinstance(node, Binary) and node.op in ("+", "-", "%") and reads(node)
        for node in inside(expr)
    )


def _shape(expr: Expr) -> Expr:
    """An expression with all tensors and indices alike."""
    if isinstance(expr, Access):
        return _ANY
    if isinstance(expr, Index):
        return _ANY_INDEX
    return with_children(expr, tuple(map(_shape, children(expr))))


_ANY: Final = Access("X", "f32", "g")
_ANY_INDEX: Final = Index("i")
