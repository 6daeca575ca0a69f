"""What rounding could do to a program: the program with every float that it reads moved a little.

Evaluated in float64, it shows how far working precision may carry the results, without knowing how
an evaluator orders and rounds its operations (the first-order model of rounding errors: N. J.
Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 1.5 and chapter 3).
"""

from dataclasses import replace
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
from steptp_dagster.leir.walk import children, with_children
from steptp_dagster.verify.compare import EPSILON

#: Steps in radians from one tensor and one coordinate to the next, so that cosines look random.
_TENSOR: Final = 2.39996
_STEPS: Final = (1.93217, 0.71934, 2.6457, 1.10668, 3.87298, 0.44721)


def perturbed(signed: SignedProgram, shift: float = 0.0) -> SignedProgram:
    """The program in which each element of each float tensor is read with an error of its own.

    The error is up to one epsilon of the tensor's type, relative to the element, and the same for
    everyone who reads the element. Elements that their own equation reads, such as accumulators,
    stay. Other ``shift`` (at least 0), other errors.
    """
    names = sorted(_names(signed.program))
    phases = {name: shift + _TENSOR * number for number, name in enumerate(names, 1)}
    nests = tuple(_moved(nest, phases) for nest in signed.program.nests)
    return SignedProgram(Program(tuple(n for n in nests if isinstance(n, Nest))), signed.signature)


def _names(program: Program) -> set[str]:
    found: set[str] = set()

    def visit(statement: Statement) -> None:
        if isinstance(statement, Nest):
            for inner in statement.body:
                visit(inner)
            return
        open_nodes: list[Expr] = [statement.target, statement.value]
        while open_nodes:
            node = open_nodes.pop()
            if isinstance(node, Access):
                found.add(node.name)
            open_nodes += children(node)

    for nest in program.nests:
        visit(nest)
    return found


def _moved(statement: Statement, phases: dict[str, float]) -> Statement:
    if isinstance(statement, Equation):
        own = statement.target.name
        return replace(statement, value=_read(statement.value, own, phases))
    return replace(statement, body=tuple(_moved(inner, phases) for inner in statement.body))


def _read(expr: Expr, own: str, phases: dict[str, float]) -> Expr:
    if not isinstance(expr, Access):
        return with_children(expr, tuple(_read(c, own, phases) for c in children(expr)))
    if expr.name == own or not DTYPES[expr.dtype].is_float:
        return expr
    angle: Expr = _real(phases[expr.name])
    for step, subscript in zip(_STEPS, expr.subscripts, strict=False):
        angle = Binary("+", angle, Binary("*", _real(step), subscript))
    relative = Binary("*", _real(EPSILON[expr.dtype]), Call("cos", (angle,)))
    return Binary("*", expr, Binary("+", _real(1.0), relative))


def _real(value: float) -> Real:
    return Real(shortest(repr(value)))
