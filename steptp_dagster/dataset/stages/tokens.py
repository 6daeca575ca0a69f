"""Token counts of all programs, and of a sample in other languages."""

from collections.abc import Iterator, Sequence
from functools import partial

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, TOKEN_COUNTS, TRANSLATIONS, Row
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.token_counts import row, sample
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress

STAGE = Stage("tokens", {"token_counts": TOKEN_COUNTS}, {"token_counts": ("leir_id",)})


def update_tokens(
    store: Store, profile: Profile, workers: Workers, origin: Origin, progress: Progress[Made]
) -> Report:
    """Bring ``token_counts`` up to date: one unit a program."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return progress("token counts", len(missing), workers.map(work, missing))

    wanted = units(store, profile)
    return update(store, STAGE, WHOLE, wanted, compute, origin=origin, batch=256)


def units(store: Store, profile: Profile) -> list[Unit]:
    """A unit for each distinct program of the profile, by id."""
    names = profile.program_names
    texts: dict[str, Row] = {}
    for folder in ("leir_programs", "step_programs"):
        found = store.read_all(LEIR_PROGRAMS, names, folder)
        for each in found.select("leir_id", "signature", "text").to_dicts():
            texts.setdefault(each["leir_id"], each)
    translated = store.read_all(TRANSLATIONS, names)["leir_id"].drop_nulls().to_list()
    sampled = sample(translated, texts)
    version = code_version("tokens")
    return [
        Unit(
            digest("unit", "tokens", version, leir, leir in sampled),
            (leir, texts[leir]["signature"], texts[leir]["text"], leir in sampled),
        )
        for leir in sorted(texts)
    ]


def work(unit: Unit) -> Made:
    """Count one program; runs in a worker process."""
    return timed(unit, partial(_rows, *unit.payload))


def _rows(leir_id: str, signature: str, text: str, sampled: bool) -> dict[str, list[Row]]:
    return {"token_counts": [row(leir_id, signature, text, all_languages=sampled)]}
