"""Whether the text of a program reads back as the program, remembered by the parts of its text.

Text is made of statements one after the other, so a nest reads back if its loops and its equations
do. The grammar has no context but the levels of operators, so an equation reads back if each of
its nodes does over stand-ins: short operands that bind as tightly as the real ones. Few different
nodes occur, and the parser reads each of them once.

Only the limits on brackets and heights look at the whole. Where a nest comes near them, or where a
node does not read back, the nest is read as a whole.
"""

from collections.abc import Hashable
from functools import lru_cache
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
    Loop,
    Nest,
    Program,
    Real,
    Unary,
)
from steptp_dagster.leir.nest_memory import per_nest, remember
from steptp_dagster.leir.parser import MAX_BRACKETS, MAX_HEIGHT, ParseError, parse, parse_expr
from steptp_dagster.leir.printer import (
    ATOM_LEVEL,
    COMPARE_LEVEL,
    LEVELS,
    UNARY_LEVEL,
    expr_text,
    to_text,
)
from steptp_dagster.leir.signature import Signature
from steptp_dagster.leir.walk import children, with_children

_WITHIN: Final = (Equation(Access("A", "f32", "g"), Int(0)),)
_ATOM: Final = Index("a")
#: For every level of binding an expression of that level.
_STAND_INS: Final[dict[int, Expr]] = {
    **{level: Binary(op, _ATOM, _ATOM) for op, level in LEVELS.items()},
    COMPARE_LEVEL: Compare((_ATOM, _ATOM), ("<",)),
    UNARY_LEVEL: Unary("-", _ATOM),
    ATOM_LEVEL: _ATOM,
}
_REMEMBERED: Final = 8192
#: Nodes over stand-ins by what tells them apart, and whether they read back.
_nodes: Final[dict[Hashable, bool]] = {}
#: The names of indices that read back, and the accesses that do with so many indices alone.
_indices: Final[dict[str, None]] = {}
_accesses: Final[dict[tuple[Hashable, int], None]] = {}


def reads_back(program: Program, signature: Signature | None) -> bool:
    """Whether the text of a program reads as the program."""
    try:
        return parse(to_text(program), signature).program == program
    except ParseError:
        return False


@per_nest
def nest_reads_back(nest: Nest) -> bool:
    """Whether a nest, whose tensors have one annotation each, reads back."""
    depth = _depth_of_nest(nest)
    # a node is a level of height, and stands in at most two brackets or powers of its own
    if depth is not None and 2 * depth < MAX_BRACKETS and depth < MAX_HEIGHT:
        return True
    return reads_back(Program((nest,)), None)


def _depth_of_nest(nest: Nest) -> int | None:
    """The most nests and nodes one below the other; None where some part may not read back."""
    deepest = 0
    for loop in nest.loops:
        if not _loop_reads_back(loop):
            return None
    for child in nest.body:
        if isinstance(child, Nest):
            depth = _depth_of_nest(child)
            if depth is None:
                return None
            deepest = max(deepest, depth)
            continue
        for expr in (child.target, child.value, child.guard):
            if expr is not None:
                _, depth = _read(expr)
                if depth < 0:
                    return None
                deepest = max(deepest, depth)
    return deepest + 1


def _read(expr: Expr) -> tuple[int, int]:
    """Level of binding and height of an expression; a negative height if it may not read back."""
    head: Hashable
    level = ATOM_LEVEL
    if isinstance(expr, Index):
        if expr.name in _indices:  # every second node is an index
            return level, 1
        head = expr.name
    elif isinstance(expr, Access):
        head = expr.name, expr.dtype, expr.scope
        if (head, len(expr.subscripts)) in _accesses and all(map(_is_known, expr.subscripts)):
            return level, 2 if expr.subscripts else 1
    elif isinstance(expr, Binary):
        head, level = expr.op, LEVELS[expr.op]
    elif isinstance(expr, Int):
        head = expr.value
    elif isinstance(expr, Call):
        head = expr.function
    elif isinstance(expr, Real):
        head = expr.text
    elif isinstance(expr, Compare):
        head, level = expr.ops, COMPARE_LEVEL
    elif isinstance(expr, Unary):
        head, level = expr.op, UNARY_LEVEL
    else:
        head = "inf"
    deepest = 0
    levels = []
    for operand in children(expr):
        below, depth = _read(operand)
        if depth < 0:
            return level, -1
        levels.append(below)
        deepest = max(deepest, depth)
    key = type(expr), head, *levels
    known = _nodes.get(key)
    if known is None:
        known = remember(_nodes, key, _over_stand_ins(expr, levels), _REMEMBERED)
        if known and isinstance(expr, Index):
            remember(_indices, expr.name, None, _REMEMBERED)
    if known and isinstance(expr, Access) and all(map(_is_known, expr.subscripts)):
        remember(_accesses, (head, len(expr.subscripts)), None, _REMEMBERED)
    return level, deepest + 1 if known else -1


def _is_known(expr: Expr) -> bool:
    """Whether an expression is an index that reads back."""
    return type(expr) is Index and expr.name in _indices


def _over_stand_ins(expr: Expr, levels: list[int]) -> bool:
    """Whether a node reads back over operands of the given levels."""
    node = with_children(expr, tuple([_STAND_INS[level] for level in levels]))
    try:
        return parse_expr(expr_text(node)) == node
    except ParseError:
        return False


@lru_cache(maxsize=4096)
def _loop_reads_back(loop: Loop) -> bool:
    return reads_back(Program((Nest((loop,), _WITHIN),)), None)
