"""Reading and rebuilding LEIR trees: traversal, substitution, paths, fresh names.

A *path* names a statement: ``(i,)`` is top-level nest ``i``, ``(i, j)`` statement ``j`` of its
body, and so on. Paths order statements in text order.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter, is_
from typing import Any, Final

from steptp_dagster.leir.ast import (
    RESERVED_NAMES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Program,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.records import quickly_made

Path = tuple[int, ...]

_INDEX_LETTERS = "acdfghijklmnopqrsuw"
_TENSOR_LETTERS = "ACDEFGHIJKMNOQRSWXYZ"


@quickly_made
@dataclass(frozen=True, slots=True)
class Located:
    """An equation with its path and all enclosing loops, outermost first."""

    path: Path
    loops: tuple[Loop, ...]
    equation: Equation


def _none(_: Expr) -> tuple[Expr, ...]:
    return ()


#: The direct sub-expressions by type of node: a table, since every traversal asks.
_CHILDREN: Final[dict[type, Callable[[Any], tuple[Expr, ...]]]] = {
    Int: _none,
    Real: _none,
    Inf: _none,
    Index: _none,
    Access: attrgetter("subscripts"),
    Unary: lambda expr: (expr.operand,),
    Binary: attrgetter("left", "right"),
    Compare: attrgetter("operands"),
    Call: attrgetter("arguments"),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, subscripts included, left to right."""
    return _CHILDREN[type(expr)](expr)


def _same(expr: Expr, _: tuple[Expr, ...]) -> Expr:
    return expr


#: A node over other sub-expressions, by type of node.
_REBUILT: Final[dict[type, Callable[[Any, tuple[Expr, ...]], Expr]]] = {
    Int: _same,
    Real: _same,
    Inf: _same,
    Index: _same,
    Access: lambda e, new: Access(e.name, e.dtype, e.scope, new, pos=e.pos),
    Unary: lambda e, new: Unary(e.op, new[0], pos=e.pos),
    Binary: lambda e, new: Binary(e.op, new[0], new[1], pos=e.pos),
    Compare: lambda e, new: Compare(new, e.ops, pos=e.pos),
    Call: lambda e, new: Call(e.function, new, pos=e.pos),
}


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The same node over other sub-expressions; the node itself where nothing changed."""
    old = children(expr)
    if len(old) != len(new):
        raise ValueError(f"{len(new)} sub-expressions for a node that has {len(old)}")
    if all(map(is_, old, new)):
        return expr
    return _REBUILT[type(expr)](expr, new)


def map_expr(expr: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up: ``function`` sees each node after its children were mapped."""
    below = children(expr)
    if not below:
        return function(expr)
    new = tuple([map_expr(c, function) for c in below])
    return function(expr if all(map(is_, below, new)) else _REBUILT[type(expr)](expr, new))


