"""Finding ``O=O+W*X`` whose weights ``W`` are a softmax over the loop that it reduces over.

The weights are followed through plain assignments (copies, views, the softmax itself) up to
``exp(S-M)/Z`` in the indices of the weighted sum. Maximum and sum may be plain passes, a running
maximum with a plain sum, or both running, each read directly or through copies, so that every
program between a naive softmax and ``online_softmax`` matches.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steptp_dagster.leir.accesses import LoopRef, Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Binary, Call, Expr, Index, Loop, Nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, at, indices_in
from steptp_dagster.strategies.matching import distinguishes, instantiate
from steptp_dagster.strategies.prefix_rows import find_sums, last_step, running_maximum, substituted
from steptp_dagster.strategies.softmax_rows import Rows
from steptp_dagster.strategies.streaming import exp_of_difference, history_equations


@dataclass(frozen=True, slots=True)
class Attention:
    """A weighted sum with softmax weights.

    ``rows`` are the loops that weights or rows use, and bound ones; ``columns`` serial loops that
    only the other operand uses. ``score`` and ``operand`` are in the indices of the weighted sum;
    ``operand_first``: it stands left of the weights. ``maximum`` and ``total`` are what the
    weights read, ``chain`` all tensors that the weights were followed through, ``maker`` the
    equation of the maximum.
    """

    path: Path
    target: Access
    score: Expr
    operand: Expr
    operand_first: bool
    maximum: Access
    total: Access
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    reduction: Loop
    chain: tuple[str, ...]
    maker: Path


@dataclass(frozen=True, slots=True)
class NoAttention:
    """A weighted sum of softmax weights that cannot be streamed: where, reason, words."""

    path: Path
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Weights:
    """Followed weights: the softmax in the reader's indices and the tensors on the way."""

    score: Expr
    maximum: Access
    total: Access
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Normaliser:
    """A way to compute maximum and sum of rows, in the indices of the maximum's equation."""

    score: Expr
    maximum: Access
    total: Access
    reduction: LoopRef
    maker: Statement
    last: Statement


def find_attention(program: SignedProgram) -> tuple[Attention | NoAttention, ...]:
    """All weighted sums of softmax weights, in text order."""
    analysis = Analysis.of(program)
    found: list[Attention | NoAttention] = []
    for statement in analysis.accesses.statements:
        update = analysis.updates[statement.path]
        operand = update.operand
        if update.op != "+" or update.subtract or not isinstance(operand, Binary):
            continue
        if operand.op != "*":
            continue
        for weights, other, first in (
            (operand.left, operand.right, False),
            (operand.right, operand.left, True),
        ):
            followed = _followed(program, statement, weights)
            if followed is not None:
                found.append(_judged(program, statement, followed, other, first))
                break
    return tuple(found)


def _followed(program: SignedProgram, reader: Statement, weights: Expr) -> _Weights | None:
    chain: list[str] = []
    softmax = _expanded(program, reader, weights, chain)
    if not isinstance(softmax, Binary) or softmax.op != "/":
        return None
    pair = exp_of_difference(_expanded(program, reader, softmax.left, chain))
    if pair is None:
        return None
    maximum = _expanded(program, reader, pair[1], chain)
    total = _expanded(program, reader, softmax.right, chain)
    if not isinstance(maximum, Access) or not isinstance(total, Access):
        return None
    chain += [total.name, maximum.name]
    return _Weights(pair[0], maximum, total, tuple(dict.fromkeys(chain)))


def _expanded(program: SignedProgram, reader: Statement, expr: Expr, chain: list[str]) -> Expr:
    """The expression with the accesses that it consists of replaced by their definitions."""
    writes = Analysis.of(program).accesses.writes
    while isinstance(expr, Access):
        made = [use.statement for use in writes.get(expr.name, [])]
        if len(made) != 1:
            return expr
        new = substituted(program, made[0], reader, expr)
        if new is None or new == expr:
            return expr
        chain.append(expr.name)
        expr = new
    return expr


def _normalisers(program: SignedProgram) -> Iterator[_Normaliser]:
    statement_at = Analysis.of(program).accesses.statement_at
    for rows in find_sums(program):
        if isinstance(rows, Rows) and rows.guard is None:
            maker, last = statement_at[rows.max_path], statement_at[rows.sum_path]
            loop = rows.reduction.loop
            maximum = last_step(rows.maximum, loop) if rows.prefix else rows.maximum
            step = next(old for old, new in rows.renaming if new == loop.index)
            if not (_apart(program, maker, loop.index) and _apart(program, last, step)):
                continue
            yield _Normaliser(rows.score, maximum, rows.total, rows.reduction, maker, last)
    for statement in Analysis.of(program).accesses.statements:
        running = running_maximum(statement)
        if running is None or statement.equation.guard is not None:
            continue
        array, score, reduction = running
        for other in Analysis.of(program).accesses.statements:
            if other.path[:-1] == statement.path[:-1] and other.equation.target.subscripts:
                target = other.equation.target
                total = Access(target.name, target.dtype, target.scope, target.subscripts[:-1])
                loop = reduction.loop
                _, expected = history_equations(score, array, total, loop.index, loop.start)
                apart = _apart(program, statement, loop.index)
                if expected == other.equation and apart and _apart(program, other, loop.index):
                    yield _Normaliser(
                        score,
                        last_step(array, loop),
                        last_step(total, loop),
                        reduction,
                        statement,
                        other,
                    )


