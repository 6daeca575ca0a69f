"""Writing the streaming pass of a softmax into a program: step by step, or over rolling state.

``prefix_sum`` keeps every tensor there is: a copy of the last step takes the place of the
reduction. ``history`` lets the readers of these tensors read the last step itself,
``rolling`` keeps nothing but the present step, in thread-private memory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import is_

from steptp_dagster.leir.accesses import LoopRef
from steptp_dagster.leir.analysis import Analysis
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
from steptp_dagster.strategies.dataflow import flows
from steptp_dagster.strategies.inlining import decisive_reads, rounds_when_stored
from steptp_dagster.strategies.rewrite import equation_at, new_tensor_names
from steptp_dagster.strategies.running import Copy, last_step
from steptp_dagster.strategies.softmax_rows import Rows
from steptp_dagster.strategies.streaming import (
    MINUS_INF,
    ZERO,
    faithful_total,
    history_equations,
    rolling_equations,
    shifted_total,
)

Changes = dict[Path, tuple[Statement, ...]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the loop over a row stands: its nest, its place there, all loops but it below.

    ``alone``: nothing but maximum and sum runs in the loop.
    """

    path: Path
    outer: tuple[Loop, ...]
    loop: Loop
    inner: tuple[Loop, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class _Streamed:
    """Running maximum and sum, without their steps, and the changes that make them."""

    running: Access
    total: Access
    changes: Changes


def place_of(
    program: Program, reduction: LoopRef, inside: Path, own: frozenset[Path] = frozenset()
) -> Place:
    """Where the loop over a row stands, which the equation ``inside`` and ``own`` run in."""
    path = reduction.path
    nest = at(program, path)
    if not isinstance(nest, Nest):
        raise TypeError(f"the statement at {path} is an equation")
    depth = reduction.depth
    inner, alone = nest.loops[depth + 1 :], True
    statement: Statement = nest
    for level, step in enumerate(inside[len(path) :], len(path)):
        if not isinstance(statement, Nest):
            raise IndexError(f"no statement at {inside}")
        here = inside[:level]
        rest = {(*here, i) for i in range(len(statement.body))} - {inside[: level + 1]}
        alone = alone and rest <= own
        inner += statement.loops if statement is not nest else ()
        statement = statement.body[step]
    return Place(path, nest.loops[:depth], reduction.loop, inner, alone)


def _place(program: Program, rows: Rows) -> Place:
    return place_of(
        program, rows.reduction, rows.max_path, frozenset((rows.max_path, rows.sum_path))
    )


def not_private(program: Program, rows: Rows) -> str | None:
    """Why no thread can keep the running values to itself, or None."""
    place = _place(program, rows)
    if not place.alone:
        return "other statements run inside the loop over the row"
    for loop in loops_around(program, rows.max_path):
        if loop.kind in ("P", "V"):
            return f"rows run side by side in loop {loop.index} of kind {loop.kind}"
    if len(place.path) == 1 and not place.outer and not place.inner:
        return "no loop is left to hold the state of a row"
    return None


def early_step(program: SignedProgram, rows: Rows) -> str | None:
    """Who reads another step of the running values than the last one, or None."""
    arrays = [rows.maximum.name] if rows.prefix else []
    arrays += [rows.total.name] if rows.streamed else []
    end = Int(rows.reduction.loop.start + rows.reduction.loop.extent - 1)
    for name in arrays:
        if name in program.signature.by_name:
            return f"{name} is an output, with all its steps"
        for use in Analysis.of(program).accesses.by_tensor[name]:
            if use.statement.path in (rows.max_path, rows.sum_path):
                continue
            if use.access.subscripts[-1] != end:
                return f"{name} is read at another step than the last one"
    return None


def rounding_observed(program: SignedProgram, rows: Rows) -> str | None:
    """Whose rounding decides something, which reading the running values would change, or None."""
    accesses = Analysis.of(program).accesses
    made = [copy.path for copy in rows.copies]
    made += [] if rows.prefix else [rows.max_path]
    for path in made:
        equation = accesses.statement_at[path].equation
        if not rounds_when_stored(equation):
            continue
        name = equation.target.name
        for use in accesses.by_tensor[name]:
            if any(a.name == name for a in decisive_reads(use.statement.equation)):
                return f"{name} is rounded to {equation.target.dtype} and decides something"
    return None


def maximum_rounded(program: SignedProgram, rows: Rows) -> str | None:
    """What would still read the maximum as it is stored, rounded, or None.

    A running sum is relative to the maximum that it runs beside, which has the evaluation type.
    Where the stored maximum is narrower, ``exp(S-M)/Z`` would take the two from different maxima:
    on large scores they are far apart.
    """
    if rows.streamed:
        return None
    accesses = Analysis.of(program).accesses
    stored = () if rows.prefix else (rows.max_path,)
    copies = tuple(copy.path for copy in rows.copies)
    own = {rows.max_path, rows.sum_path, *rows.inits, *copies}
    for path in (*stored, *copies):
        equation = accesses.statement_at[path].equation
        name = equation.target.name
        readers = (use.statement.path for use in accesses.by_tensor[name])
        rounds = rounds_when_stored(replace(equation, value=rows.score))
        if rounds and any(reader not in own for reader in readers):
            return f"{name} is rounded to {equation.target.dtype}, the running maximum is not"
    return None


def state_tensor(name: str, like: Access, scope: str) -> Access:
    """A tensor for running values: like another one, in its evaluation type."""
    return replace(like, name=name, dtype=DTYPES[like.dtype].evaluation.name, scope=scope)


def prefix_sum(program: SignedProgram, rows: Rows) -> SignedProgram:
    """The program with the sum of every step in an array beside the running maximum.

    Where the maximum is not a running one yet, it becomes one. Sum and maximum are copied out,
    the maximum only where something else than the sum reads it.
    """
    loop, found = rows.reduction.loop, _streamed(program, rows)
    copies = [_kept_total(rows, found)]
    if not rows.prefix and _read_elsewhere(program, rows):
        copies.insert(0, Equation(rows.maximum, last_step(found.running, loop), rows.guard))
    place = _place(program.program, rows)
    after = {place.path: under_rows(program.program, place, tuple(copies))}
    new = rebuilt(program.program, found.changes, after)
    unread = _names_at(program, rows.via)
    if not rows.prefix:
        unread = (*unread, rows.maximum.name)
    return pruned(SignedProgram(new, program.signature), unread)


def history(program: SignedProgram, rows: Rows) -> SignedProgram:
    """The program with running maximum and sum, whose readers read the last step.

    Where something else than softmax and log-softmax sees the sum, its tensor stays for that.
    """
    loop, found = rows.reduction.loop, _streamed(program, rows)
    outputs = {v.name for v in program.signature.outputs}
    arrays = {found.running.name: found.running, found.total.name: found.total}
    everywhere = {copy.tensor: arrays[copy.of] for copy in rows.copies if not copy.faithful}
    softmax = {copy.tensor: arrays[copy.of] for copy in rows.copies if copy.faithful}
    kept: list[Equation] = []
    if not rows.prefix:
        everywhere[rows.maximum.name] = found.running
        if rows.maximum.name in outputs:
            kept.append(Equation(rows.maximum, last_step(found.running, loop), rows.guard))
    if not rows.streamed:
        softmax[rows.total.name] = found.total
        if rows.exposed:
            kept.append(_kept_total(rows, found))

    def reading(names: Mapping[str, Access]) -> Callable[[Expr], Expr]:
        def read_last(node: Expr) -> Expr:
            if isinstance(node, Access) and node.name in names:
                return last_step(replace(names[node.name], subscripts=node.subscripts), loop)
            return node

        return read_last

    changes: Changes = {**found.changes}
    for copy in rows.copies:
        stays = rows.exposed if copy.faithful else copy.tensor in outputs
        equation = equation_at(program.program, copy.path)
        changes[copy.path] = (equation,) if stays else ()
    read_all = reading({**everywhere, **softmax})
    for path in rows.absorbing:
        equation = equation_at(program.program, path)
        changes[path] = (map_equation(equation, lambda e: map_expr(e, read_all)),)
    place = _place(program.program, rows)
    after = {place.path: under_rows(program.program, place, tuple(kept))} if kept else {}
    new = rebuilt(program.program, changes, after, reading(everywhere))
    unread = (*_names_at(program, rows.via), *softmax)
    return pruned(SignedProgram(new, program.signature), unread)


def _kept_total(rows: Rows, found: _Streamed) -> Equation:
    """The sum copied out after the last step, as whatever reads it needs it."""
    loop = rows.reduction.loop
    last = _shown_total(rows, last_step(found.running, loop), last_step(found.total, loop))
    return Equation(rows.total, last, rows.guard)


def _shown_total(rows: Rows, maximum: Access, total: Access) -> Expr:
    """The last running sum as the readers of the plain one need it."""
    if not rows.exposed:
        return total
    return shifted_total(maximum, total) if rows.shifted else faithful_total(maximum, total)


def rolling(program: SignedProgram, rows: Rows) -> SignedProgram:
    """The program with the running maximum and sum in thread-private scalars.

    What was a running value already is written once, after the last step, into the tensor that
    copied it, or into a new one where there is none of its type, for all readers of the last step.
    """
    ends, names = _ends(program, rows)
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
        Equation(ends[0], n, rows.guard),
        Equation(ends[1], r if rows.streamed else _shown_total(rows, n, r), rows.guard),
    )
    arrays = {}
    if rows.prefix:
        arrays[rows.maximum.name] = ends[0]
    if rows.streamed:
        arrays[rows.total.name] = ends[1]
    gone = _same_as_ends(program, rows, arrays)
    copies = {copy.tensor: arrays[copy.of] for copy in gone}

    def read_end(node: Expr) -> Expr:
        if isinstance(node, Access) and node.name in arrays:
            return replace(arrays[node.name], subscripts=node.subscripts[:-1])
        if isinstance(node, Access) and node.name in copies:
            return replace(copies[node.name], subscripts=node.subscripts)
        return node

    place = _place(program.program, rows)
    changes: Changes = {copy.path: () for copy in gone}
    changes |= {rows.sum_path: (), **dict.fromkeys(rows.inits, ())}
    changes[place.path] = under_rows(program.program, place, body)
    return SignedProgram(rebuilt(program.program, changes, {}, read_end), program.signature)


