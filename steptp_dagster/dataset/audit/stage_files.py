"""The stage files: readable, complete, of the right columns, every row within its schema."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

import pandera.polars as pa
import polars as pl

from steptp_dagster.dataset import stages
from steptp_dagster.dataset.audit.defects import Defect
from steptp_dagster.dataset.incremental import BadRows, Stage, validated
from steptp_dagster.dataset.schemas import TABLES, empty
from steptp_dagster.dataset.store import Store

#: What the folder of a partition is called by.
PREFIX: Final = "program="


@dataclass(frozen=True, slots=True)
class Part:
    """One finished file: its folder, its partition, its rows."""

    folder: str
    program: str
    rows: pl.DataFrame


def known_stages() -> tuple[Stage, ...]:
    """The stages of all modules of ``dataset.stages``, by module name."""
    modules = [import_module(f"{stages.__name__}.{m.name}") for m in iter_modules(stages.__path__)]
    found = (getattr(module, "STAGE", None) for module in modules)
    return tuple(stage for stage in found if isinstance(stage, Stage))


def folders() -> Mapping[str, pa.DataFrameSchema]:
    """Every folder of stage files with its table."""
    written = {name: t for s in known_stages() for name, t in {**s.tables, **s.journals}.items()}
    undivided = {name: t for name, t in TABLES.items() if name not in ("lineage", "timings")}
    return {**undivided, **written}


def programs_in(store: Store) -> tuple[str, ...]:
    """The partitions that have finished files, sorted."""
    names = {p.parent.name.removeprefix(PREFIX) for p in store.files(name="part.parquet")}
    return tuple(sorted(names))


def parts(store: Store) -> Iterator[Part | Defect]:
    """Every finished file with its rows, and what is wrong with files (not with rows)."""
    known = folders()
    found = store.files()
    store.bring(*found)
    for path in found:
        folder, partition = path.parent.parent.name, path.parent.name
        where = str(path.relative_to(store.root))
        if folder not in known or not partition.startswith(PREFIX):
            yield Defect("unknown-file", where, "", f"no table is called {folder}")
        elif path.name.startswith("batch-"):
            yield Defect("unfinished", where, "", "a batch without its finished file")
        elif path.name != "part.parquet":
            yield Defect("unknown-file", where, "", "neither part.parquet nor a batch")
        else:
            yield from _read(known[folder], path, folder, where)
    yield from _missing(store)


def _read(
    table: pa.DataFrameSchema, path: Path, folder: str, where: str
) -> Iterator[Part | Defect]:
    try:
        rows = pl.read_parquet(path, hive_partitioning=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        words = str(error).splitlines()[0]
        yield Defect("unreadable-file", where, "", f"{type(error).__name__}: {words}")
        return
    wanted = empty(table).schema
    if rows.schema != wanted:
        odd = sorted(set(rows.schema.items()) ^ set(wanted.items()), key=str)
        yield Defect("other-columns", where, "", ", ".join(f"{n}: {t}" for n, t in odd))
        return
    yield Part(folder, path.parent.name.removeprefix(PREFIX), rows)


def misfits(found: Sequence[Part]) -> Iterator[Defect]:
    """Rows that their table's schema refuses; folders are validated whole, since calls are slow."""
    known = folders()
    for folder in sorted({part.folder for part in found}):
        own = [part for part in found if part.folder == folder]
        try:
            validated(known[folder], pl.concat([part.rows for part in own]))
        except BadRows:
            for part in own:
                yield from _misfits(known[folder], part)


def _misfits(table: pa.DataFrameSchema, part: Part) -> Iterator[Defect]:
    where = f"{part.folder}/{PREFIX}{part.program}/part.parquet"
    try:
        validated(table, part.rows)
    except BadRows as error:
        for case in error.cases.to_dicts():
            said = f"{case['column']}: {case['check']} ({case['failure_case']})"
            yield Defect("schema", where, _row_id(part.rows, case.get("index")), said)


def _row_id(rows: pl.DataFrame, index: object) -> str:
    """The first column of the row at ``index``, which is its id in most tables."""
    if not isinstance(index, int) or not 0 <= index < rows.height:
        return ""
    return str(rows.row(index)[0])


def _missing(store: Store) -> Iterator[Defect]:
    """Folders that lack a partition which the other folders of their stage have."""
    every = frozenset(store.files(name="part.parquet"))
    programs = programs_in(store)
    merged: dict[str, list[frozenset[str]]] = {}
    for stage in known_stages():
        merged.setdefault(stage.name, []).append(frozenset({*stage.tables, *stage.journals}))
    for groups in merged.values():
        # Several stages may share a name (library's and users' programs): what all of them write.
        names = sorted(frozenset.intersection(*groups))
        for program in programs:
            there = [name for name in names if store.part(name, program) in every]
            for name in names if there else ():
                if name not in there:
                    where = str(store.part(name, program).relative_to(store.root))
                    yield Defect("missing-file", where, "", f"{there[0]} of {program} is there")
