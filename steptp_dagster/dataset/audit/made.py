"""What was made from the stage files: the DuckDB file and the export folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import duckdb
import polars as pl

from steptp_dagster.dataset.audit.defects import Defect
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.exports import MANIFEST, damaged
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.schemas import STABLE
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.warehouse import connect, contents_digest, profile_of

_TABLES: Final = "select table_name from duckdb_tables()"


def profile_in(path: Path) -> Profile | Defect:
    """The profile that the warehouse was built with, or why that cannot be told."""
    if not path.exists():
        return Defect("warehouse", path.name, "", "there is none: run `steptp build`")
    try:
        with connect(path) as connection:
            return profile_of(connection)
    except (duckdb.Error, ValueError) as error:
        return Defect("warehouse", path.name, "", " ".join(str(error).split()))


def warehouse(
    store: Store, path: Path, profile: Profile, tables: Mapping[str, pl.DataFrame]
) -> Iterator[Defect]:
    """Differences between the DuckDB file and the stage files of its profile's programs.

    ``tables`` are the rows of these stage files.
    """
    settings = canonical_json(profile.settings())
    now = digest("warehouse", contents_digest(store, profile.program_names), settings)
    with connect(path) as connection:
        there = {name for (name,) in connection.execute(_TABLES).fetchall()}
        ((held,),) = connection.execute("select made_from from loaded").fetchall()
        if held != now:
            said = "the stage files changed after it was loaded: run `steptp build`"
            yield Defect("warehouse", path.name, "", said)
        for name in STABLE:
            if name not in there:
                yield Defect("warehouse", path.name, "", f"the table {name} is not in it")
                continue
            yield from _rows(connection, path.name, name, tables[name])


def _rows(
    connection: duckdb.DuckDBPyConnection, where: str, name: str, rows: pl.DataFrame
) -> Iterator[Defect]:
    held = [d[0] for d in connection.execute(f"from {name} limit 0").description or ()]
    if held != rows.columns:
        yield Defect("warehouse", where, "", f"{name} has other columns than today's code writes")
        return
    connection.register("stage_rows", rows.to_arrow())
    both = {"only there": (name, "stage_rows"), "missing there": ("stage_rows", name)}
    for what, (one, other) in both.items():
        query = f"select * from (from {one} except all from {other}) limit 20"
        for row in connection.execute(query).fetchall():
            yield Defect("warehouse-rows", where, str(row[0]), f"{name}: {what}")
    connection.unregister("stage_rows")


def export(folder: Path) -> Iterator[Defect]:
    """Exported files that are missing or not as they were written."""
    if not folder.exists():
        return
    try:
        names = damaged(folder)
    except (OSError, ValueError, KeyError) as error:
        yield Defect("export", f"{folder.name}/{MANIFEST}", "", f"not readable: {error}")
        return
    for name in names:
        yield Defect("export", f"{folder.name}/{name}", "", "missing, or changed after writing")
