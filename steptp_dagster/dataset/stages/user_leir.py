"""LEIR of users' programs: as ``leir``, but what executes their code runs in isolation."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of, translation_row
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS, Row
from steptp_dagster.dataset.stages.translated import ORDER, TABLES, with_twins
from steptp_dagster.dataset.stages.user_sources import OF_THE_MACHINE, limits_of, plan_of
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.user_bench import bench
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.validity import check
from steptp_dagster.progress import Progress
from steptp_dagster.users.files import UserFile
from steptp_dagster.users.isolation import Limits
from steptp_dagster.users.programs import Untranslated
from steptp_dagster.users.refusal import UserRefusal

#: The same stage as that of the library's programs; what ran into a limit is tried again.
STAGE = Stage(
    "leir",
    TABLES,
    ORDER,
    again=pl.col("refusal").is_in(OF_THE_MACHINE)
    | pl.col("screens")
    .list.eval(pl.element().is_in([f"screen-{r}" for r in OF_THE_MACHINE]))
    .list.any(),
)


@dataclass(frozen=True, slots=True)
class Task:
    """One sample; ``twin`` where the composed form of the sample is a source too."""

    source: Row
    file: UserFile
    limits: Limits
    twin: bool


def update_user_leir(
    store: Store,
    file: UserFile,
    profile: Profile,
    workers: Workers,
    origin: Origin,
    progress: Progress[Made],
) -> Report:
    """Bring the translations of one file's programs up to date."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = workers.map(work, missing)
        return progress(f"LEIR of {file.partition}", len(missing), made)

    limits = limits_of(plan_of(profile))
    rows = store.read(SOURCE_PROGRAMS, file.partition).to_dicts()
    bounds = [limits.timeout_s, limits.memory_mb]
    wanted = [
        Unit(
            digest("unit", "leir", code_version("user_leir"), row["source_id"], twin, bounds),
            Task(row, file, limits, twin),
        )
        for row, twin in with_twins(rows)
    ]
    return update(store, STAGE, file.partition, wanted, compute, origin=origin)


def work(unit: Unit) -> Made:
    """Translate one sample; runs in a worker process, which has an isolation of its own."""
    return timed(unit, partial(_rows, unit.payload))


def _rows(task: Task) -> dict[str, list[Row]]:
    source, told = task.source, json.loads(task.source["params"])
    isolated = bench(task.limits, source["seed"])
    found = isolated.translation(
        task.file,
        source["code"],
        told["name"],
        json.loads(source["shapes"]),
        source["dtype"] if told["cast"] else "",
        form=source["form"],
        twin=task.twin,
    )
    if isinstance(found, UserRefusal):
        return _refused(source, found.reason, str(found))
    if isinstance(found, Untranslated):
        return _refused(source, found.operator, found.message)
    # The process that translated also ran users' code, so its word is not enough.
    for violation in check(found.signed):
        return _refused(source, "result-invalid", f"{violation.kind}: {violation.message}")
    for violation in check_limits(found.signed):
        return _refused(source, "result-over-limits", f"{violation.kind}: {violation.message}")
    figures = dict(found.figures or {})
    if found.objection is not None:
        return _refused(source, *found.objection, **figures)
    screens = list(isolated.screens(found.plain))
    if not figures:
        figures = {"message": f"not executed: {found.unexecuted}"}
        screens = screens or ["not-executed"]
    row = row_of(found.signed)
    known = translation_row(source, leir_id=row["leir_id"], screens=screens, **figures)
    return {"translations": [known], "leir_programs": [row]}


def _refused(source: Row, what: str, message: str, **known: object) -> dict[str, list[Row]]:
    return {"translations": [translation_row(source, refusal=what, message=message, **known)]}
