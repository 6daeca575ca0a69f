"""Rows by the start of their id."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steptp_dagster.cli.output import Failure
from steptp_dagster.cli.warehouse import fetch

if TYPE_CHECKING:
    import duckdb

#: What an id may name: noun -> table and column.
NOUNS: Final[dict[str, tuple[str, str]]] = {
    "record": ("filtered_dataset", "record_id"),
    "step": ("transformed_steps", "step_id"),
    "trajectory": ("trajectories", "trajectory_id"),
    "negative": ("negatives", "negative_id"),
    "program": ("leir_programs", "leir_id"),
    "source": ("source_programs", "source_id"),
}
SHORTEST: Final = 4
#: Columns that are JSON text and are shown as what they say.
JSON_COLUMNS: Final = frozenset(
    {
        "inputs",
        "params",
        "shapes",
        "site",
        "parameters",
        "reasoning",
        "sibling",
        "static",
        "numeric",
        "margins",
        "seeds",
        "toolchain",
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """A row by its id."""

    noun: str
    id: str
    row: dict[str, Any]


def find(connection: "duckdb.DuckDBPyConnection", prefix: str) -> Found:
    """The one row whose id starts with ``prefix``. Fails in words for none or several."""
    prefix = prefix.strip().lower()
    if len(prefix) < SHORTEST or not set(prefix) <= set("0123456789abcdef"):
        raise Failure(f"{prefix!r} is no id: give at least {SHORTEST} hexadecimal digits of one")
    hits = [
        Found(noun, row[column], plain(row))
        for noun, (name, column) in NOUNS.items()
        for row in fetch(
            connection, f"select * from {name} where starts_with({column}, ?)", [prefix]
        )
    ]
    if not hits:
        *others, last = NOUNS
        named = f"{', '.join(others)} or {last}"
        raise Failure(f"no {named} has an id that starts with {prefix}")
    if len(hits) > 1:
        listed = ", ".join(f"{hit.noun} {hit.id}" for hit in hits[:5])
        more = f" and {len(hits) - 5} more" if len(hits) > 5 else ""
        raise Failure(f"{prefix} is not unique: {listed}{more}; give more of it")
    return hits[0]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its columns of JSON text read."""
    return {
        k: json.loads(v) if k in JSON_COLUMNS and isinstance(v, str) else v for k, v in row.items()
    }
