"""Steps: strategies applied."""

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
    bars,
    by_program,
    schema_spec,
    shown,
    tally,
)
from assets.leir_programs import leir_programs
from assets.samples import step_sample
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import STEPS
from steptp_dagster.dataset.schemas import SURVEYS, TRANSFORMED_STEPS
from steptp_dagster.dataset.seals import Seals
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import steps_version


@dg.asset(
    deps=[leir_programs],
    partitions_def=PROGRAMS,
    backfill_policy=BACKFILL,
    automation_condition=DUE,
    group_name="steps",
    kinds={"parquet"},
    owners=OWNERS,
    code_version=steps_version(),
    check_specs=[schema_spec(TRANSFORMED_STEPS)],
    metadata=shown(TRANSFORMED_STEPS),
    description=TRANSFORMED_STEPS.description,
)
def transformed_steps(
    context: dg.AssetExecutionContext, store: ParquetStore, build: Build
) -> Result:
    """Every strategy surveyed on every program; the chosen sites taken and explained."""
    from steptp_dagster.dataset.stages.steps import update_steps

    files, profile, progress = store.files, build.profile, build.progress(context)
    origin, seals = build.origin(context, "steps"), Seals.of(files, profile)
    with build.workers() as pool:

        def one(program: str) -> Report:
            update = partial(update_steps, files, program, profile, pool, origin, progress)
            return seals.update(STEPS, update, program)

        told = partial(surveyed, files)
        yield from by_program(context, files, TRANSFORMED_STEPS, one, told, pool.count, pool.stop)


def surveyed(store: Store, programs: Sequence[str]) -> Metadata:
    """Steps by strategy and refusals by reason."""
    steps = store.read_all(TRANSFORMED_STEPS, programs, columns=("strategy", "mismatches"))
    surveys = store.read_all(SURVEYS, programs, columns=("strategy", "refusals"))
    reasons = surveys.explode("refusals").drop_nulls("refusals").unnest("refusals")
    counted = reasons.group_by("strategy", "reason").agg(pl.col("count").sum())
    by_reason = counted.group_by("reason").agg(pl.col("count").sum())
    by_reason = by_reason.sort("count", "reason", descending=[True, False])
    ungrounded = steps.filter(pl.col("mismatches").list.len() > 0)
    return {
        "steps by strategy": tally(steps, "strategy"),
        "refusals": dg.MetadataValue.md(markdown(counted.sort("strategy", "reason"))),
        "refusals by reason": dg.MetadataValue.md(bars(by_reason)),
        **step_sample(store, programs),
        "steps with ungrounded reasoning": ungrounded.height,
    }
