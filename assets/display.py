"""How tables show in the UI: columns, where columns come from, tallies, bars."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg
import pandera.polars as pa
import polars as pl

from steptp_dagster.dataset.card import markdown

Metadata = Mapping[str, Any]
#: Characters of the longest bar.
WIDTH: Final = 30

_PAIR: Final = ("transformed_steps.parent_leir_id", "transformed_steps.result_leir_id")
#: Table -> column -> columns (table.column) that it is made from.
LINEAGE: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "source_programs": {},
    "leir_programs": {
        "text": ("source_programs.code", "source_programs.shapes", "source_programs.dtype"),
        "signature": ("source_programs.inputs", "source_programs.dtype"),
        "leir_id": ("source_programs.code", "source_programs.inputs"),
    },
    "transformed_steps": {
        "source_id": ("leir_programs.leir_id",),
        "parent_leir_id": ("leir_programs.leir_id",),
        "site": ("leir_programs.text",),
        "parameters": ("leir_programs.text",),
        "result_leir_id": ("leir_programs.text", "leir_programs.signature"),
        "reasoning": ("leir_programs.text",),
        "reasoning_text": ("leir_programs.text",),
        "mismatches": ("leir_programs.text",),
    },
    "gpu_verification": {
        "step_id": ("transformed_steps.step_id",),
        "parent_leir_id": ("transformed_steps.parent_leir_id",),
        "result_leir_id": ("transformed_steps.result_leir_id",),
        **dict.fromkeys(("equal_pass", "bitwise", "equality", "reason", "numeric"), _PAIR),
    },
    "filtered_dataset": {
        "step_ids": ("gpu_verification.step_id",),
        "equality": ("gpu_verification.equality",),
        "messages": ("gpu_verification.parent_leir_id", "gpu_verification.result_leir_id"),
    },
    "statistics": {
        name: (f"filtered_dataset.{name}",)
        for name in ("strategy", "strategy_level", "family", "dtype", "split")
    },
}


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


def column_lineage(name: str) -> dg.TableColumnLineage:
    """Where the columns of a table come from."""
    return dg.TableColumnLineage(
        {
            column: [
                dg.TableColumnDep(dg.AssetKey(source.split(".")[0]), source.split(".")[1])
                for source in sources
            ]
            for column, sources in LINEAGE[name].items()
        }
    )


def shown(table: pa.DataFrameSchema) -> dict[str, Any]:
    """Definition metadata of the asset that is this table."""
    return {
        "dagster/column_schema": column_schema(table),
        "dagster/column_lineage": column_lineage(str(table.name)),
        "dagster/table_name": str(table.name),
    }


def tally(frame: pl.DataFrame, column: str) -> dg.MarkdownMetadataValue:
    """How often each value of a column occurs, as a table with bars."""
    counted = frame[column].value_counts(name="rows").sort("rows", column, descending=[True, False])
    return dg.MetadataValue.md(bars(counted))


def bars(counted: pl.DataFrame) -> str:
    """A table as Markdown; its last column, counts, once more as bars."""
    numbers: Sequence[Any] = counted[counted.columns[-1]].to_list()
    most = max([*numbers, 1])
    drawn = ["█" * -(-WIDTH * n // most) for n in numbers]
    return markdown(counted.with_columns(pl.Series("", drawn, dtype=pl.String)))


def share(part: int, whole: int) -> float:
    """A share, 0 of nothing; a number, so that the UI plots it over builds."""
    return round(part / whole, 4) if whole else 0.0
