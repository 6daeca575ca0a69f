"""What the assets share: partitions, how a stage is run, how tables show in the UI."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import dagster as dg
import pandera.polars as pa
import polars as pl

from resources.build import PROFILE_VARIABLE
from steptp_dagster.dataset.config import load
from steptp_dagster.dataset.incremental import NOTHING, BadRows, Report
from steptp_dagster.dataset.parallel import side_by_side
from steptp_dagster.dataset.store import WHOLE, Store

# Single-run backfills are in beta; the warning would come with every import.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

#: One partition per program of the profile that the code location was loaded for.
PROGRAMS: Final = dg.StaticPartitionsDefinition(
    list(load(os.environ.get(PROFILE_VARIABLE, "default")).program_names)
)
ONE_RUN: Final = dg.BackfillPolicy.single_run()
Metadata = Mapping[str, Any]


def column_schema(table: pa.DataFrameSchema) -> dg.TableSchema:
    """A table's columns as the UI shows them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=name,
                type=str(column.dtype),
                description=column.description,
                constraints=dg.TableColumnConstraints(
                    nullable=column.nullable,
                    unique=column.unique,
                    other=[str(check.name) for check in column.checks],
                ),
            )
            for name, column in table.columns.items()
        ]
    )


def shown(table: pa.DataFrameSchema) -> dict[str, Any]:
    """Definition metadata of the asset that is this table."""
    return {
        "dagster/column_schema": column_schema(table),
        "dagster/table_name": str(table.name),
    }


def schema_spec(table: pa.DataFrameSchema) -> dg.AssetCheckSpec:
    """The blocking check that every row fits the table; it runs before rows are written."""
    return dg.AssetCheckSpec(
        "schema",
        asset=str(table.name),
        blocking=True,
        description="Every row fits the table's schema; nothing else is written.",
    )


def by_program(
    context: dg.AssetExecutionContext,
    store: Store,
    table: pa.DataFrameSchema,
    update: Callable[[str], Report],
    describe: Callable[[Sequence[str]], Metadata] = lambda _: {},
    *,
    workers: int = 1,
    stop: Callable[[], None] = lambda: None,
) -> dg.MaterializeResult:
    """Run a stage for every partition of the run, and report counts.

    With several ``workers`` that the updates share, some partitions are updated side by side;
    ``stop`` stops those workers when an update fails or the run is interrupted.
    """
    programs = list(context.partition_keys)
    total = NOTHING
    try:
        reports = side_by_side(update, programs, workers, stop)
        for program, report in zip(programs, reports, strict=True):
            total += report
            rows = report.rows.get(str(table.name), 0)
            context.add_asset_metadata({"dagster/partition_row_count": rows}, partition_key=program)
    except BadRows as error:
        return refused(error)
    metadata = {**counts(total), **describe(programs)}
    return accepted(store, table, programs, metadata)


def whole(
    store: Store,
    table: pa.DataFrameSchema,
    update: Callable[[], Metadata],
) -> dg.MaterializeResult:
    """Run a stage that looks at all programs together."""
    try:
        metadata = update()
    except BadRows as error:
        return refused(error)
    return accepted(store, table, [WHOLE], metadata)


def counts(report: Report) -> dict[str, int]:
    """A report as metadata."""
    rows = {f"rows of {name}": n for name, n in report.rows.items()}
    return {
        "units computed": report.new,
        "units kept": report.kept,
        "units dropped": report.dropped,
        **rows,
    }


def accepted(
    store: Store, table: pa.DataFrameSchema, programs: Sequence[str], metadata: Metadata
) -> dg.MaterializeResult:
    """The result of a stage that wrote; its data version is the digest of its files."""
    total = blake2b(digest_size=16)
    for program in programs:
        path = store.part(str(table.name), program)
        total.update(path.read_bytes() if path.exists() else b"")
    return dg.MaterializeResult(
        metadata=metadata,
        check_results=[dg.AssetCheckResult(passed=True, check_name="schema")],
        data_version=dg.DataVersion(total.hexdigest()),
    )


def refused(error: BadRows) -> dg.MaterializeResult:
    """The result of a stage whose rows its schema refused: the failing cases, nothing written."""
    first = error.cases.head(10)
    records = [
        dg.TableRecord({name: str(value) for name, value in row.items()})
        for row in first.to_dicts()
    ]
    check = dg.AssetCheckResult(
        passed=False,
        check_name="schema",
        description=str(error),
        metadata={
            "failing cases": error.cases.height,
            "first failing cases": dg.MetadataValue.table(
                records, schema=dg.TableSchema([dg.TableColumn(c) for c in first.columns])
            ),
        },
    )
    return dg.MaterializeResult(check_results=[check], metadata={"written": False})


def tally(frame: pl.DataFrame, column: str) -> dg.MarkdownMetadataValue:
    """How often each value of a column occurs, as a table."""
    from steptp_dagster.dataset.card import markdown

    counted = frame[column].value_counts(name="rows").sort("rows", column, descending=[True, False])
    return dg.MetadataValue.md(markdown(counted))