def iter_expr(expr: Expr) -> Iterator[Expr]:
    """All nodes, pre-order, subscripts included."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        below = children(node)
        if below:
            waiting.extend(reversed(below))


def accesses_in(expr: Expr) -> Iterator[Access]:
    """All tensor accesses in pre-order, those inside subscripts included."""
    return (e for e in iter_expr(expr) if isinstance(e, Access))


def indices_in(expr: Expr) -> frozenset[str]:
    """Names of the loop indices that occur anywhere in the expression."""
    return frozenset(e.name for e in iter_expr(expr) if isinstance(e, Index))


def substitute(expr: Expr, by: Mapping[str, Expr]) -> Expr:
    """Replace loop indices by expressions, inside subscripts too; all at once."""
    if type(expr) is Index:
        return by.get(expr.name, expr)
    below = children(expr)
    if not below:
        return expr
    new = tuple([substitute(c, by) for c in below])
    return expr if all(map(is_, below, new)) else _REBUILT[type(expr)](expr, new)


def expressions(equation: Equation) -> tuple[Expr, ...]:
    """Target, value and, where there is one, guard."""
    own: tuple[Expr, ...] = (equation.target, equation.value)
    return own if equation.guard is None else (*own, equation.guard)


def map_equation(equation: Equation, function: Callable[[Expr], Expr]) -> Equation:
    """Map target, value and guard; the equation itself where nothing changed.

    The mapped target must be an access.
    """
    target = function(equation.target)
    if not isinstance(target, Access):
        raise TypeError(f"the target of an equation became {type(target).__name__}")
    value = function(equation.value)
    guard = None if equation.guard is None else function(equation.guard)
    if target is equation.target and value is equation.value and guard is equation.guard:
        return equation
    return Equation(target, value, guard, pos=equation.pos)


def map_statement(statement: Statement, function: Callable[[Expr], Expr]) -> Statement:
    """Map every expression of a statement; the statement itself where nothing changed."""
    if isinstance(statement, Equation):
        return map_equation(statement, function)
    body = tuple([map_statement(s, function) for s in statement.body])
    if all(map(is_, body, statement.body)):
        return statement
    return Nest(statement.loops, body, pos=statement.pos)


def map_program(program: Program, function: Callable[[Expr], Expr]) -> Program:
    """Map every expression of a program."""
    nests = tuple(map_statement(n, function) for n in program.nests)
    return Program(tuple(n for n in nests if isinstance(n, Nest)))


def equations(program: Program) -> Iterator[Located]:
    """All equations in text order, with paths and enclosing loops."""
    for i, nest in enumerate(program.nests):
        yield from equations_in(nest, (i,))


def equations_in(
    statement: Statement, path: Path = (), loops: tuple[Loop, ...] = ()
) -> Iterator[Located]:
    """All equations of a statement; ``path`` and ``loops`` are those that enclose it."""
    if isinstance(statement, Equation):
        yield Located(path, loops, statement)
        return
    inner = loops + statement.loops
    for i, child in enumerate(statement.body):
        yield from equations_in(child, (*path, i), inner)


def nests_in(statement: Statement, path: Path = ()) -> Iterator[tuple[Path, Nest]]:
    """The nest itself and all nests inside it, pre-order, with paths."""
    if isinstance(statement, Nest):
        yield path, statement
        for i, child in enumerate(statement.body):
            yield from nests_in(child, (*path, i))


def all_nests(program: Program) -> Iterator[tuple[Path, Nest]]:
    """All nests of a program, pre-order, with paths."""
    for i, nest in enumerate(program.nests):
        yield from nests_in(nest, (i,))


def at(program: Program, path: Path) -> Statement:
    """The statement at ``path``. Raises IndexError where there is none."""
    statement: Statement = program.nests[path[0]]
    for i in path[1:]:
        if isinstance(statement, Equation):
            raise IndexError(f"no statement at {path}")
        statement = statement.body[i]
    return statement


def loops_around(program: Program, path: Path) -> tuple[Loop, ...]:
    """The loops that enclose the statement at ``path`` (its own, for a nest, not included)."""
    loops: tuple[Loop, ...] = ()
    statement: Statement = program.nests[path[0]]
    for i in path[1:]:
        if isinstance(statement, Equation):
            raise IndexError(f"no statement at {path}")
        loops += statement.loops
        statement = statement.body[i]
    return loops


def replace_at(program: Program, path: Path, *new: Statement) -> Program:
    """The program with the statement at ``path`` replaced by ``new`` (none: removed).

    A nest whose body would become empty is removed with it.
    """
    nests = _spliced(program.nests, path, new)
    kept = tuple(n for n in nests if isinstance(n, Nest))
    if len(kept) != len(nests):
        raise TypeError("an equation cannot stand at the top level")
    return Program(kept)


def _spliced(
    body: tuple[Statement, ...], path: Path, new: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    i, rest = path[0], path[1:]
    if not rest:
        return (*body[:i], *new, *body[i + 1 :])
    inner = body[i]
    if isinstance(inner, Equation):
        raise IndexError(f"no statement at {path}")
    below = _spliced(inner.body, rest, new)
    here: tuple[Statement, ...] = (Nest(inner.loops, below, pos=inner.pos),) if below else ()
    return (*body[:i], *here, *body[i + 1 :])


def tensor_names(program: Program) -> frozenset[str]:
    """Names of all tensors that occur in the program."""
    return frozenset(
        a.name
        for located in equations(program)
        for e in expressions(located.equation)
        for a in accesses_in(e)
    )


def index_names(statement: Statement) -> frozenset[str]:
    """Names of all loop indices bound in a statement."""
    return frozenset(loop.index for _, nest in nests_in(statement) for loop in nest.loops)


def fresh_tensors(used: Iterable[str]) -> Iterator[str]:
    """Tensor names in the published order (A, C, D, ..., Aa, Ac, ...) that are not in use."""
    taken = set(used)
    return (name for name in _names(_TENSOR_LETTERS) if name not in taken)


def fresh_indices(used: Iterable[str]) -> Iterator[str]:
    """Index names in the published order (a, c, d, f, ...) that are not in use."""
    taken = set(used) | RESERVED_NAMES
    return (name for name in _names(_INDEX_LETTERS) if name not in taken)


def _names(letters: str) -> Iterator[str]:
    """Names of one letter, then of two, three, ...; all but the first letter lower-case."""
    for length in itertools.count():
        yield from _names_of(letters, length) if length < 2 else _longer(letters, length)


@cache
def _names_of(letters: str, length: int) -> tuple[str, ...]:
    """The short names, which are asked for again and again."""
    return tuple(_longer(letters, length))


def _longer(letters: str, length: int) -> Iterator[str]:
    """Names of one letter and ``length`` further ones."""
    for head in letters:
        for tail in itertools.product(letters.lower(), repeat=length):
            yield head + "".join(tail)
