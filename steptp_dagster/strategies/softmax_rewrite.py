"""Writing the streaming pass of online_softmax into a program, in either form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from steptp_dagster.leir.ast import Access, Equation, Expr, Int, Loop, Nest, Program, Statement
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    at,
    fresh_indices,
    index_names,
    loops_around,
    map_equation,
    map_expr,
)
from steptp_dagster.strategies.prefix_rows import Maximum
from steptp_dagster.strategies.rewrite import new_tensor_names
from steptp_dagster.strategies.softmax_rows import Rows
from steptp_dagster.strategies.streaming import (
    MINUS_INF,
    ZERO,
    history_equations,
    indexed,
    rolling_equations,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the loop over a row stands: its nest, its place there, all loops but it below.

    ``alone``: nothing but the maximum runs in the loop.
    """

    path: Path
    outer: tuple[Loop, ...]
    loop: Loop
    inner: tuple[Loop, ...]
    alone: bool


def place_of(program: Program, rows: Rows | Maximum) -> Place:
    """Where the loop over a row stands."""
    path = rows.reduction.path
    nest = at(program, path)
    if not isinstance(nest, Nest):
        raise TypeError(f"the statement at {path} is an equation")
    depth = rows.reduction.depth
    inner, alone = nest.loops[depth + 1 :], True
    statement: Statement = nest
    for step in rows.max_path[len(path) :]:
        if not isinstance(statement, Nest):
            raise IndexError(f"no statement at {rows.max_path}")
        alone = alone and len(statement.body) == 1
        inner += statement.loops if statement is not nest else ()
        statement = statement.body[step]
    return Place(path, nest.loops[:depth], rows.reduction.loop, inner, alone)


def not_private(program: Program, rows: Rows) -> str | None:
    """Why no thread can keep the running values to itself, or None."""
    place = place_of(program, rows)
    if not place.alone:
        return "other statements run inside the loop over the row"
    for loop in loops_around(program, rows.max_path):
        if loop.kind in ("P", "V"):
            return f"rows run side by side in loop {loop.index} of kind {loop.kind}"
    if len(place.path) == 1 and not place.outer and not place.inner:
        return "no loop is left to hold the state of a row"
    return None


def state_tensor(name: str, like: Access, scope: str) -> Access:
    """A tensor for running values: like another one, in its evaluation type."""
    return replace(like, name=name, dtype=DTYPES[like.dtype].evaluation.name, scope=scope)


def history(program: SignedProgram, rows: Rows) -> Program:
    """The program with one array element per step for the running maximum and sum."""
    names = new_tensor_names(program, 2)
    n = state_tensor(names[0], rows.maximum, rows.maximum.scope)
    r = state_tensor(names[1], rows.total, rows.total.scope)
    loop = rows.reduction.loop
    streaming = tuple(
        replace(equation, guard=rows.guard)
        for equation in history_equations(rows.score, n, r, loop.index, loop.start)
    )
    last = Int(loop.start + loop.extent - 1)
    outputs = {v.name for v in program.signature.outputs}
    kept = [
        Equation(old, indexed(new, last), rows.guard)
        for old, new in ((rows.maximum, n), (rows.total, r))
        if old.name in outputs
    ]
    by_name = {rows.maximum.name: n, rows.total.name: r}

    def read_last(node: Expr) -> Expr:
        if isinstance(node, Access) and node.name in by_name:
            new = by_name[node.name]
            return Access(new.name, new.dtype, new.scope, (*node.subscripts, last))
        return node

    changes: dict[Path, tuple[Statement, ...]] = {
        rows.max_path: streaming,
        rows.sum_path: (),
        **dict.fromkeys(rows.inits, ()),
    }
    place = place_of(program.program, rows)
    after: dict[Path, tuple[Statement, ...]] = {}
    if kept:
        after[place.path] = under_rows(program.program, place, tuple(kept))
    return rebuilt(program.program, changes, after, read_last)


def rolling(program: SignedProgram, rows: Rows) -> Program:
    """The program with the running maximum and sum in thread-private scalars."""
    names = new_tensor_names(program, 3)
    scalar = Access(names[0], rows.maximum.dtype, "l")
    n = state_tensor(names[0], scalar, "l")
    r = replace(n, name=names[1], dtype=DTYPES[rows.total.dtype].evaluation.name)
    new = replace(n, name=names[2])
    step = tuple(
        replace(equation, guard=rows.guard) for equation in rolling_equations(rows.score, n, new, r)
    )
    body: tuple[Statement, ...] = (
        Equation(n, MINUS_INF),
        Equation(r, ZERO),
        Nest((rows.reduction.loop,), step),
        Equation(rows.maximum, n, rows.guard),
        Equation(rows.total, r, rows.guard),
    )
    place = place_of(program.program, rows)
    changes: dict[Path, tuple[Statement, ...]] = {
        place.path: under_rows(program.program, place, body),
        rows.sum_path: (),
        **dict.fromkeys(rows.inits, ()),
    }
    return rebuilt(program.program, changes, {}, lambda node: node)


def under_rows(
    program: Program, place: Place, body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """The statements under all loops of a row but the one over it.

    At the top level there must be a loop; where none is left, one of extent 1 is made.
    """
    loops = (*place.outer, *place.inner)
    if loops:
        return (Nest(loops, body),)
    if len(place.path) > 1:
        return body
    name = next(fresh_indices(index_names(program.nests[place.path[0]])))
    return (Nest((Loop("L", name, 1),), body),)


def _nest(old: Nest, body: tuple[Statement, ...]) -> tuple[Nest, ...]:
    """The nest over a new body: gone with its last statement, one with a nest left alone in it."""
    if not body:
        return ()
    first = body[0]
    if len(old.body) > 1 and len(body) == 1 and isinstance(first, Nest):
        return (replace(first, loops=(*old.loops, *first.loops)),)
    return (replace(old, body=body),)


def rebuilt(
    program: Program,
    changes: Mapping[Path, tuple[Statement, ...]],
    after: Mapping[Path, tuple[Statement, ...]],
    function: Callable[[Expr], Expr],
) -> Program:
    """Put ``changes`` in the place of statements, ``after`` behind them, map all others."""

    def visit(statement: Statement, path: Path) -> tuple[Statement, ...]:
        behind = after.get(path, ())
        if path in changes:
            return (*changes[path], *behind)
        if isinstance(statement, Equation):
            return (map_equation(statement, lambda e: map_expr(e, function)), *behind)
        body = tuple(
            new for i, inner in enumerate(statement.body) for new in visit(inner, (*path, i))
        )
        return (*_nest(statement, body), *behind)

    nests = [new for i, nest in enumerate(program.nests) for new in visit(nest, (i,))]
    return Program(tuple(nest for nest in nests if isinstance(nest, Nest)))
