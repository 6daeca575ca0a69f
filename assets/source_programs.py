"""Source programs."""

from collections.abc import Sequence
from functools import partial

import dagster as dg
import polars as pl

from assets.common import (
    BACKFILL,
    DUE,
    OWNERS,
    PROGRAMS,
    Metadata,
    Result,
    by_program,
    schema_spec,
    shown,
    tally,
)
from assets.partitions import program_files
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import SOURCES
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS, USER_PROGRAMS
from steptp_dagster.dataset.seals import Seals
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version


@dg.asset(
    deps=[program_files],
    partitions_def=PROGRAMS,
    backfill_policy=BACKFILL,
    automation_condition=DUE,
    group_name="programs",
    kinds={"pytorch", "parquet"},
    owners=OWNERS,
    code_version=code_version("sources"),
    check_specs=[schema_spec(SOURCE_PROGRAMS)],
    metadata=shown(SOURCE_PROGRAMS),
    description=SOURCE_PROGRAMS.description,
)
def source_programs(context: dg.AssetExecutionContext, store: ParquetStore, build: Build) -> Result:
    """Workloads of the profile and users' programs at their shape samples, in every dtype."""
    from steptp_dagster.dataset.stages.sources import update_sources
    from steptp_dagster.dataset.stages.user_sources import update_user_sources

    files, profile, progress = store.files, build.profile, build.progress(context)
    origin, users = build.origin(context, "sources"), build.origin(context, "user_sources")
    seals = Seals.of(files, profile)

    def update(program: str) -> Report:
        if file := profile.user_file(program):
            return update_user_sources(files, file, profile, users, progress)
        return update_sources(files, program, profile, origin, progress)

    def one(program: str) -> Report:
        if program not in profile.program_names:
            raise dg.Failure(stranger(program, profile), allow_retries=False)
        return seals.update(SOURCES, partial(update, program), program)

    yield from by_program(context, files, SOURCE_PROGRAMS, one, partial(brought, files))


def stranger(program: str, profile: Profile) -> str:
    """What to do about a partition that the profile does not have."""
    return (
        f"{program!r} is no program of the profile {profile.name} (any more): the sensor "
        "program_folder removes its partition; STEPTP_PROFILE chooses another profile"
    )


def brought(store: Store, programs: Sequence[str]) -> Metadata:
    """Which programs users' files gave, and what is wrong with the others."""
    rows = store.read_all(USER_PROGRAMS, programs)
    columns = ("family", "dtype", "form")
    known = store.read_all(SOURCE_PROGRAMS, programs, columns=columns)
    told: Metadata = {f"by {c}": tally(known, c) for c in columns}
    if rows.is_empty():
        return told
    broken = rows.filter(pl.col("reason").is_not_null())
    return {
        **told,
        "programs of users": rows.height - broken.height,
        "broken programs of users": broken.height,
        "what is wrong with them": dg.MetadataValue.md(markdown(broken.select("file", "message"))),
        "forms": tally(rows.drop_nulls("form"), "form"),
    }
