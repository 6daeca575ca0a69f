"""Whether two programs run the same equation instances at the same elements.

An instance of an equation is the equation with a number in place of every loop index. Steps that
only move work (split, fuse, reorder, bind) must keep the multiset of instances: none lost, none
doubled, none aimed at another element. Integer arithmetic on indices is evaluated, so ``c*3+a``
at c=1, a=2 is the same as ``a`` at 5; scopes do not count.

Small programs are enumerated. For others the instances are compared as Presburger sets, which is
exact where every equation maps its iterations one to one; where one does not, enumeration decides
up to ``ENUMERATION_LIMIT`` instances, and beyond that the answer is ``unknown``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Program,
    Unary,
)
from steptp_dagster.leir.walk import Located, children, equations, with_children

Sameness = Literal["same", "different", "unknown"]
#: Up to ``CHEAP`` instances enumeration is quicker than sets; up to the limit, the last resort.
CHEAP: Final = 10_000
ENUMERATION_LIMIT: Final = 1_000_000

_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@dataclass(slots=True)
class _Form:
    """An equation as a skeleton with numbered holes, and what fills them per iteration."""

    skeleton: Equation
    holes: list[Expr]
    conditions: list[Expr] = field(default_factory=list)


def same_instances(before: Program, after: Program) -> Sameness:
    """Compare the multisets of equation instances of two programs."""
    first, second = list(equations(before)), list(equations(after))
    size = max(_count(first), _count(second))
    if size > CHEAP:
        found = _same_symbolically(first, second)
        if found != "unknown" or size > ENUMERATION_LIMIT:
            return found
    return "same" if _multisets(first) == _multisets(second) else "different"


def _count(located: Iterable[Located]) -> int:
    return sum(prod(loop.extent for loop in one.loops) for one in located)


def _form(equation: Equation) -> _Form:
    holes: list[Expr] = []

    def visit(expr: Expr) -> Expr:
        if _is_index_arithmetic(expr):
            holes.append(expr)
            return Int(len(holes))
        new = with_children(expr, tuple(visit(child) for child in children(expr)))
        return replace(new, scope="g") if isinstance(new, Access) else new

    form = _Form(equation, holes)
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
        case Binary(op=op) if op in _ARITHMETIC:
            return _is_index_arithmetic(expr.left) and _is_index_arithmetic(expr.right)
    return False


def _is_index_condition(expr: Expr) -> bool:
    match expr:
        case Compare():
            return all(_is_index_arithmetic(operand) for operand in expr.operands)
        case Binary(op="&" | "|"):
            return _is_index_condition(expr.left) and _is_index_condition(expr.right)
    return False


def _multisets(located: Iterable[Located]) -> dict[Equation, list[tuple[tuple[int, ...], int]]]:
    """Skeleton -> the sorted distinct fillings of its holes, with how often each occurs."""
    rows: dict[Equation, list[NDArray[np.int64]]] = {}
    for one in located:
        form = _form(one.equation)
        rows.setdefault(form.skeleton, []).append(_fillings(form, one.loops))
    counted = {}
    for skeleton, parts in rows.items():
        table = np.concatenate(parts)
        if not len(table):
            continue
        distinct, counts = np.unique(table, axis=0, return_counts=True)
        counted[skeleton] = [
            (tuple(row), int(n)) for row, n in zip(distinct.tolist(), counts, strict=True)
        ]
    return counted


def _fillings(form: _Form, loops: Sequence[Loop]) -> NDArray[np.int64]:
    """One row per instance whose conditions hold; int64 of shape (instances, holes + 1)."""
    shape = tuple(loop.extent for loop in loops)
    grid = np.indices(shape, dtype=np.int64).reshape(len(loops), -1)
    values = {loop.index: grid[i] + loop.start for i, loop in enumerate(loops)}
    size = grid.shape[1]
    columns = [np.zeros(size, np.int64)]
    columns += [np.broadcast_to(_evaluate(hole, values), (size,)) for hole in form.holes]
    table = np.stack(columns, axis=1)
    for condition in form.conditions:
        held = np.broadcast_to(_evaluate(condition, values), (len(table),))
        table = table[held]
        values = {name: column[held] for name, column in values.items()}
    return table


def _evaluate(expr: Expr, values: Mapping[str, NDArray[np.int64]]) -> Any:  # noqa: ANN401
    """Index arithmetic to integers, index conditions to booleans; arrays or scalars."""
    match expr:
        case Int():
            return expr.value
        case Index():
            return values[expr.name]
        case Unary():
            return -_evaluate(expr.operand, values)
        case Binary(op=op) if op in ("&", "|"):
            left, right = _evaluate(expr.left, values), _evaluate(expr.right, values)
            return (left & right) if op == "&" else (left | right)
        case Binary():
            operands = _evaluate(expr.left, values), _evaluate(expr.right, values)
            return _ARITHMETIC[expr.op](*operands)
        case Compare():
            parts = [_evaluate(operand, values) for operand in expr.operands]
            held: Any = True
            for op, left, right in zip(expr.ops, parts, parts[1:], strict=False):
                held = held & _COMPARISONS[op](left, right)
            return np.asarray(held)
    raise TypeError(f"not index arithmetic: {type(expr).__name__}")


def _same_symbolically(before: list[Located], after: list[Located]) -> Sameness:
    """Compare the sets of fillings by isl; sound for multisets only where maps are injective."""
    first, second = _symbolic(before), _symbolic(after)
    if first is None or second is None:
        return "unknown"
    if set(first) != set(second):
        return "different"
    for skeleton, filled in first.items():
        if not filled.is_equal(second[skeleton]):
            return "different"
    return "same"


def _symbolic(located: list[Located]) -> dict[Equation, Any] | None:
    """Skeleton -> isl set of fillings; None where an instance may occur twice."""
    import islpy as isl

    found: dict[Equation, Any] = {}
    for one in located:
        form = _form(one.equation)
        names = ", ".join(f"i_{loop.index}" for loop in one.loops)
        bounds = [
            f"{loop.start} <= i_{loop.index} < {loop.start + loop.extent}" for loop in one.loops
        ]
        where = " and ".join([*bounds, *(_isl_text(c) for c in form.conditions)])
        holes = ", ".join(_isl_text(hole) for hole in form.holes)
        try:
            fill = isl.Map(f"{{ [{names}] -> [{holes}] : {where} }}")
        except isl.Error:
            return None
        if not fill.is_injective():
            return None
        image = fill.range()
        known = found.get(form.skeleton)
        if known is not None and not known.is_disjoint(image):
            return None
        found[form.skeleton] = image if known is None else known.union(image)
    return {skeleton: image for skeleton, image in found.items() if not image.is_empty()}


def _isl_text(expr: Expr) -> str:
    match expr:
        case Int():
            return str(expr.value)
        case Index():
            return f"i_{expr.name}"
        case Unary():
            return f"(-{_isl_text(expr.operand)})"
        case Binary(op="//"):
            return f"floor({_isl_text(expr.left)}/{_isl_text(expr.right)})"
        case Binary(op="%"):
            return f"({_isl_text(expr.left)} mod {_isl_text(expr.right)})"
        case Binary(op=op) if op in ("&", "|"):
            word = "and" if op == "&" else "or"
            return f"({_isl_text(expr.left)} {word} {_isl_text(expr.right)})"
        case Binary():
            return f"({_isl_text(expr.left)} {expr.op} {_isl_text(expr.right)})"
        case Compare():
            parts = [_isl_text(operand) for operand in expr.operands]
            pairs = zip(parts, expr.ops, parts[1:], strict=False)
            return "(" + " and ".join(_relation(*pair) for pair in pairs) + ")"
    raise TypeError(f"not index arithmetic: {type(expr).__name__}")


def _relation(left: str, op: str, right: str) -> str:
    if op == "!=":
        return f"({left} < {right} or {left} > {right})"
    return f"{left} {'=' if op == '==' else op} {right}"
