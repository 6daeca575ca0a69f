"""Source programs."""

import dagster as dg

from assets.common import ONE_RUN, PROGRAMS, by_program, schema_spec, shown
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS
from steptp_dagster.dataset.versions import code_version


@dg.asset(
    partitions_def=PROGRAMS,
    backfill_policy=ONE_RUN,
    group_name="programs",
    kinds={"pytorch", "parquet"},
    code_version=code_version("sources"),
    check_specs=[schema_spec(SOURCE_PROGRAMS)],
    metadata=shown(SOURCE_PROGRAMS),
    description=SOURCE_PROGRAMS.description,
)
def source_programs(
    context: dg.AssetExecutionContext, store: ParquetStore, build: Build
) -> dg.MaterializeResult:
    """Workloads of the profile at their shape samples, in every dtype."""
    from steptp_dagster.dataset.stages.sources import update_sources

    origin, progress = build.origin(context, "sources"), build.progress(context)
    return by_program(
        context,
        store.files,
        SOURCE_PROGRAMS,
        lambda p: update_sources(store.files, p, build.profile, origin, progress),
    )
