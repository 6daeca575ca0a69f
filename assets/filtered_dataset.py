"""The records."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from assets.common import DUE, OWNERS, Metadata, counts, schema_spec, shown, tally, whole
from assets.gpu_verification import gpu_verification
from assets.samples import record_sample
from resources.build import Build
from resources.store import ParquetStore
from resources.tokenizer import Tokenizer
from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.schemas import BALANCE, EXCLUSIONS, FILTERED_DATASET, LEAKAGE
from steptp_dagster.dataset.store import WHOLE, Store
from steptp_dagster.dataset.versions import code_version


@dg.asset(
    deps=[gpu_verification],
    automation_condition=DUE,
    group_name="dataset",
    kinds={"parquet"},
    owners=OWNERS,
    code_version=code_version("records"),
    check_specs=[schema_spec(FILTERED_DATASET)],
    metadata=shown(FILTERED_DATASET),
    description=FILTERED_DATASET.description,
)
def filtered_dataset(
    context: dg.AssetExecutionContext, store: ParquetStore, build: Build, tokenizer: Tokenizer
) -> dg.MaterializeResult:
    """Accepted, grounded steps as chat records, balanced and split by program family."""
    from steptp_dagster.dataset.stages.records import update_records
    from steptp_dagster.dataset.stages.renderings import update_renderings

    names = build.profile.program_names

    def update() -> Metadata:
        if build.profile.records.program != "leir":
            origin, progress = build.origin(context, "renderings"), build.progress(context)
            with build.workers() as workers:
                update_renderings(store.files, build.profile, workers, origin, progress)
        report = update_records(store.files, build.profile, build.origin(context, "records"))
        return {**counts(report), **described(store.files, names), "tokenizer": tokenizer.name}

    return whole(context, store.files, FILTERED_DATASET, update)


def described(store: Store, programs: Sequence[str]) -> Mapping[str, Any]:
    """Records by task, split, strategy ..., what was left out and why, leakage, sample records."""
    records, gone = store.read(FILTERED_DATASET, WHOLE), store.read(EXCLUSIONS, WHOLE)
    columns = ("task", "split", "strategy", "difficulty", "size", "equality")
    found = {f"by {c}": tally(records, c) for c in columns}
    balance = store.read(BALANCE, WHOLE)
    whole_dimensions = balance.filter(pl.col("name").is_null()).drop("name")
    return {
        **found,
        "balance": dg.MetadataValue.md(markdown(whole_dimensions)),
        "leakage": dg.MetadataValue.md(markdown(store.read(LEAKAGE, WHOLE))),
        **record_sample(store, programs),
        "left out": tally(gone, "reason"),
    }