def _ends(program: SignedProgram, rows: Rows) -> tuple[tuple[Access, Access], tuple[str, ...]]:
    """Where maximum and sum are written in the end, and the names of the rolling state."""
    accesses = Analysis.of(program).accesses
    names = new_tensor_names(program, len(("maximum", "sum", "next", "end", "end")))
    spare = iter(names[3:])
    found: list[Access] = []
    for value, running in ((rows.maximum, rows.prefix), (rows.total, rows.streamed)):
        end = value
        if running:
            copies = (
                accesses.statement_at[copy.path].equation.target
                for copy in rows.copies
                if copy.of == value.name and not copy.faithful
            )
            same = next((target for target in copies if target.dtype == value.dtype), None)
            name = next(spare) if same is None else same.name
            end = replace(value, name=name)
        found.append(end)
    return (found[0], found[1]), names[:3]


def _same_as_ends(program: SignedProgram, rows: Rows, ends: Mapping[str, Access]) -> list[Copy]:
    """Copies that the tensors written in the end make superfluous, those tensors included."""
    outputs = {v.name for v in program.signature.outputs}
    accesses = Analysis.of(program).accesses
    found: list[Copy] = []
    for copy in rows.copies:
        if copy.faithful:
            continue
        target, end = accesses.statement_at[copy.path].equation.target, ends[copy.of]
        if target.name == end.name or (target.dtype == end.dtype and target.name not in outputs):
            found.append(copy)
    return found


