"""Equations as skeletons with holes: what tells the instances of one equation apart.

Every maximal piece of index arithmetic (subscripts, indices as values, integer literals) becomes a
numbered hole; guards in index arithmetic alone become conditions; scopes are dropped. Two
instances are the same if skeleton and the numbers in the holes are.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Compare, Equation, Expr, Index, Int, Unary
from steptp_dagster.leir.walk import children, with_children

INDEX_ARITHMETIC: Final = ("+", "-", "*", "//", "%")


@dataclass(slots=True)
class Form:
    """An equation as a skeleton with numbered holes, and what fills them per iteration."""

    skeleton: Equation
    holes: list[Expr]
    conditions: list[Expr] = field(default_factory=list)


def form_of(equation: Equation) -> Form:
    """Take an equation apart."""
    holes: list[Expr] = []

    def visit(expr: Expr) -> Expr:
        if _is_index_arithmetic(expr):
            holes.append(expr)
            return Int(len(holes))
        new = with_children(expr, tuple(visit(child) for child in children(expr)))
        return replace(new, scope="g") if isinstance(new, Access) else new

    form = Form(equation, holes)
    residue: Expr | None = None
    for part in _conjuncts(equation.guard):
        if _is_index_condition(part):
            form.conditions.append(part)
        else:
            kept = visit(part)
            residue = kept if residue is None else Binary("&", residue, kept)
    target = visit(equation.target)
    if not isinstance(target, Access):
        raise TypeError("a target is an access")
    form.skeleton = Equation(target, visit(equation.value), residue)
    return form


def _conjuncts(guard: Expr | None) -> list[Expr]:
    if guard is None:
        return []
    if isinstance(guard, Binary) and guard.op == "&":
        return _conjuncts(guard.left) + _conjuncts(guard.right)
    return [guard]


def _is_index_arithmetic(expr: Expr) -> bool:
    match expr:
        case Int() | Index():
            return True
        case Unary():
            return _is_index_arithmetic(expr.operand)
        case Binary(op=op) if op in ("//", "%"):
            return (
                isinstance(expr.right, Int)
                and expr.right.value > 0
                and _is_index_arithmetic(expr.left)
            )
        case Binary(op=op) if op in INDEX_ARITHMETIC:
            return _is_index_arithmetic(expr.left) and _is_index_arithmetic(expr.right)
    return False


def _is_index_condition(expr: Expr) -> bool:
    match expr:
        case Compare():
            return all(_is_index_arithmetic(operand) for operand in expr.operands)
        case Binary(op="&" | "|"):
            return _is_index_condition(expr.left) and _is_index_condition(expr.right)
    return False
