"""Maxima over rows on their own: what ``normal_loop_max_to_prefix_max`` starts from."""

from dataclasses import replace

from steptp_dagster.leir.accesses import Statement
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.misses import Miss, Reject
from steptp_dagster.strategies.softmax_rows import Finder, Maximum, require_serial, row_guard
from steptp_dagster.strategies.streaming import is_minus_inf


def find_maxima(program: SignedProgram) -> tuple[Maximum | Miss, ...]:
    """All maxima over rows, in text order."""
    finder = Finder(program, normalised=False)
    found: list[Maximum | Miss] = []
    for statement in finder.accesses.statements:
        if finder.is_update(statement, "max"):
            try:
                found.append(_checked(finder, statement))
            except Reject as miss:
                found.append(Miss(statement.path, miss.reason, miss.message))
    return tuple(found)


def _checked(finder: Finder, statement: Statement) -> Maximum:
    found = finder.maximum(statement)
    reduction = found.reduction
    require_serial(reduction)
    if reduction.loop.extent == 1:
        raise Reject("row-of-one", f"loop {reduction.name} runs once")
    row_guard(statement, statement, reduction, {r.name: r.name for r in statement.chain})
    inits = finder.start(statement, reduction, found.again, is_minus_inf, "maximum")
    finder.uses_are_late(statement, reduction, set())
    return replace(found, inits=inits)
