"""Checks that need work of their own."""

import dagster as dg
import polars as pl

from assets.gpu_verification import gpu_verification
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.schemas import ZOO
from steptp_dagster.dataset.store import WHOLE


@dg.asset_check(
    asset=gpu_verification,
    blocking=True,
    description="The verifier rejects all known-wrong pairs and accepts all known-right ones.",
)
def zoo_rejected(
    context: dg.AssetCheckExecutionContext, store: ParquetStore, build: Build
) -> dg.AssetCheckResult:
    """Try the verifier on the zoo, if its code changed since it was last tried."""
    from steptp_dagster.dataset.stages.zoo import update_zoo

    origin, progress = build.origin(context, "zoo"), build.progress(context)
    with build.workers() as workers:
        update_zoo(store.files, build.profile.verification.seed, workers, origin, progress)
    rows = store.files.read(ZOO, WHOLE)
    wrong, right = rows.filter("wrong"), rows.filter(~pl.col("wrong"))
    faults = rows.filter(pl.col("wrong") == pl.col("accepted"))
    return dg.AssetCheckResult(
        passed=faults.is_empty() and not wrong.is_empty() and not right.is_empty(),
        metadata={
            "wrong pairs": wrong.height,
            "kinds of mistake": wrong["kind"].n_unique(),
            "right pairs": right.height,
            "wrong pairs that the published rule accepts": wrong.filter("published_rule").height,
            "faults": dg.MetadataValue.md(markdown(faults.drop("unit"))),
        },
    )
