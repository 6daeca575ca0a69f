"""Walks over LEIR: parts of expressions, counts of instances, the loops that launch a kernel."""

from collections.abc import Iterator, Sequence
from math import prod

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Nest,
    Statement,
    Unary,
)


def nodes_of(expr: Expr) -> Iterator[Expr]:
    """All parts of an expression, subscripts included."""
    yield expr
    match expr:
        case Access():
            below: Sequence[Expr] = expr.subscripts
        case Unary():
            below = (expr.operand,)
        case Binary():
            below = (expr.left, expr.right)
        case Compare():
            below = expr.operands
        case Call():
            below = expr.arguments
        case _:
            below = ()
    for part in below:
        yield from nodes_of(part)


def accesses(expr: Expr) -> Iterator[Access]:
    """All accesses in an expression."""
    return (e for e in nodes_of(expr) if isinstance(e, Access))


def parts_of(equation: Equation) -> tuple[Expr, ...]:
    """Target, value and guard."""
    guard = () if equation.guard is None else (equation.guard,)
    return (equation.target, equation.value, *guard)


def all_equations(statements: Sequence[Statement]) -> Iterator[Equation]:
    """All equations in text order."""
    for statement in statements:
        if isinstance(statement, Nest):
            yield from all_equations(statement.body)
        else:
            yield statement


def size_of(statement: Statement) -> int:
    """How many instances of equations run."""
    if isinstance(statement, Equation):
        return 1
    return prod(x.extent for x in statement.loops) * sum(size_of(s) for s in statement.body)


def offset_of(nest: Nest, path: Sequence[int]) -> int:
    """Instances that run before the statement at ``path`` in the first iterations around it."""
    before = sum(size_of(s) for s in nest.body[: path[0]])
    child = nest.body[path[0]]
    return before + (offset_of(child, path[1:]) if isinstance(child, Nest) else 0)


def binds(statement: Statement) -> bool:
    """Whether there is a ``B`` loop in a statement."""
    if isinstance(statement, Equation):
        return False
    return any(x.kind == "B" for x in statement.loops) or any(binds(s) for s in statement.body)


def launches(nest: Nest) -> frozenset[tuple[tuple[int, ...], int]]:
    """The loops that launch the kernel: those around all ``B`` loops of the nest."""
    found: list[tuple[tuple[int, ...], int]] = []
    path: tuple[int, ...] = ()
    while binds(nest):
        for k, loop in enumerate(nest.loops):
            if loop.kind == "B":
                return frozenset(found)
            found.append((path, k))
        inner = [(i, s) for i, s in enumerate(nest.body) if binds(s)]
        if len(inner) > 1:
            return frozenset(found)
        child = inner[0][1]
        if not isinstance(child, Nest):
            raise TypeError(child)
        path, nest = (*path, inner[0][0]), child
    return frozenset()
