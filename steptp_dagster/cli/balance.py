"""``stats --balance``: how records are distributed before and after the balance, and why."""

import json
from typing import TYPE_CHECKING, Any

from steptp_dagster.cli.output import table
from steptp_dagster.cli.warehouse import fetch

if TYPE_CHECKING:
    import duckdb


def balance(connection: "duckdb.DuckDBPyConnection", dimension: str | None) -> list[dict[str, Any]]:
    """Rows of the table ``balance``: whole dimensions, or the names of one."""
    chosen = "name is null" if dimension is None else "name is not null and dimension = ?"
    rows = fetch(
        connection,
        f"select * from balance where {chosen} order by task, dimension, after desc, name",
        [] if dimension is None else [dimension],
    )
    return [{**row, "dropped": json.loads(row["dropped"])} for row in rows]


def words(rows: list[dict[str, Any]], dimension: str | None) -> str:
    """The rows as a table for people."""
    shown = []
    for row in rows:
        why = ", ".join(f"{reason} {count}" for reason, count in row["dropped"].items())
        line = {"task": row["task"], "by": row["dimension"] if dimension is None else row["name"]}
        line |= {"before": row["before"], "after": row["after"]}
        if dimension is None:
            line |= {f"bits {when}": row[f"entropy_{when}"] for when in ("before", "after")}
        shown.append({**line, "dropped": why})
    return table(shown) if shown else "no records"
