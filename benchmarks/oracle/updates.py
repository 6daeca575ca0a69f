"""Which equations accumulate: ``X = X op ...`` on the very element that they write."""

from collections.abc import Callable
from itertools import product

from benchmarks.oracle.trees import accesses, nodes_of
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Loop,
)


def update_of(
    equation: Equation, loops: tuple[Loop, ...], text: Callable[[Expr], str]
) -> str | None:
    """The operation of a pure update, or None. ``text``: subscripts as Python."""
    target = equation.target
    parts = (*target.subscripts, equation.value, *([equation.guard] if equation.guard else []))
    own = [a for p in parts for a in accesses(p) if a.name == target.name]
    if len(own) != 1:
        return None
    if own[0].subscripts != target.subscripts and not _equal(own[0], target, loops, text):
        return None
    value = equation.value
    match value:
        case Binary(op="+" | "-"):
            op = "+"
        case Binary(op="*"):
            op = "*"
        case Call(function="max" | "min"):
            op = value.function
        case _:
            return None
    return op if _reached(value, own[0], op) else None


def _reached(value: Expr, own: Access, op: str) -> bool:
    if value is own:
        return True
    match value:
        case Binary() if value.op == "-" and op == "+":
            return _reached(value.left, own, op)
        case Binary() if value.op == op:
            return _reached(value.left, own, op) or _reached(value.right, own, op)
        case Call() if value.function == op:
            return any(_reached(a, own, op) for a in value.arguments)
    return False


def _equal(
    one: Access, other: Access, loops: tuple[Loop, ...], text: Callable[[Expr], str]
) -> bool:
    """Whether subscripts without tensors are the same functions of the indices."""
    pairs = list(zip(one.subscripts, other.subscripts, strict=True))
    if any(isinstance(n, Access) for p in pairs for e in p for n in nodes_of(e)):
        return False
    names = [x.index for x in loops]
    head = "lambda " + ", ".join(f"i_{n}" for n in names) + ": "
    texts = [f"{text(a)} == {text(b)}" for a, b in pairs]
    same = eval(head + (" and ".join(texts) or "True"))
    spans = (range(x.start, x.start + max(2, x.extent)) for x in loops)
    return all(same(*values) for values, _ in zip(product(*spans), range(2000), strict=False))