def _apart(program: SignedProgram, made: Statement, step: str) -> bool:
    """Whether every row has elements of its own, which no other row overwrites."""
    extents = {ref.name: ref.loop.extent for ref in made.chain}
    rows = [name for name in extents if name != step]
    forms = Analysis.of(program).accesses.by_statement[made.path][0].forms
    return distinguishes(forms, rows, extents)


def _judged(
    program: SignedProgram, statement: Statement, found: _Weights, operand: Expr, first: bool
) -> Attention | NoAttention:
    path = statement.path
    update = Analysis.of(program).updates[path]
    nest = at(program.program, path[:1])
    target = statement.equation.target
    if (
        len(path) != len(("nest", "equation"))
        or not isinstance(nest, Nest)
        or len(nest.body) > 1
        or statement.equation.guard is not None
    ):
        return NoAttention(
            path, "not-alone", f"the sum {target.name} shares its nest or is guarded"
        )
    if update.init != "identity":
        return NoAttention(path, "start-not-identity", f"{target.name} adds to older values")
    if len(update.reduction_loops) != 1 or update.repeating_loops != update.reduction_loops:
        return NoAttention(path, "rows-differ", f"{target.name} reduces over several loops")
    reduction = next(x for x in nest.loops if x.index == update.reduction_loops[0])
    if reduction.kind not in ("L", "U"):
        message = f"loop {reduction.index} is of kind {reduction.kind}; a recurrence needs L or U"
        return NoAttention(path, "reduction-loop-not-serial", message)
    made = _made(program, statement, found, reduction)
    if isinstance(made, NoAttention):
        return made
    used = indices_in(found.score) | indices_in(found.maximum) | indices_in(found.total)
    columns = tuple(
        loop
        for loop in nest.loops
        if loop is not reduction and loop.index not in used and loop.kind in ("L", "U")
    )
    rows = tuple(x for x in nest.loops if x is not reduction and x not in columns)
    for loop in rows:
        if loop.kind in ("P", "V"):
            message = f"rows run side by side in loop {loop.index} of kind {loop.kind}"
            return NoAttention(path, "state-not-private", message)
    return Attention(
        path,
        target,
        found.score,
        operand,
        first,
        found.maximum,
        found.total,
        rows,
        columns,
        reduction,
        found.chain,
        made.path,
    )


def _made(
    program: SignedProgram, statement: Statement, found: _Weights, reduction: Loop
) -> Statement | NoAttention:
    """The equation of the maximum, if maximum and sum are those of the rows of the weights."""
    path = statement.path
    softmax = _softmax(found.score, found.maximum, found.total)
    for way in _normalisers(program):
        if (way.maximum.name, way.total.name) != (found.maximum.name, found.total.name):
            continue
        solved = instantiate(_softmax(way.score, way.maximum, way.total), softmax, {})
        if solved is None or not _same_rows(way, solved, reduction):
            continue
        changed = _changed(program, way, statement)
        if changed is not None:
            return NoAttention(path, "scores-change", changed)
        return way.maker
    message = f"{found.maximum.name} and {found.total.name} are not those of a row of the sum"
    return NoAttention(path, "rows-differ", message)


def _softmax(score: Expr, maximum: Expr, total: Expr) -> Expr:
    return Binary("/", Call("exp", (Binary("-", score, maximum),)), total)


def _same_rows(way: _Normaliser, solved: Mapping[str, Expr], reduction: Loop) -> bool:
    """Whether the solved indices run over one row, in order, as the weighted sum does."""
    loop = way.reduction.loop
    if solved.get(loop.index) != Index(reduction.index):
        return False
    if (loop.start, loop.extent) != (reduction.start, reduction.extent):
        return False
    others = [expr for name, expr in solved.items() if name != loop.index]
    return not any(reduction.index in indices_in(expr) for expr in others)


def _changed(program: SignedProgram, way: _Normaliser, statement: Statement) -> str | None:
    """Why the scores may have changed between the maximum and the weighted sum, or None."""
    nest = statement.path[0]
    if max(way.maker.path[0], way.last.path[0]) >= nest:
        return "maximum and sum are computed in the nest of the weighted sum"
    accesses = Analysis.of(program).accesses
    for name in dict.fromkeys(access.name for access in accesses_in(way.score)):
        for write in accesses.writes.get(name, []):
            maker = write.statement
            if maker.path[0] < way.maker.path[0]:
                continue
            extents = {ref.name: ref.loop.extent for ref in maker.chain}
            once = distinguishes(write.forms, extents, extents)
            plain = Analysis.of(program).updates[maker.path].kind == "assignment"
            if maker.order > way.maker.order or not (once and plain) or write.access.scope != "g":
                return f"{name} may be written after the maximum was taken"
    return None
