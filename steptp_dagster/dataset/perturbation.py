"""What rounding could do to a program: the program with an error in every read and operation.

Evaluated in float64, it shows how far working precision may carry the results, however an
evaluator orders its operations (the standard model of rounding errors: N. J. Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 2.2).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Nest,
    Program,
    Real,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.literals import shortest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, children, with_children
from steptp_dagster.verify.compare import EPSILON

#: Operators and functions that round. Others select, count or are exact.
_ROUNDING: Final = frozenset(
    {"+", "-", "*", "/", "**", "exp", "log", "sqrt", "erf", "tanh", "sin", "cos"}
)
#: Steps in radians from one place or coordinate to the next, so that cosines look random.
_PLACE: Final = 2.39996
_STEPS: Final = (1.93217, 0.71934, 2.6457, 1.10668, 3.87298, 0.44721)


def perturbed(signed: SignedProgram, shift: float = 0.0) -> SignedProgram:
    """The program with relative errors of up to one epsilon.

    An element of a float tensor has an error of the tensor's type, the same wherever it is read;
    the result of an operation has one of the type in which it is evaluated, which depends on the
    element that is written. What an equation reads of its own target, such as an accumulator,
    and operations on it stay exact, so that updates remain updates. Other ``shift`` (at least 0),
    other errors.
    """
    names = sorted({a.name for nest in signed.program.nests for a in _accesses(nest)})
    errors = _Errors({name: _PLACE * n for n, name in enumerate(names, 1)}, shift)
    nests = tuple(errors.statement(nest) for nest in signed.program.nests)
    return SignedProgram(Program(tuple(n for n in nests if isinstance(n, Nest))), signed.signature)


def _accesses(statement: Statement) -> Iterator[Access]:
    if isinstance(statement, Equation):
        yield from accesses_in(statement.target)
        yield from accesses_in(statement.value)
    else:
        for inner in statement.body:
            yield from _accesses(inner)


@dataclass(slots=True)
class _Errors:
    """Puts errors into statements: ``phases`` by tensor, ``places`` numbers the operations."""

    phases: dict[str, float]
    shift: float
    places: "count[int]" = field(default_factory=count)

    def statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Equation):
            return replace(statement, value=self.value(statement.value, statement.target))
        return replace(statement, body=tuple(self.statement(inner) for inner in statement.body))

    def value(self, expr: Expr, target: Access) -> Expr:
        if isinstance(expr, Access):
            return self.read(expr, target)
        inner = with_children(expr, tuple(self.value(c, target) for c in children(expr)))
        match expr:
            case Binary(op=name) | Call(function=name):
                pass
            case _:
                return inner
        read = list(accesses_in(expr))
        if name not in _ROUNDING or any(a.name == target.name for a in read):
            return inner
        floats = [DTYPES[a.dtype].evaluation.name for a in read if DTYPES[a.dtype].is_float]
        if not floats:
            return inner
        epsilon = max(EPSILON[dtype] for dtype in floats)
        return self.moved(inner, epsilon, _PLACE * next(self.places), target.subscripts)

    def read(self, access: Access, target: Access) -> Expr:
        if access.name == target.name or not DTYPES[access.dtype].is_float:
            return access
        epsilon = EPSILON[access.dtype]
        return self.moved(access, epsilon, self.phases[access.name], access.subscripts)

    def moved(self, expr: Expr, epsilon: float, phase: float, subscripts: tuple[Expr, ...]) -> Expr:
        """``expr*(1+epsilon*cos(phase + steps*subscripts))``."""
        angle: Expr = _real(self.shift + phase)
        for step, subscript in zip(_STEPS, subscripts, strict=False):
            angle = Binary("+", angle, Binary("*", _real(step), subscript))
        error = Binary("*", _real(epsilon), Call("cos", (angle,)))
        return Binary("*", expr, Binary("+", _real(1.0), error))


def _real(value: float) -> Real:
    return Real(shortest(repr(value)))
