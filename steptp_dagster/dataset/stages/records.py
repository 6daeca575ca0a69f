"""Records and statistics: the stages that look at all programs together."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from steptp_dagster.dataset import prompts
from steptp_dagster.dataset.candidates import Tables
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.incremental import (
    Made,
    Origin,
    Report,
    Stage,
    Unit,
    update,
    write_changed,
)
from steptp_dagster.dataset.schemas import (
    BALANCE,
    EXCLUSIONS,
    FILTERED_DATASET,
    GPU_VERIFICATION,
    LEAKAGE,
    LEIR_PROGRAMS,
    NEGATIVES,
    SOURCE_PROGRAMS,
    STATISTICS,
    SURVEYS,
    TRAJECTORIES,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    frame,
)
from steptp_dagster.dataset.selection import filtered
from steptp_dagster.dataset.stages.renderings import shown
from steptp_dagster.dataset.statistics import statistics
from steptp_dagster.dataset.store import WHOLE, Store, read_if_sound
from steptp_dagster.dataset.versions import code_version

STAGE = Stage(
    "records", {"filtered_dataset": FILTERED_DATASET}, {"filtered_dataset": ("record_id",)}
)
#: What the selection says beside the records.
WITH_RECORDS = (EXCLUSIONS, BALANCE, LEAKAGE)
#: Folders that records and statistics are made from.
INPUTS = (
    "source_programs",
    "translations",
    "leir_programs",
    "step_programs",
    "surveys",
    "transformed_steps",
    "gpu_verification",
    "trajectories",
    "negatives",
)


def inputs_digest(store: Store, profile: Profile) -> str:
    """Digest of everything that records and statistics depend on."""
    names = [(name, program) for name in INPUTS for program in profile.program_names]
    contents = zip(names, store.contents(names), strict=True)
    files = [[*name, content] for name, content in contents if content is not None]
    # Through JSON text: settings are nested tuples of plain values.
    plans = [asdict(plan) for plan in (profile.records, profile.balance, profile.splits)]
    settings = canonical_json([*plans, profile.seed])
    if profile.records.program != "leir":
        files.append(["renderings", WHOLE, str(store.content("renderings", WHOLE))])
    return digest("records", code_version("records"), settings, files, *texts())


def texts() -> list[str]:
    """Prompt texts, which are data of the library but no code."""
    return [prompts.FILE.read_text(encoding="utf-8")]


def tables(store: Store, profile: Profile) -> Tables:
    """What the selection reads, over all programs of the profile."""
    names = profile.program_names
    programs = [
        store.read_all(LEIR_PROGRAMS, names),
        store.read_all(LEIR_PROGRAMS, names, "step_programs"),
    ]
    merged = programs[0].vstack(programs[1]).unique("leir_id", keep="first", maintain_order=True)
    return Tables(
        source_programs=store.read_all(SOURCE_PROGRAMS, names),
        translations=store.read_all(TRANSLATIONS, names),
        leir_programs=merged,
        transformed_steps=store.read_all(TRANSFORMED_STEPS, names),
        gpu_verification=store.read_all(GPU_VERIFICATION, names),
        trajectories=store.read_all(TRAJECTORIES, names),
        negatives=store.read_all(NEGATIVES, names),
    )


def update_records(store: Store, profile: Profile, origin: Origin) -> Report:
    """Bring ``filtered_dataset`` and ``exclusions`` up to date, where their inputs changed."""
    made_from = inputs_digest(store, profile)
    made = (FILTERED_DATASET, *WITH_RECORDS)
    store.bring(*(store.part(str(table.name), WHOLE) for table in made))
    there = read_if_sound(FILTERED_DATASET, store.part("filtered_dataset", WHOLE))
    others = (read_if_sound(table, store.part(str(table.name), WHOLE)) for table in WITH_RECORDS)
    whole = there is not None and all(other is not None for other in others)
    if there is not None and whole and store.digest("exclusions", WHOLE) == made_from:
        return Report(0, there.height, 0, {"filtered_dataset": there.height})
    result = filtered(tables(store, profile), profile, shown(store, profile))
    # A build that ends before the last write leaves nothing that vouches for a part of it.
    store.remove(store.part("exclusions", WHOLE))

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return (Made(unit, {"filtered_dataset": [unit.payload]}, 0.0) for unit in missing)

    # The key is the content: a record whose split or wording changed is another unit.
    wanted = [Unit(digest("unit", "records", canonical_json(row)), row) for row in result.rows]
    report = update(store, STAGE, WHOLE, wanted, compute, origin=origin, batch=1000)
    write_changed(store, BALANCE, WHOLE, frame(BALANCE, result.balance))
    write_changed(store, LEAKAGE, WHOLE, frame(LEAKAGE, result.leakage))
    # Last: it says what all of them were made from.
    gone = frame(EXCLUSIONS, result.exclusions)
    write_changed(store, EXCLUSIONS, WHOLE, gone, made_from=made_from)
    return report


def update_statistics(store: Store, profile: Profile) -> bool:
    """Bring ``statistics`` up to date; whether they were computed."""
    made_from = digest("statistics", inputs_digest(store, profile))
    if store.digest("statistics", WHOLE) == made_from:
        return False
    counted = statistics(
        tables(store, profile),
        store.read_all(SURVEYS, profile.program_names),
        store.read(FILTERED_DATASET, WHOLE),
        store.read(EXCLUSIONS, WHOLE),
    )
    write_changed(store, STATISTICS, WHOLE, counted, made_from=made_from)
    return True
