"""LEIR of source programs: translated, checked, compared with PyTorch, screened."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, SOURCE_PROGRAMS, TRANSLATIONS, Row
from steptp_dagster.dataset.stages.sources import source_of
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
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
    """Translate one source; runs in a worker process."""
    return timed(unit, partial(_rows, *unit.payload))


def _sample(row: Row) -> tuple[Any, ...]:
    """What the forms of one sample have in common."""
    return tuple(row[name] for name in ("program", "code_hash", "dtype", "shapes", "seed"))


def _rows(source: Row, twin: bool) -> dict[str, list[Row]]:
    """The translation of a source; ``twin`` if the composed form of the sample is a source too."""
    from steptp_dagster.translate.fidelity import fidelity
    from steptp_dagster.translate.translate import Translation, TranslationRefusal, translate

    shape = json.loads(source["shapes"])
    built = source_of(source["program"]).build(shape, source["dtype"], source["seed"])
    inputs = built.example(source["seed"])

    def translated(*, naive: bool) -> Translation | TranslationRefusal:
        return translate(
            built.module, inputs, source=source["program"], ranges=built.ranges, naive=naive
        )

    found = translated(naive=source["form"] == "naive")
    if isinstance(found, TranslationRefusal):
        return _refused(source, found.operator, str(found))
    if twin and translated(naive=False) == found:
        return _refused(source, "same-as-composed", "it has no view that could be a nest")
    refusal = _objection(found.signed)
    if refusal is not None:
        return _refused(source, *refusal)
    faithful = fidelity(built.module, inputs, found)
    if not faithful.faithful:
        error = faithful.max_normalised_error
        return _refused(source, "unfaithful", f"normalised difference {error:.1e} from PyTorch")
    row = row_of(found.signed)
    return {
        "translations": [
            _translation(
                source,
                leir_id=row["leir_id"],
                fidelity=faithful.max_normalised_error,
                screens=list(_screens(found.signed)),
            )
        ],
        "leir_programs": [row],
    }


def _objection(signed: SignedProgram) -> tuple[str, str] | None:
    for violation in check(signed):
        return "result-invalid", f"{violation.kind}: {violation.message}"
    for violation in check_limits(signed):
        return "result-over-limits", f"{violation.kind}: {violation.message}"
    return None


def _screens(signed: SignedProgram) -> tuple[str, ...]:
    from steptp_dagster.verify.screen import screen

    return screen(signed)


def _refused(source: Row, what: str, message: str) -> dict[str, list[Row]]:
    return {"translations": [_translation(source, refusal=what, message=message)]}


def _translation(source: Row, **known: object) -> Row:
    nothing: Row = dict.fromkeys(("leir_id", "refusal", "message", "fidelity"))
    return {"source_id": source["source_id"], **nothing, "screens": [], **known}
