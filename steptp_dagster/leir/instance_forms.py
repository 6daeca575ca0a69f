"""Equations as skeletons with holes: what tells the instances of one equation apart.

Every maximal piece of index arithmetic (subscripts, indices as values, integer literals) becomes a
hole; guards in index arithmetic alone become conditions; scopes are dropped. Two instances are the
same if skeleton and the numbers in the holes are.
"""

from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.walk import children

INDEX_ARITHMETIC: Final = ("+", "-", "*", "//", "%")
#: The nodes of an equation in Polish notation; equal for equations that differ in holes alone.
Skeleton = tuple[object, ...]
_HOLE: Final = 0


@dataclass(slots=True)
class Form:
    """An equation as a skeleton with holes, in order, and what fills them per iteration."""

    skeleton: Skeleton
    holes: list[Expr]
    conditions: list[Expr]


def form_of(equation: Equation) -> Form:
    """Take an equation apart: what is left of its guard, its target, its value."""
    holes: list[Expr] = []
    marks: list[object] = []
    guard = [(part, _is_index_condition(part)) for part in _conjuncts(equation.guard)]
    rest = [part for part, known in guard if not known]
    marks.append(len(rest))
    for expr in (*rest, equation.target, equation.value):
        _write(expr, marks, holes)
    return Form(tuple(marks), holes, [part for part, known in guard if known])


def _write(expr: Expr, marks: list[object], holes: list[Expr]) -> None:
    """Append the nodes of an expression, each before its operands."""
    if isinstance(expr, Access):
        marks.append((expr.name, expr.dtype, len(expr.subscripts)))
    elif _is_index_arithmetic(expr):
        marks.append(_HOLE)
        holes.append(expr)
        return
    elif isinstance(expr, Binary):
        marks.append(expr.op)
    elif isinstance(expr, Call):
        marks.append(expr.function)
    elif isinstance(expr, Compare):
        marks.append(expr.ops)
    elif isinstance(expr, Real):
        marks.append(expr)
    else:
        marks.append(type(expr))
    for operand in children(expr):
        _write(operand, marks, holes)


def _conjuncts(guard: Expr | None) -> list[Expr]:
    if guard is None:
        return []
    if isinstance(guard, Binary) and guard.op == "&":
        return _conjuncts(guard.left) + _conjuncts(guard.right)
    return [guard]


def _is_index_arithmetic(expr: Expr) -> bool:
    if isinstance(expr, Index | Int):
        return True
    if isinstance(expr, Unary):
        return _is_index_arithmetic(expr.operand)
    if not isinstance(expr, Binary) or expr.op not in INDEX_ARITHMETIC:
        return False
    if expr.op in ("//", "%") and not (isinstance(expr.right, Int) and expr.right.value > 0):
        return False
    return _is_index_arithmetic(expr.left) and _is_index_arithmetic(expr.right)


def _is_index_condition(expr: Expr) -> bool:
    match expr:
        case Compare():
            return all(_is_index_arithmetic(operand) for operand in expr.operands)
        case Binary(op="&" | "|"):
            return _is_index_condition(expr.left) and _is_index_condition(expr.right)
    return False
