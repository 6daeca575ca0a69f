"""Index arithmetic and conditions as numbers, for single iterations or arrays of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from steptp_dagster.leir.ast import Binary, Compare, Expr, Index, Int, Unary

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


def evaluate(expr: Expr, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Index arithmetic to integers, index conditions to booleans; arrays or scalars."""
    match expr:
        case Int():
            return expr.value
        case Index():
            return values[expr.name]
        case Unary():
            return -evaluate(expr.operand, values)
        case Binary(op=op) if op in ("&", "|"):
            left, right = evaluate(expr.left, values), evaluate(expr.right, values)
            return (left & right) if op == "&" else (left | right)
        case Binary():
            operands = evaluate(expr.left, values), evaluate(expr.right, values)
            return _ARITHMETIC[expr.op](*operands)
        case Compare():
            parts = [evaluate(operand, values) for operand in expr.operands]
            held: Any = True
            for op, left, right in zip(expr.ops, parts, parts[1:], strict=False):
                held = held & _COMPARISONS[op](left, right)
            return np.asarray(held)
    raise TypeError(f"not index arithmetic: {type(expr).__name__}")
