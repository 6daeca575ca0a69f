"""What was made from the stage files: the DuckDB file and the export folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, get_args

import duckdb
import polars as pl

from steptp_dagster.dataset.audit.defects import Defect
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.exports import MANIFEST, damaged, export_all, files
from steptp_dagster.dataset.formats import FORMATS
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.respelling import NotLeir
from steptp_dagster.dataset.schemas import TABLES, empty
from steptp_dagster.dataset.store import SpoiltFile, Store
from steptp_dagster.dataset.warehouse import (
    VIEWS,
    NoWarehouse,
    connect,
    contents_digest,
    profile_of,
)
from steptp_dagster.leir.compact import Spelling

_TABLES: Final = "select table_name from duckdb_tables()"
_VIEWS: Final = "select view_name, sql from duckdb_views() where not internal"
#: Tables that the loader makes beside those of the schemas.
_OWN: Final = ("build", "loaded")


def profile_in(path: Path) -> Profile | Defect:
    """The profile that the warehouse was built with, or why that cannot be told."""
    if not path.exists():
        return Defect("warehouse", path.name, "", "there is none: run `steptp build`")
    try:
        with connect(path) as connection:
            return profile_of(connection)
    except (NoWarehouse, duckdb.Error, ValueError) as error:
        return Defect("warehouse", path.name, "", " ".join(str(error).split()))


def warehouse(
    store: Store, path: Path, profile: Profile, tables: Mapping[str, pl.DataFrame]
) -> Iterator[Defect]:
    """Differences between the DuckDB file and the stage files of its profile's programs.

    ``tables`` are the rows of these stage files.
    """
    settings = canonical_json(profile.settings())
    try:
        now = digest("warehouse", contents_digest(store, profile.program_names), settings)
    except SpoiltFile:  # a stage file that may not be read, which is a finding of its own
        now = None
    with connect(path) as connection:
        there = {name for (name,) in connection.execute(_TABLES).fetchall()}
        ((held,),) = connection.execute("select made_from from loaded").fetchall()
        if now is not None and held != now:
            said = "the stage files changed after it was loaded: run `steptp build`"
            yield Defect("warehouse", path.name, "", said)
        for name in TABLES:
            if name not in there:
                yield Defect("warehouse", path.name, "", f"the table {name} is not in it")
                continue
            yield from _rows(connection, f"{path.name}: {name}", name, tables[name])
        for name in sorted(there - {*TABLES, *_OWN}):
            yield Defect("unknown-table", path.name, "", name)
        yield from _views(connection, path.name)


def _views(connection: duckdb.DuckDBPyConnection, where: str) -> Iterator[Defect]:
    """Views that are not today's; of a warehouse that was loaded from other ones they may be."""
    with duckdb.connect() as fresh:
        for name, table in TABLES.items():
            fresh.register(f"no_{name}", empty(table).to_arrow())
            fresh.execute(f"create table {name} as from no_{name}")
            fresh.unregister(f"no_{name}")
        fresh.execute(VIEWS.read_text(encoding="utf-8"))
        wanted, held = (dict(c.execute(_VIEWS).fetchall()) for c in (fresh, connection))
    for name in sorted(wanted.keys() | held.keys()):
        if name not in wanted:
            yield Defect("unknown-table", where, "", f"the view {name}")
        elif held.get(name) != wanted[name]:
            yield Defect(
                "warehouse-rows", f"{where}: {name}", "", "another view than a build makes"
            )


def _rows(
    connection: duckdb.DuckDBPyConnection, where: str, name: str, rows: pl.DataFrame
) -> Iterator[Defect]:
    held = [d[0] for d in connection.execute(f"from {name} limit 0").description or ()]
    if held != rows.columns:
        yield Defect("warehouse", where, "", "other columns than today's code writes")
        return
    connection.register("stage_rows", rows.to_arrow())
    both = {"only there": (name, "stage_rows"), "missing there": ("stage_rows", name)}
    for what, (one, other) in both.items():
        query = f"select * from (from {one} except all from {other}) limit 20"
        for row in connection.execute(query).fetchall():
            yield Defect("warehouse-rows", where, str(row[0]), what)
    connection.unregister("stage_rows")


def export(folder: Path, database: Path | None) -> Iterator[Defect]:
    """Exported files that are missing or not as they were written.

    With the ``database`` that they should come from the export is made again, in a folder for
    temporary files, and compared: files and manifest may have been changed together.
    """
    if not folder.exists():
        return
    try:
        names = damaged(folder)
    except (OSError, ValueError, KeyError) as error:
        yield Defect("export", f"{folder.name}/{MANIFEST}", "", f"not readable: {error}")
        return
    for name in names:
        yield Defect("export", f"{folder.name}/{name}", "", "missing, or changed after writing")
    if database is not None and not names:
        yield from _again(folder, database)


def _again(folder: Path, database: Path) -> Iterator[Defect]:
    """Files that the database does not give, in the spelling of the export that fits best."""
    held = files(folder)
    formats = [name for name in FORMATS if name and (folder / name).is_dir()]
    odd: list[list[str]] = []
    try:
        for spelling in get_args(Spelling):
            with TemporaryDirectory() as scratch, connect(database) as connection:
                made = Path(scratch) / folder.name
                try:
                    export_all(connection, made, spelling=spelling, formats=formats)
                except NotLeir:  # records of other languages have no other spelling
                    continue
                wanted = files(made)
            names = sorted(held.keys() | wanted.keys())
            odd.append([name for name in names if held.get(name) != wanted.get(name)])
            if not odd[-1]:
                return
    except (NoWarehouse, duckdb.Error, ValueError):
        return  # a finding of its own
    except OSError as error:
        yield Defect("export", folder.name, "", f"cannot be made again to compare it: {error}")
        return
    for name in min(odd, key=len):
        said = "not what the warehouse gives"
        yield Defect("export", f"{folder.name}/{name}", "", said)
