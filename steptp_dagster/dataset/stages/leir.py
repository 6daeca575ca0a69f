"""LEIR of source programs: translated, checked, compared with PyTorch, screened."""

from collections.abc import Iterator, Sequence
from functools import partial

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS
from steptp_dagster.dataset.stages.translated import STAGE, with_twins
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress


def update_leir(
    store: Store, program: str, workers: Workers, origin: Origin, progress: Progress[Made]
) -> Report:
    """Bring the translations of one workload up to date."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = workers.map(work, missing)
        return progress(f"LEIR of {program}", len(missing), made)

    rows = store.read(SOURCE_PROGRAMS, program).to_dicts()
    wanted = [
        Unit(digest("unit", "leir", code_version("leir"), row["source_id"], twin), (row, twin))
        for row, twin in with_twins(rows)
    ]
    return update(store, STAGE, program, wanted, compute, origin=origin)


def work(unit: Unit) -> Made:
    """Translate one source; runs in a worker process, which loads PyTorch and TVM."""
    from steptp_dagster.dataset.translations import rows_of

    return timed(unit, partial(rows_of, *unit.payload))
