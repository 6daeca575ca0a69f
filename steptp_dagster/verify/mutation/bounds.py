"""Mistakes in bounds: extents, starts, tiles, guards, comparisons, offsets."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Nest,
    Statement,
)
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    equations,
    equations_in,
    expressions,
    iter_expr,
    map_equation,
    map_expr,
)
from steptp_dagster.verify.mutation.edits import (
    Change,
    each_loop,
    in_accesses,
    in_conditions,
    with_equation,
    with_loop,
    with_nest,
)

_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def extent_off_by_one(signed: SignedProgram) -> Iterator[Change]:
    """A loop ends one iteration too early or too late."""
    for path, nest, k, loop in each_loop(signed):
        for extent in (loop.extent - 1, loop.extent + 1):
            if extent > 0:
                yield with_nest(signed, path, with_loop(nest, k, replace(loop, extent=extent)))


def start_off_by_one(signed: SignedProgram) -> Iterator[Change]:
    """A loop leaves out its first iteration, or is shifted by one."""
    for path, nest, k, loop in each_loop(signed):
        later = replace(loop, start=loop.start + 1)
        if loop.extent > 1:
            shorter = replace(later, extent=loop.extent - 1)
            yield with_nest(signed, path, with_loop(nest, k, shorter))
        yield with_nest(signed, path, with_loop(nest, k, later))


def lost_last_tile(signed: SignedProgram) -> Iterator[Change]:
    """The loop over tiles, whose index is multiplied in a subscript, ends one tile early."""
    for path, nest, k, loop in each_loop(signed):
        if loop.extent > 1 and _is_tile_index(nest, loop.index):
            shorter = replace(loop, extent=loop.extent - 1)
            yield with_nest(signed, path, with_loop(nest, k, shorter))


def double_count(signed: SignedProgram) -> Iterator[Change]:
    """Tiles overlap: ``i*k+j`` becomes ``i*(k-1)+j`` in all subscripts of an equation."""
    for located in equations(signed.program):
        equation = located.equation
        for width in _tile_widths(equation):

            def narrower(expr: Expr, width: Int = width) -> Expr:
                match expr:
                    case Binary(op="*", left=Index(), right=Int() as right) if right == width:
                        return replace(expr, right=Int(width.value - 1))
                    case _:
                        return expr

            new = map_equation(equation, lambda root: map_expr(root, narrower))
            yield with_equation(signed, located.path, new)
            # the tile is right where it is stored, and its operands overlap
            if new.target != equation.target:
                kept = replace(new, target=equation.target)
                if kept != equation:
                    yield with_equation(signed, located.path, kept)


def wrong_guard(signed: SignedProgram) -> Iterator[Change]:
    """A guard is missing, moved by one, or stands where none belongs."""
    for located in equations(signed.program):
        equation = located.equation
        if equation.guard is None:
            for loop in located.loops:
                if loop.extent > 1:
                    last = Int(loop.start + loop.extent - 1)
                    short = Compare((Index(loop.index), last), ("<",))
                    yield with_equation(signed, located.path, replace(equation, guard=short))
            continue
        yield with_equation(signed, located.path, replace(equation, guard=None))
        for guard in _moved(equation.guard):
            yield with_equation(signed, located.path, replace(equation, guard=guard))


def comparison_boundary(signed: SignedProgram) -> Iterator[Change]:
    """``<`` for ``<=``, ``>`` for ``>=``, or the other way round."""

    def other(expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Compare):
            for i, op in enumerate(expr.ops):
                if op in _BOUNDARY:
                    yield replace(expr, ops=(*expr.ops[:i], _BOUNDARY[op], *expr.ops[i + 1 :]))

    return in_conditions(signed, other)


def wrong_offset(signed: SignedProgram) -> Iterator[Change]:
    """A subscript is one too large or too small."""

    def shifted(access: Access, _: Located) -> Iterable[Access]:
        for k, subscript in enumerate(access.subscripts):
            for op in ("+", "-"):
                moved = Binary(op, subscript, Int(1))
                yield replace(
                    access, subscripts=(*access.subscripts[:k], moved, *access.subscripts[k + 1 :])
                )

    return in_accesses(signed, shifted)


def _is_tile_index(nest: Nest, index: str) -> bool:
    return any(
        isinstance(node, Binary) and node.op == "*" and node.left == Index(index)
        for located in equations_in(nest)
        for access in _accesses(located.equation)
        for subscript in access.subscripts
        for node in iter_expr(subscript)
    )


def _tile_widths(equation: Equation) -> list[Int]:
    """The ``k`` of all ``i*k`` with an index in subscripts, in the order of their occurrence."""
    found = {
        node.right: None
        for access in _accesses(equation)
        for subscript in access.subscripts
        for node in iter_expr(subscript)
        if isinstance(node, Binary)
        and node.op == "*"
        and isinstance(node.left, Index)
        and isinstance(node.right, Int)
        and node.right.value > 1
    }
    return list(found)


def _accesses(statement: Statement) -> Iterator[Access]:
    for located in equations_in(statement):
        for expr in expressions(located.equation):
            yield from (node for node in iter_expr(expr) if isinstance(node, Access))


def _moved(guard: Expr) -> Iterator[Expr]:
    """The guard with one of its integer literals changed by one."""
    match guard:
        case Int():
            yield Int(guard.value + 1)
            if guard.value > 0:
                yield Int(guard.value - 1)
        case Compare():
            for i, operand in enumerate(guard.operands):
                if isinstance(operand, Int):
                    for new in _moved(operand):
                        operands = (*guard.operands[:i], new, *guard.operands[i + 1 :])
                        yield replace(guard, operands=operands)
        case Binary(op="&" | "|"):
            for new in _moved(guard.left):
                yield replace(guard, left=new)
            for new in _moved(guard.right):
                yield replace(guard, right=new)
        case _:
            return
