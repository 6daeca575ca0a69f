"""The DuckDB file: every table, loaded from stage files, built aside and moved into place.

Readers open the file read-only and are never blocked: one that is open keeps the old contents,
a new one sees the new. Rows that several programs share are merged by one rule: of rows with one
``leir_id`` the one with the smallest ``unit`` stays (they are equal apart from it), of units done
more than once the one done first.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import duckdb
import pandera.polars as pa

from steptp_dagster.dataset.asides import aside, remove
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.file_digests import file_digest
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.integrity import Finding, integrity
from steptp_dagster.dataset.mapping import build
from steptp_dagster.dataset.schemas import TABLES, empty
from steptp_dagster.dataset.store import WHOLE, Store

VIEWS = Path(__file__).with_name("views.sql")
#: Stages that keep lineage and timings.
STAGES = (
    "sources",
    "leir",
    "steps",
    "verdicts",
    "trajectories",
    "negatives",
    "records",
    "tokens",
    "zoo",
)
#: Table -> folders of stage files that hold its rows, where they are not one of the same name.
FOLDERS: dict[str, tuple[str, ...]] = {
    "leir_programs": ("leir_programs", "step_programs"),
    "lineage": tuple(f"lineage-{stage}" for stage in STAGES),
    "timings": tuple(f"timings-{stage}" for stage in STAGES),
}
MERGES = {
    "leir_programs": "select distinct on (leir_id) * from {rows} order by leir_id, unit",
    "lineage": "select distinct on (unit) * from {rows} order by unit, created_at, stage, program",
    "timings": "select distinct on (unit) * from {rows} order by unit, stage, seconds",
}


class NoWarehouse(RuntimeError):
    """There is no warehouse file that can be read, or another process has it open for writing."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in the warehouse: rows by table, what the checks say, whether it had to be built."""

    rows: dict[str, int]
    findings: tuple[Finding, ...]
    built: bool

    @property
    def sound(self) -> bool:
        """Whether all checks hold."""
        return all(finding.holds for finding in self.findings)


def stage_files(store: Store, table: str, programs: Sequence[str]) -> list[Path]:
    """Finished stage files with rows of a table: those of the programs, and undivided ones.

    Runs have a file each, whatever they were for.
    """
    if table == "runs":
        paths = [*store.files("runs", "part.parquet")]
    else:
        folders = FOLDERS.get(table, (table,))
        paths = [store.part(folder, p) for folder in folders for p in (*programs, WHOLE)]
    store.bring(*paths)
    return [path for path in paths if path.exists()]


def contents_digest(store: Store, programs: Sequence[str]) -> str:
    """Digest of everything that the warehouse is made from."""
    total = blake2b(digest_size=16)
    total.update(VIEWS.read_bytes())
    for table in TABLES:
        for path in stage_files(store, table, programs):
            total.update(str(path.relative_to(store.root)).encode() + b"\0")
            total.update(str(file_digest(path)).encode())
    return total.hexdigest()


def load(store: Store, profile: Profile, path: Path) -> Loaded:
    """Build the warehouse where its contents changed, and check its integrity.

    It holds the programs of the profile, and the profile itself. The checks see the new file
    before anyone else; where one fails, the old file stays.
    """
    programs = profile.program_names
    settings = canonical_json(profile.settings())
    made_from = digest("warehouse", contents_digest(store, programs), settings)
    if _made_from(path) == made_from:
        with connect(path) as connection:
            return Loaded(counts(connection), integrity(connection), built=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = aside(path)
    try:
        with duckdb.connect(str(made)) as connection:
            for name, table in TABLES.items():
                _load_table(connection, name, table, stage_files(store, name, programs))
            connection.execute(VIEWS.read_text(encoding="utf-8"))
            connection.execute("create table build as select ? as profile", [settings])
            # Apart, since it covers lineage and timings, which differ from build to build.
            connection.execute("create table loaded as select ? as made_from", [made_from])
            loaded = Loaded(counts(connection), integrity(connection), built=True)
        if loaded.sound:
            os.replace(made, path)
        return loaded
    finally:
        remove(made)
        remove(made.with_name(f"{made.name}.wal"))


def _load_table(
    connection: duckdb.DuckDBPyConnection, name: str, table: pa.DataFrameSchema, files: list[Path]
) -> None:
    connection.register("no_rows", empty(table).to_arrow())
    connection.execute(f"create table {name} as select * from no_rows")
    connection.unregister("no_rows")
    if files:
        rows = "read_parquet($files, hive_partitioning = false)"
        query = MERGES.get(name, "select * from {rows}").format(rows=rows)
        connection.execute(f"insert into {name} {query}", {"files": [str(f) for f in files]})
    connection.execute(f"comment on table {name} is {_quoted(table.description or '')}")
    for column, spec in table.columns.items():
        text = _quoted(spec.description or "")
        connection.execute(f'comment on column {name}."{column}" is {text}')


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows of every table."""
    found: dict[str, int] = {}
    for name in TABLES:
        ((found[name],),) = connection.execute(f"select count(*) from {name}").fetchall()
    return found


def loaded_from(connection: duckdb.DuckDBPyConnection) -> str | None:
    """What the warehouse was loaded from, stage files and profile; None of other databases."""
    try:
        ((made_from,),) = connection.execute("select made_from from loaded").fetchall()
    except (duckdb.Error, ValueError):
        return None
    return str(made_from)


def _made_from(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            return loaded_from(connection)
    except duckdb.Error:
        return None


def profile_of(connection: duckdb.DuckDBPyConnection) -> Profile:
    """The profile that the warehouse was built with."""
    # All rows are fetched: duckdb refuses other work while a result has rows left.
    ((settings,),) = connection.execute("select profile from build").fetchall()
    return build(Profile, json.loads(settings))


@contextmanager
def connect(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the warehouse read-only. Raises NoWarehouse where there is none that can be read."""
    if not path.exists():
        raise NoWarehouse(f"no warehouse at {path}: run `steptp build` first")
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.IOException as error:
        said = " ".join(str(error).split())
        if "lock" in said:
            raise NoWarehouse(
                f"{path} is open for writing in another process: end it, and open the file "
                f"read-only (duckdb -readonly); a build replaces it all the same ({said})"
            ) from None
        raise NoWarehouse(
            f"{path} cannot be read; change its mode, or remove it: `steptp build` makes it again "
            f"({said})"
        ) from None
    try:
        yield connection
    finally:
        connection.close()
