"""Evidence that streaming steps of a softmax share: one entry per precondition."""

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Expr, Index
from steptp_dagster.leir.printer import expr_text, loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, loops_around, substitute
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import evidence
from steptp_dagster.strategies.facts import Evidence, Fact
from steptp_dagster.strategies.rewrite import equation_at
from steptp_dagster.strategies.row_evidence import (
    dtype_fact,
    extent_fact,
    guard_fact,
    kind_fact,
    readers_fact,
    reduction_fact,
    start_facts,
    target_fact,
    trips_fact,
    value_fact,
    writers_fact,
)
from steptp_dagster.strategies.softmax_rows import Rows


def rows_evidence(
    program: SignedProgram, rows: Rows, preconditions: tuple[str, ...]
) -> tuple[Evidence, ...]:
    """The evidence for these preconditions, in their order."""
    known = {one.precondition: one for one in _all(program, rows)}
    return tuple(known[name] for name in preconditions)


def _all(program: SignedProgram, rows: Rows) -> tuple[Evidence, ...]:
    first, second = rows.max_path, rows.sum_path
    m, z, loop = rows.maximum.name, rows.total.name, rows.reduction.name
    other = next(old for old, new in rows.renaming if new == loop)
    plain = (*(() if rows.prefix else (first,)), *(() if rows.streamed else (second,)))
    scores = tuple(dict.fromkeys(access.name for access in accesses_in(rows.score)))
    header = loops_text(loops_around(program.program, first))
    copied = tuple(dict.fromkeys(copy.tensor for copy in rows.copies))
    return (
        evidence("guarded-update", guard_fact(program, first), guard_fact(program, second)),
        evidence("not-floating", dtype_fact(program, m), dtype_fact(program, z)),
        evidence(
            "several-reduction-loops",
            *(fact for path in plain for fact in _reductions(program, path)),
            *(() if plain else (extent_fact(program, first, loop),)),
        ),
        evidence("rows-overlap", target_fact(program, first), target_fact(program, second)),
        evidence(
            "reduction-loop-not-serial",
            kind_fact(program, first, loop),
            kind_fact(program, second, other),
        ),
        evidence(
            "scores-differ",
            value_fact(program, first),
            _renamed(program, second, rows.renaming),
            *(value_fact(program, path) for path in rows.via),
        ),
        evidence("loops-differ", trips_fact(program, first), trips_fact(program, second)),
        evidence(
            "start-not-identity",
            *start_facts(program, plain, rows.inits),
            *(() if plain else (value_fact(program, second),)),
        ),
        evidence("written-elsewhere", writers_fact(program, m), writers_fact(program, z)),
        evidence(
            "sum-private-elsewhere",
            before_fact("scope_of", z, value=rows.total.scope),
            *(() if rows.total.scope == "g" else (writers_fact(program, z),)),
        ),
        evidence("scores-change", *(writers_fact(program, s) for s in scores or (m,))),
        evidence("read-too-early", readers_fact(program, m), readers_fact(program, z)),
        evidence("no-normalisation", *(value_fact(program, path) for path in rows.uses[:1])),
        evidence("state-not-private", before_fact("header_text", first, value=header)),
        evidence("earlier-step-read", readers_fact(program, m), readers_fact(program, z)),
        evidence("rounding-observed", *(dtype_fact(program, name) for name in (m, *copied))),
    )


def _reductions(program: SignedProgram, path: Path) -> tuple[Fact, ...]:
    """The reduction loops of a plain pass; the extents where there are several."""
    loops = Analysis.of(program).updates[path].reduction_loops
    shown = loops if len(loops) > 1 else ()
    return (reduction_fact(program, path), *(extent_fact(program, path, x) for x in shown))


def _renamed(program: SignedProgram, path: Path, renaming: tuple[tuple[str, str], ...]) -> Fact:
    """The right side of the sum, in the indices of the maximum."""
    by: dict[str, Expr] = {old: Index(new) for old, new in renaming}
    text = expr_text(substitute(equation_at(program.program, path).value, by))
    return before_fact("renamed_value", path, renaming, value=text)
