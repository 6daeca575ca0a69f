"""Maximum and sum of the rows of a softmax in every form, as weights read them."""

from collections.abc import Iterator
from dataclasses import dataclass

from steptp_dagster.leir.accesses import LoopRef, Statement
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.matching import distinguishes
from steptp_dagster.strategies.running import last_step, rolling_rows
from steptp_dagster.strategies.softmax_rows import find_normalisers


@dataclass(frozen=True, slots=True)
class Normaliser:
    """A way to compute maximum and sum of rows, in the indices of the maximum's equation.

    ``maximum`` and ``total`` are what others read, ``running``: the last steps of running values.
    ``maker`` and ``last`` are their equations, ``state`` tensors that serve nothing else.
    """

    score: Expr
    maximum: Access
    total: Access
    reduction: LoopRef
    maker: Statement
    last: Statement
    running: bool
    state: tuple[str, ...] = ()


def normalisers(program: SignedProgram) -> Iterator[Normaliser]:
    """All of them: two passes, running ones, rolling state; each row with elements of its own."""
    statement_at = Analysis.of(program).accesses.statement_at
    for rows in find_normalisers(program):
        if rows.guard is not None:
            continue
        maker, last = statement_at[rows.max_path], statement_at[rows.sum_path]
        loop = rows.reduction.loop
        step = next(old for old, new in rows.renaming if new == loop.index)
        if _apart(program, maker, loop.index) and _apart(program, last, step):
            yield Normaliser(
                rows.score,
                last_step(rows.maximum, loop) if rows.prefix else rows.maximum,
                last_step(rows.total, loop) if rows.streamed else rows.total,
                rows.reduction,
                maker,
                last,
                rows.streamed,
            )
    accesses = Analysis.of(program).accesses
    for statement in accesses.statements:
        found = rolling_rows(program, statement)
        if found is None or not all(
            len(accesses.writes[x.name]) == 1 for x in (found.maximum, found.total)
        ):
            continue
        step = found.reduction.name
        if _apart(program, found.maker, step) and _apart(program, found.last, step):
            yield Normaliser(
                found.score,
                found.maximum,
                found.total,
                found.reduction,
                found.maker,
                found.last,
                running=False,
                state=found.state,
            )


def _apart(program: SignedProgram, made: Statement, step: str) -> bool:
    """Whether every row has elements of its own, which no other row overwrites."""
    extents = {ref.name: ref.loop.extent for ref in made.chain}
    rows = [name for name in extents if name != step]
    forms = Analysis.of(program).accesses.by_statement[made.path][0].forms
    return distinguishes(forms, rows, extents)
