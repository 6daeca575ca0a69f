"""The records."""

from collections.abc import Mapping
from functools import partial
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
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import RECORDS, RENDERINGS
from steptp_dagster.dataset.schemas import BALANCE, EXCLUSIONS, FILTERED_DATASET, LEAKAGE
from steptp_dagster.dataset.seals import Seals
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

    files, profile, progress = store.files, build.profile, build.progress(context)
    origin, seals = partial(build.origin, context), Seals.of(files, profile)

    def rendered() -> Report:
        with build.workers() as workers:
            return update_renderings(files, profile, workers, origin("renderings"), progress)

    def update() -> Metadata:
        if profile.records.program != "leir":
            seals.update(RENDERINGS, rendered)
        made = seals.update(RECORDS, lambda: update_records(files, profile, origin("records")))
        return {**counts(made), **described(files), "tokenizer": tokenizer.name}

    return whole(context, files, FILTERED_DATASET, update)


def described(store: Store) -> Mapping[str, Any]:
    """Records by task, split, strategy ..., what was left out and why, leakage, sample records."""
    columns = ("task", "split", "strategy", "difficulty", "size", "equality")
    records = store.read(FILTERED_DATASET, WHOLE, columns=columns)
    gone = store.read(EXCLUSIONS, WHOLE)
    found = {f"by {c}": tally(records, c) for c in columns}
    balance = store.read(BALANCE, WHOLE)
    whole_dimensions = balance.filter(pl.col("name").is_null()).drop("name")
    return {
        **found,
        "balance": dg.MetadataValue.md(markdown(whole_dimensions)),
        "leakage": dg.MetadataValue.md(markdown(store.read(LEAKAGE, WHOLE))),
        **record_sample(store),
        "left out": tally(gone, "reason"),
    }
