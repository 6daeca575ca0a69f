"""The zoo: the verifier tried on pairs that are known to be wrong, and on right ones.

Besides the pairs by hand there is a sample of mutants of right programs; those that truly differ
(``verify.mutation.witness``) are wrong pairs of the kind ``mutant: KIND``.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import ZOO, Row
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress

#: How many mutants are tried; ``steptp zoo`` tries all.
MUTANTS: Final = 90
STAGE = Stage("zoo", {"zoo": ZOO}, {"zoo": ("wrong", "kind", "pair")})


def update_zoo(
    store: Store, seed: int, workers: Workers, origin: Origin, progress: Progress[Made]
) -> Report:
    """Try the verifier again where its code changed."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return progress("zoo of known pairs", len(missing), workers.map(work, missing))

    wanted = [Unit(digest("unit", "zoo", code_version("zoo"), seed), seed)]
    return update(store, STAGE, WHOLE, wanted, compute, origin=origin)


def work(unit: Unit) -> Made:
    """Judge all pairs; runs in a worker process."""
    return timed(unit, partial(_rows, unit.payload))


def _rows(seed: int) -> dict[str, list[Row]]:
    from steptp_dagster.dataset.zoo_score import sample
    from steptp_dagster.progress import silent
    from steptp_dagster.verify.zoo import run

    by_hand: list[Row] = [
        {
            "pair": entry.pair.name,
            "kind": entry.pair.kind,
            "wrong": not entry.right,
            "accepted": entry.verdict.accepted,
            "reason": entry.verdict.reason,
            "published_rule": entry.published,
        }
        for entry in run(seed).entries
    ]
    mutants: list[Row] = [
        {
            "pair": f"{result.base}: {result.place}",
            "kind": f"mutant: {result.kind}",
            "wrong": True,
            "accepted": result.accepted,
            "reason": result.reason,
            "published_rule": result.published,
        }
        for result in sample(seed, MUTANTS, silent).score.results
        if result.different
    ]
    return {"zoo": by_hand + mutants}
