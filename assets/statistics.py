"""Counts and means over everything."""

import dagster as dg
import polars as pl

from assets.common import DUE, OWNERS, Metadata, schema_spec, share, shown, whole
from assets.filtered_dataset import filtered_dataset
from resources.build import Build
from resources.store import ParquetStore
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import TOKENS
from steptp_dagster.dataset.schemas import STATISTICS
from steptp_dagster.dataset.seals import Seals
from steptp_dagster.dataset.store import WHOLE
from steptp_dagster.dataset.versions import code_version


@dg.asset(
    deps=[filtered_dataset],
    automation_condition=DUE,
    group_name="dataset",
    kinds={"parquet"},
    owners=OWNERS,
    code_version=code_version("records"),
    check_specs=[schema_spec(STATISTICS)],
    metadata=shown(STATISTICS),
    description=STATISTICS.description,
)
def statistics(
    context: dg.AssetExecutionContext, store: ParquetStore, build: Build
) -> dg.MaterializeResult:
    """Sites, refusals, steps, verdicts and records by strategy, level, family, dtype and split.

    Token counts of programs in several languages are brought up to date on the way.
    """
    from steptp_dagster.dataset.stages.records import update_statistics
    from steptp_dagster.dataset.stages.tokens import update_tokens

    files, profile = store.files, build.profile

    def counted() -> Report:
        origin, progress = build.origin(context, "tokens"), build.progress(context)
        with build.workers() as workers:
            return update_tokens(files, profile, workers, origin, progress)

    def update() -> Metadata:
        Seals.of(files, profile).update(TOKENS, counted)
        computed = update_statistics(files, profile)
        return {"computed": computed, **summary(files.read(STATISTICS, WHOLE))}

    return whole(context, files, STATISTICS, update)


def summary(table: pl.DataFrame) -> Metadata:
    """The totals, and the pass rate."""
    counted = table.filter(~pl.col("metric").str.starts_with("mean_"))
    totals = counted.group_by("metric").agg(pl.col("value").sum().cast(pl.Int64)).sort("metric")
    by_name = dict(totals.rows())
    return {
        "totals": dg.MetadataValue.md(markdown(totals)),
        "pass rate": share(by_name.get("accepted", 0), by_name.get("verified", 0)),
    }
