"""Verdicts."""

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
    share,
    shown,
    tally,
)
from assets.samples import verdict_sample
from assets.transformed_steps import transformed_steps
from resources.build import Build
from resources.store import ParquetStore
from resources.tvm_executor import TvmExecutor
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import JUDGEMENTS
from steptp_dagster.dataset.schemas import GPU_VERIFICATION, TRANSFORMED_STEPS
from steptp_dagster.dataset.seals import Seals
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version

#: What it brings up to date, one after the other (``stages.judgements``).
STAGES = ("verdicts", "trajectories", "negatives")


@dg.asset(
    deps=[transformed_steps],
    partitions_def=PROGRAMS,
    backfill_policy=BACKFILL,
    automation_condition=DUE,
    group_name="steps",
    kinds={"parquet"},
    owners=OWNERS,
    code_version=digest("verdicts", *(code_version(stage) for stage in STAGES)),
    check_specs=[schema_spec(GPU_VERIFICATION)],
    metadata=shown(GPU_VERIFICATION),
    description=GPU_VERIFICATION.description,
)
def gpu_verification(
    context: dg.AssetExecutionContext, store: ParquetStore, build: Build, tvm: TvmExecutor
) -> Result:
    """Every pair of programs judged statically and numerically, in isolated processes."""
    from steptp_dagster.dataset.stages.judgements import update_judgements

    files, profile, progress = store.files, build.profile, build.progress(context)
    origin, seals = build.origin(context, "verdicts"), Seals.of(files, profile)
    plan = profile.verification
    with tvm.verifier(seed=plan.seed, target=plan.target) as pool:

        def one(program: str) -> Report:
            update = partial(update_judgements, files, program, profile, pool, origin, progress)
            return seals.update(JUDGEMENTS, update, program)

        told = partial(judged, files)
        yield from by_program(context, files, GPU_VERIFICATION, one, told, pool.workers, pool.close)


def judged(store: Store, programs: Sequence[str]) -> Metadata:
    """Pass rates, labels, and reasons of rejections."""
    passed = ("build_pass", "exec_pass", "equal_pass", "bitwise")
    columns = ("step_id", *passed, "equality", "reason")
    rows = store.read_all(GPU_VERIFICATION, programs, columns=columns)
    rates = {
        f"{name.replace('_', ' ')} rate": share(rows.filter(name).height, rows.height)
        for name in passed
    }
    return {
        **rates,
        "equality": tally(rows, "equality"),
        "pass rate by strategy": dg.MetadataValue.md(markdown(passes(store, rows, programs))),
        "rejections": tally(rows.filter(pl.col("reason").is_not_null()), "reason"),
        **verdict_sample(store, programs),
    }


def passes(store: Store, rows: pl.DataFrame, programs: Sequence[str]) -> pl.DataFrame:
    """Steps, and the share of them that was accepted, by strategy."""
    names = store.read_all(TRANSFORMED_STEPS, programs, columns=("step_id", "strategy"))
    rate = pl.col("equal_pass").mean().round(3).alias("accepted")
    return rows.join(names, on="step_id").group_by("strategy").agg(pl.len(), rate).sort("strategy")
