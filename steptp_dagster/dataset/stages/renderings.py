"""Programs written in the language that the profile's records show, where that is not LEIR."""

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from steptp_dagster.dataset.candidates import Show, as_leir
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.renderings import rendering
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, NEGATIVES, RENDERINGS, Row
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress

STAGE = Stage("renderings", {"renderings": RENDERINGS}, {"renderings": ("program_key",)})


def update_renderings(
    store: Store, profile: Profile, workers: Workers, origin: Origin, progress: Progress[Made]
) -> Report:
    """Bring ``renderings`` up to date: one unit a program; none where records show LEIR."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return progress("renderings", len(missing), workers.map(work, missing))

    language = profile.records.program
    wanted = [
        Unit(
            digest("unit", "renderings", code_version("renderings"), language, *program),
            (*program, language),
        )
        for program in (programs(store, profile) if language != "leir" else ())
    ]
    return update(store, STAGE, WHOLE, wanted, compute, origin=origin, batch=256)


def programs(store: Store, profile: Profile) -> list[tuple[str, str]]:
    """Header and text of everything that records could show, sorted.

    Candidates that are no valid LEIR have no meaning in another language.
    """
    names = profile.program_names
    frames = [store.read_all(LEIR_PROGRAMS, names, f) for f in ("leir_programs", "step_programs")]
    known = pl.concat(frames).select("leir_id", "signature", "text")
    found = set(known.select("signature", "text").rows())
    if "negative" in profile.records.tasks:
        wrong = store.read_all(NEGATIVES, names).filter(
            pl.col("usable") & (pl.col("static") == "[]")
        )
        joined = wrong.join(known.unique("leir_id"), left_on="parent_leir_id", right_on="leir_id")
        found |= set(joined.select("signature", "candidate").rows())
    return sorted(found)


def work(unit: Unit) -> Made:
    """Write one program; runs in a worker process, which loads TVM."""
    return timed(unit, partial(_rows, *unit.payload))


def _rows(signature: str, leir: str, language: str) -> dict[str, list[Row]]:
    row: Row = {
        "program_key": program_key(signature, leir),
        "language": language,
        "text": rendering(signature, leir, language),
    }
    return {"renderings": [row]}


def program_key(signature: str, leir: str) -> str:
    """What a rendering is found by."""
    return digest("program", signature, leir)


def shown(store: Store, profile: Profile) -> Show:
    """How the profile's records show programs; ``update_renderings`` comes before."""
    if profile.records.program == "leir":
        return as_leir
    rows = store.read(RENDERINGS, WHOLE).filter(pl.col("language") == profile.records.program)
    texts = dict(rows.select("program_key", "text").rows())
    return lambda signature, leir: texts.get(program_key(signature, leir))
