"""Verdicts."""

from collections.abc import Sequence

import dagster as dg
import polars as pl

from assets.common import ONE_RUN, PROGRAMS, Metadata, by_program, schema_spec, shown, tally
from assets.transformed_steps import transformed_steps
from resources.build import Build
from resources.store import ParquetStore
from resources.tvm_executor import TvmExecutor
from steptp_dagster.dataset.card import percent
from steptp_dagster.dataset.schemas import GPU_VERIFICATION
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version


@dg.asset(
    deps=[transformed_steps],
    partitions_def=PROGRAMS,
    backfill_policy=ONE_RUN,
    group_name="steps",
    kinds={"parquet"},
    code_version=code_version("verdicts"),
    check_specs=[schema_spec(GPU_VERIFICATION)],
    metadata=shown(GPU_VERIFICATION),
    description=GPU_VERIFICATION.description,
)
def gpu_verification(
    context: dg.AssetExecutionContext, store: ParquetStore, build: Build, tvm: TvmExecutor
) -> dg.MaterializeResult:
    """Every pair of programs judged statically and numerically, in isolated processes."""
    from steptp_dagster.dataset.stages.judgements import update_judgements

    profile, origin = build.profile, build.origin(context, "verdicts")
    progress = build.progress(context)
    with tvm.verifier() as verifier:
        return by_program(
            context,
            store.files,
            GPU_VERIFICATION,
            lambda p: update_judgements(store.files, p, profile, verifier, origin, progress),
            lambda programs: judged(store.files, programs),
            workers=verifier.workers,
            stop=verifier.close,
        )


def judged(store: Store, programs: Sequence[str]) -> Metadata:
    """Pass rates, labels, and reasons of rejections."""
    rows = store.read_all(GPU_VERIFICATION, programs)
    rates = {
        name.replace("_", " "): percent(rows.filter(name).height, rows.height)
        for name in ("build_pass", "exec_pass", "equal_pass", "bitwise")
    }
    return {
        **rates,
        "equality": tally(rows, "equality"),
        "rejections": tally(rows.filter(pl.col("reason").is_not_null()), "reason"),
    }