def _streamed(program: SignedProgram, rows: Rows) -> _Streamed:
    """The running values, those that are missing written in the place of the plain ones."""
    if rows.streamed:
        return _Streamed(rows.maximum, rows.total, {})
    loop = rows.reduction.loop
    names = new_tensor_names(program, 1 if rows.prefix else 2)
    total = state_tensor(names[-1], rows.total, rows.total.scope)
    if rows.prefix:
        running, own = rows.maximum, equation_at(program.program, rows.max_path)
    else:
        running = state_tensor(names[0], rows.maximum, rows.maximum.scope)
        own = history_equations(rows.score, running, total, loop.index, loop.start)[0]
        own = replace(own, guard=rows.guard)
    _, step = history_equations(rows.score, running, total, loop.index, loop.start)
    changes: Changes = {
        rows.max_path: (own, replace(step, guard=rows.guard)),
        rows.sum_path: (),
        **dict.fromkeys(rows.inits, ()),
    }
    return _Streamed(running, total, changes)


def _read_elsewhere(program: SignedProgram, rows: Rows) -> bool:
    """Whether something else than the sum and its own update needs the maximum."""
    if rows.maximum.name in {v.name for v in program.signature.outputs}:
        return True
    own = {rows.max_path, rows.sum_path, *rows.inits}
    uses = Analysis.of(program).accesses.by_tensor[rows.maximum.name]
    return any(use.statement.path not in own for use in uses)


def _names_at(program: SignedProgram, paths: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(equation_at(program.program, path).target.name for path in paths)


def pruned(program: SignedProgram, names: tuple[str, ...]) -> SignedProgram:
    """The program without those of the tensors that nothing else reads any more."""
    found = [
        ((i, *flow.path), flow)
        for i, nest in enumerate(program.program.nests)
        for flow in flows(nest)
    ]
    dead = {name for name in names if name not in program.signature.by_name}
    while True:
        read = {name for _, f in found if f.target not in dead for name in dead & f.read}
        if not read:
            break
        dead -= read
    gone: Changes = {
        path: () for path, f in found if f.target in dead or not dead.isdisjoint(f.read)
    }
    if not gone:
        return program
    new = rebuilt(program.program, gone, {})
    return SignedProgram(new, program.signature)


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
    function: Callable[[Expr], Expr] | None = None,
) -> Program:
    """Put ``changes`` in the place of statements, ``after`` behind them, map all others.

    What nothing happens to stays the object that it is.
    """
    touched = {path[0] for path in (*changes, *after)}

    def visit(statement: Statement, path: Path) -> tuple[Statement, ...]:
        behind = after.get(path, ())
        if path in changes:
            return (*changes[path], *behind)
        if isinstance(statement, Equation):
            if function is None:
                return (statement, *behind)
            return (map_equation(statement, lambda e: map_expr(e, function)), *behind)
        body = tuple(
            [new for i, inner in enumerate(statement.body) for new in visit(inner, (*path, i))]
        )
        if len(body) == len(statement.body) and all(map(is_, body, statement.body)):
            return (statement, *behind)
        return (*_nest(statement, body), *behind)

    nests: list[Statement] = []
    for i, nest in enumerate(program.nests):
        nests += visit(nest, (i,)) if function is not None or i in touched else (nest,)
    return Program(tuple(nest for nest in nests if isinstance(nest, Nest)))
