"""Commands over the warehouse: ``stats``, ``sql``, ``export``."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steptp_dagster import paths
from steptp_dagster.cli.output import (
    Failure,
    NamedPath,
    emit,
    json_option,
    spelling_option,
    table,
    unwritten,
)

if TYPE_CHECKING:
    import duckdb

    from steptp_dagster.leir.compact import Spelling

BREAKDOWNS = ("strategy", "strategy_level", "family", "dtype", "split", "reason")
#: Of these, what the balance counts by.
BALANCED = ("strategy", "family", "dtype")
#: Metrics of the summary, in the order in which they come about.
METRICS = (
    "sources",
    "translated",
    "sites",
    "refused",
    "steps",
    "verified",
    "accepted",
    "exact",
    "reassociated",
    "bitwise",
    "rejected",
    "excluded",
    "records",
)


def data_option(command: Any) -> Any:  # noqa: ANN401 - a decorator
    """Add ``--data DIR`` (parameter ``data``: a path, or None for the default) to a command."""
    return click.option("--data", type=NamedPath(), help="Data folder (default: data/).")(command)


@contextmanager
def opened(data: Path | None) -> "Iterator[duckdb.DuckDBPyConnection]":
    """The warehouse, read-only. Fails in words where there is none or a query is wrong."""
    import duckdb

    from steptp_dagster.dataset.warehouse import NoWarehouse, connect, loaded_from

    file = (data or paths.data()) / "steptp.duckdb"
    again = "remove it: `steptp build` makes it again"
    try:
        with connect(file) as connection:
            if loaded_from(connection) is None:
                raise Failure(
                    f"{file} is no database of ours, or one that older code made; {again}"
                )
            yield connection
    except NoWarehouse as error:
        raise Failure(str(error)) from error
    except duckdb.IOException as error:
        raise Failure(f"{file} is spoilt; {again} ({' '.join(str(error).split())})") from error
    except duckdb.Error as error:
        raise Failure(str(error).strip()) from error


def fetch(
    connection: "duckdb.DuckDBPyConnection", query: str, parameters: list[Any] | None = None
) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries."""
    cursor = connection.execute(query, parameters)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@click.command()
@click.option("--by", type=click.Choice(BREAKDOWNS), help="Break the counts down.")
@click.option(
    "--balance", "balanced", is_flag=True, help="Records before and after the balance, and why."
)
@data_option
@json_option
def stats(by: str | None, balanced: bool, data: Path | None, as_json: bool) -> None:
    """Counts before and after filtering, pass rates, refusals by reason.

    With --balance: how many records of each task there are before and after it, what was dropped
    and why, and the entropy of the distribution; --by strategy, family or dtype shows the parts.
    """
    if balanced:
        from steptp_dagster.cli.balance import balance, words

        if by not in (None, *BALANCED):
            raise Failure(f"--balance goes with --by {', '.join(BALANCED)}, not {by}")
        with opened(data) as connection:
            parts = balance(connection, by)
        emit(parts, lambda: words(parts, by), as_json=as_json)
        return
    with opened(data) as connection:
        rows = fetch(
            connection,
            f"select metric, {by or 'null'} as what, sum(value) as n from statistics "
            "where not starts_with(metric, 'mean_') group by all order by what nulls first",
        )
    counted = {(row["what"], row["metric"]): int(row["n"]) for row in rows}
    if by is None:
        lines: list[dict[str, Any]] = [
            {"metric": m, "rows": counted[None, m]} for m in METRICS if (None, m) in counted
        ]
        verified = counted.get((None, "verified"), 0)
        rate = counted.get((None, "accepted"), 0) / verified if verified else None
        data_out: Any = {"totals": {r["metric"]: r["rows"] for r in lines}, "pass_rate": rate}
        shown = "-" if rate is None else f"{100 * rate:.1f} %"
        emit(data_out, lambda: f"{table(lines)}\n\npass rate {shown}", as_json=as_json)
        return
    names = sorted({what for what, _ in counted if what is not None})
    used = [m for m in METRICS if any((name, m) in counted for name in names)]
    broken_down = [{by: name, **{m: counted.get((name, m), 0) for m in used}} for name in names]
    emit(broken_down, lambda: table(broken_down, [by, *used]), as_json=as_json)


@click.command()
@click.argument("query")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@data_option
@json_option
def sql(query: str, as_csv: bool, data: Path | None, as_json: bool) -> None:
    """Run a DuckDB query on the warehouse (read-only).

    Tables: source_programs, user_programs, translations, leir_programs, surveys, transformed_steps,
    gpu_verification, trajectories, negatives, filtered_dataset, exclusions, balance, leakage,
    statistics, zoo, lineage, timings, runs; views:
    step_overview, record_lineage, refusals.
    """
    import csv
    import io

    with opened(data) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchall()
    if as_csv:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([names, *rows])
        click.echo(buffer.getvalue(), nl=False)
        return
    named = [dict(zip(names, row, strict=True)) for row in rows]
    short = [{name: _short(value) for name, value in row.items()} for row in named]
    emit(named, lambda: table(short, names), as_json=as_json)


def _short(value: object) -> object:
    """A value that fits a line of a table; --json and --csv print it whole."""
    if isinstance(value, int | float | bool) or value is None:
        return value
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


@click.command()
@click.option("--to", type=NamedPath(), help="Folder (default: data/export).")
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["trl", "swift"]),
    help="Also write records as prompt and completion (trl), or as messages with loss (swift).",
)
@spelling_option
@data_option
@json_option
def export(
    to: Path | None,
    formats: tuple[str, ...],
    spelling: "Spelling",
    data: Path | None,
    as_json: bool,
) -> None:
    """Write Parquet, JSONL and the card from the warehouse.

    A failed export leaves the old one as it was.
    """
    from steptp_dagster.dataset.exports import MANIFEST, export_all, files
    from steptp_dagster.dataset.respelling import NotLeir

    target = to or (data or paths.data()) / "export"
    if target.exists() and not target.is_dir():
        raise Failure(f"{target} is a file; name an empty or a new folder")
    if target.exists() and any(target.iterdir()) and not (target / MANIFEST).exists():
        raise Failure(f"{target} has other things in it; name an empty or a new folder")
    with opened(data) as connection:
        try:
            folder, written = export_all(connection, target, spelling=spelling, formats=formats)
        except NotLeir as error:
            raise Failure(str(error)) from error
        except OSError as error:
            raise unwritten(target, error) from error
    names = files(folder)
    state = "written" if written else "unchanged"
    result = {"folder": str(folder), "written": written, "files": names}
    listing = "\n".join(f"  {name}" for name in names)
    emit(result, lambda: f"{folder} ({state})\n{listing}", as_json=as_json)
