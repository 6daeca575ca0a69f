"""Rows by the start of their id, and ``show ID``."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steptp_dagster.cli.output import Failure, emit, json_option, spelling_option, table
from steptp_dagster.cli.warehouse import data_option, fetch, opened

if TYPE_CHECKING:
    import duckdb

#: What an id may name: noun -> table and column.
NOUNS: Final[dict[str, tuple[str, str]]] = {
    "record": ("filtered_dataset", "record_id"),
    "step": ("transformed_steps", "step_id"),
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
    if len(prefix) < SHORTEST or not set(prefix) <= set("0123456789abcdef"):
        raise Failure(f"{prefix!r} is no id: give at least {SHORTEST} hexadecimal digits of one")
    hits = [
        Found(noun, row[column], _plain(row))
        for noun, (name, column) in NOUNS.items()
        for row in fetch(
            connection, f"select * from {name} where starts_with({column}, ?)", [prefix]
        )
    ]
    if not hits:
        raise Failure(f"no record, step, program or source has an id that starts with {prefix}")
    if len(hits) > 1:
        listed = ", ".join(f"{hit.noun} {hit.id}" for hit in hits[:5])
        raise Failure(f"{prefix} is not unique: {listed}")
    return hits[0]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        k: json.loads(v) if k in JSON_COLUMNS and isinstance(v, str) else v for k, v in row.items()
    }


@click.command()
@click.argument("id_", metavar="ID")
@spelling_option
@data_option
@json_option
def show(id_: str, spelling: str, data: Path | None, as_json: bool) -> None:
    """Show a record, step, program or source; the start of its id is enough.

    --spelling compact writes the programs of steps and programs short; a record stays as it is.
    """
    with opened(data) as connection:
        found = find(connection, id_)
        extra = _around(connection, found)
    if spelling == "compact":
        for program in (found.row, extra.get("before", {}), extra.get("after", {})):
            if "text" in program:
                program["text"] = _short_spelling(program["text"])
    whole = {"noun": found.noun, **found.row, **extra}
    emit(whole, lambda: _words(found, extra), as_json=as_json)


def _short_spelling(text: str) -> str:
    from steptp_dagster.leir.compact import compact
    from steptp_dagster.leir.parser import parse

    return compact(parse(text).program)


def _around(connection: "duckdb.DuckDBPyConnection", found: Found) -> dict[str, Any]:
    """What belongs to a row: the programs and verdicts of a step, steps of a program ..."""
    if found.noun == "step":
        verdicts = fetch(connection, "select * from gpu_verification where step_id = ?", [found.id])
        return {
            "before": _program(connection, found.row["parent_leir_id"]),
            "after": _program(connection, found.row["result_leir_id"]),
            "verdicts": [_plain(v) for v in verdicts],
        }
    if found.noun == "program":
        steps = fetch(
            connection,
            "select step_id, strategy, site, parameters from transformed_steps "
            "where parent_leir_id = ? order by step_id",
            [found.id],
        )
        return {"steps": [_plain(s) for s in steps]}
    if found.noun == "source":
        rows = fetch(connection, "select * from translations where source_id = ?", [found.id])
        return {"translation": rows[0] if rows else None}
    return {}


def _program(connection: "duckdb.DuckDBPyConnection", leir: str) -> dict[str, Any]:
    rows = fetch(
        connection, "select leir_id, signature, text from leir_programs where leir_id = ?", [leir]
    )
    return rows[0] if rows else {}


def _words(found: Found, extra: dict[str, Any]) -> str:
    row = found.row
    if found.noun == "record":
        parts = [
            f"record {found.id}: {row['strategy']} on {row['program']} ({row['dtype']}), "
            f"{row['equality']}, {row['split']}"
        ]
        parts += [f"--- {m['role']} ---\n{m['content']}" for m in row["messages"]]
        return "\n".join(parts)
    if found.noun == "step":
        sets = ", ".join(f"{k}={v}" for k, v in row["parameters"].items())
        place = ".".join(str(i + 1) for i in row["site"])
        verdicts = [
            f"{v['target']}: {v['equality']}" + (f" ({v['reason']})" if v["reason"] else "")
            for v in extra["verdicts"]
        ]
        return "\n".join(
            [
                f"step {found.id}: {row['strategy']} at statement {place} with {sets}",
                f"verdict: {'; '.join(verdicts) or 'none'}",
                f"--- before: {row['parent_leir_id']} ---",
                f"{extra['before'].get('signature', '')}{extra['before'].get('text', '')}",
                f"--- after: {row['result_leir_id']} ---",
                str(extra["after"].get("text", "")),
                "--- reasoning ---",
                row["reasoning_text"],
            ]
        )
    if found.noun == "program":
        sizes = {k: v for k, v in row.items() if isinstance(v, int)}
        listing = table(extra["steps"]) if extra["steps"] else "no steps start here"
        return "\n".join(
            [f"program {found.id}", row["signature"] + row["text"], table([sizes]), listing]
        )
    known = {k: v for k, v in row.items() if k != "code"}
    lines = [f"{k}: {v}" for k, v in known.items()]
    return "\n".join([f"source {found.id}", *lines, "--- code ---", row["code"].rstrip()])
