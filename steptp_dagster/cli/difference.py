"""``steptp diff``: what came, went and changed between two builds, and why."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steptp_dagster.cli.output import REJECTED, Failure, NamedPath, emit, json_option, table

if TYPE_CHECKING:
    from steptp_dagster.dataset.difference import Difference, Side

#: Longest value of a setting or version that is printed; --json has all.
_WIDTH = 60


@click.command()
@click.argument("before", metavar="BUILD_A", type=NamedPath())
@click.argument("after", metavar="BUILD_B", type=NamedPath())
@json_option
@click.pass_context
def diff(context: click.Context, before: Path, after: Path, as_json: bool) -> None:
    """Compare two builds: what came, went and changed from A to B, and why.

    A build is its data folder, or its steptp.duckdb. Rows that only one build has are explained by
    what the other lacks; settings, code versions and releases that differ are listed.

    Exit code: 0 all tables are equal, 1 they differ, 2 no build there.
    """
    import duckdb

    from steptp_dagster.dataset.difference import NoBuild, difference

    try:
        found = difference(before, after)
    except NoBuild as error:
        raise Failure(str(error)) from error
    except duckdb.Error as error:
        said = " ".join(str(error).split())
        advice = "audit them; `steptp build` makes a spoilt file again"
        raise Failure(f"{before} and {after} cannot be compared: {said}; {advice}") from error
    emit({"same": found.same, **asdict(found)}, lambda: _words(found), as_json=as_json)
    if not found.same:
        context.exit(REJECTED)


def _words(found: "Difference") -> str:
    rows = [
        {
            "table": name,
            "before": d.before,
            "after": d.after,
            "came": d.came.rows,
            "went": d.went.rows,
            "changed": d.changed,
        }
        for name, d in found.tables.items()
    ]
    parts = [table(rows)]
    for name, d in found.tables.items():
        told = [*_told("came", d.came), *_told("went", d.went)]
        if d.changed:
            columns = ", ".join(f"{column} ({n})" for column, n in d.columns.items())
            told.append(f"  changed: {columns}; e.g. {d.examples[0]}")
        if told:
            parts.append("\n".join([f"{name}:", *told]))
    for title, changes in (("settings", found.settings), ("versions", found.versions)):
        if changes:
            lines = [f"  {c.what}: {_short(c.before)} -> {_short(c.after)}" for c in changes]
            parts.append("\n".join([f"{title} that differ:", *lines]))
    parts.append("the builds are equal" if found.same else "the builds differ")
    return "\n\n".join(parts)


def _told(what: str, side: "Side") -> list[str]:
    if not side.rows:
        return []
    reasons = ", ".join(f"{reason} ({n})" for reason, n in side.reasons.items())
    return [f"  {what}, for: {reasons}; e.g. {side.examples[0]}"]


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
