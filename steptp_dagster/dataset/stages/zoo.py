"""The zoo: the verifier tried on pairs that are known to be wrong, and on right ones."""

from collections.abc import Iterator, Sequence
from functools import partial

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import ZOO, Row
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress

STAGE = Stage("zoo", {"zoo": ZOO}, {"zoo": ("wrong", "kind", "pair")})


def update_zoo(
    store: Store, seed: int, workers: Workers, origin: Origin, progress: Progress[Made]
) -> Report:
    """Try the verifier again where its code changed."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return progress("zoo of known pairs", len(missing), workers.map(work, missing))

    wanted = [Unit(digest("unit", "zoo", code_version("verdicts"), seed), seed)]
    return update(store, STAGE, WHOLE, wanted, compute, origin=origin)


def work(unit: Unit) -> Made:
    """Judge all pairs; runs in a worker process."""
    return timed(unit, partial(_rows, unit.payload))


def _rows(seed: int) -> dict[str, list[Row]]:
    from steptp_dagster.verify.zoo import run

    return {
        "zoo": [
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
    }
