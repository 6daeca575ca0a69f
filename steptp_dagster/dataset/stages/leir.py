"""LEIR of source programs: translated, checked, compared with PyTorch, screened."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, SOURCE_PROGRAMS, TRANSLATIONS, Row
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress

STAGE = Stage(
    "leir",
    {"translations": TRANSLATIONS, "leir_programs": LEIR_PROGRAMS},
    {"translations": ("source_id",), "leir_programs": ("leir_id", "unit")},
)


def update_leir(
    store: Store, program: str, workers: Workers, origin: Origin, progress: Progress[Made]
) -> Report:
    """Bring the translations of one workload up to date."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = workers.map(work, missing)
        return progress(f"LEIR of {program}", len(missing), made)

    rows = store.read(SOURCE_PROGRAMS, program).to_dicts()
    composed = {_sample(row) for row in rows if row["form"] == "composed"}
    wanted = []
    for row in rows:
        twin = row["form"] == "naive" and _sample(row) in composed
        key = digest("unit", "leir", code_version("leir"), row["source_id"], twin)
        wanted.append(Unit(key, (row, twin)))
    return update(store, STAGE, program, wanted, compute, origin=origin)


def work(unit: Unit) -> Made:
    """Translate one source; runs in a worker process, which loads PyTorch and TVM."""
    from steptp_dagster.dataset.translations import rows_of

    return timed(unit, partial(rows_of, *unit.payload))


def _sample(row: Row) -> tuple[Any, ...]:
    """What the forms of one sample have in common."""
    return tuple(row[name] for name in ("program", "code_hash", "dtype", "shapes", "seed"))
