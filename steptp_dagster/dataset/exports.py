"""What people download: records as Parquet and JSONL, all tables, a card; replaced as a whole.

    README.md                         the card
    data/SPLIT-00000-of-00002.parquet records, all columns, for ``datasets``
    SPLIT.jsonl                       the same as JSON lines, for TRL and ms-swift
    trl/SPLIT.jsonl, swift/SPLIT.jsonl  in the forms that these ask for, where asked for
    tables/NAME.parquet               every table that is equal in every build
    manifest.json                     what it was made from, and the digests of all files

A split without records has no files. Equal tables give equal bytes.
"""

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from math import ceil
from pathlib import Path
from typing import Final

import duckdb
import polars as pl

from steptp_dagster.dataset.asides import aside, remove
from steptp_dagster.dataset.card import card
from steptp_dagster.dataset.file_digests import file_digest
from steptp_dagster.dataset.formats import FORMATS, RECORD_COLUMNS
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.respelling import respelled
from steptp_dagster.dataset.schemas import SPLITS, STABLE
from steptp_dagster.dataset.seals import made_with
from steptp_dagster.dataset.store import write_aside
from steptp_dagster.dataset.warehouse import NoWarehouse, loaded_from, profile_of
from steptp_dagster.leir.compact import Spelling

MANIFEST: Final = "manifest.json"
#: Records in one Parquet shard.
SHARD_ROWS: Final = 4096
#: Columns by whose values no table can be sorted.
_UNSORTABLE: Final = ("refusals", "messages", "weights")


def table(connection: duckdb.DuckDBPyConnection, name: str) -> pl.DataFrame:
    """A stable table in the order of its columns' values, so that equal rows give equal bytes."""
    columns = [c for c in STABLE[name].columns if c not in _UNSORTABLE]
    ordered = ", ".join(f'"{c}" nulls first' for c in columns)
    frame = connection.sql(f"select * from {name} order by {ordered}").pl()
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"duckdb gave {type(frame).__name__} for {name}")
    return frame


def export_all(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    *,
    spelling: Spelling = "paper",
    formats: Iterable[str] = (),
) -> tuple[Path, bool]:
    """Write all exports of a warehouse where they changed or were damaged; whether it was done.

    ``spelling`` is how records show programs (tables always have the paper's), ``formats`` are
    further forms of the records (``formats.FORMATS``). A new folder is filled beside the old one
    and takes its place when it is complete. Raises OSError where the disk refuses, NoWarehouse
    for one of another release, and leaves the old folder as it was.
    """
    chosen = sorted({"", *formats})
    _recover(folder)
    seal = _seal(connection, spelling, chosen)
    fits = _sealed(folder) == [seal, file_digest(folder / MANIFEST)]
    if seal is not None and fits and not damaged(folder):
        return folder, False
    written = _export(connection, folder, spelling, chosen)
    _write_seal(folder, [seal, file_digest(folder / MANIFEST)])
    return folder, written


def _export(
    connection: duckdb.DuckDBPyConnection, folder: Path, spelling: Spelling, chosen: list[str]
) -> bool:
    """Write what differs from what is there; whether anything did."""
    try:
        frames = {name: table(connection, name) for name in STABLE}
        records = frames["filtered_dataset"]
        if spelling == "compact":
            records = respelled(records)
        text = card(connection, profile_of(connection), records, spelling)
    except duckdb.CatalogException as error:
        said = str(error).splitlines()[0]
        raise NoWarehouse(
            f"the warehouse was made by another release ({said}): run `steptp build`"
        ) from error
    contents = (_fingerprint(frame) for frame in (records, *frames.values()))
    made_from = digest("export", text, chosen, SHARD_ROWS, *contents)
    if made_from_of(folder) == made_from and not damaged(folder):
        return False
    made = aside(folder)
    try:
        made.mkdir(parents=True)
        for name, frame in frames.items():
            write_aside(made / "tables" / f"{name}.parquet", frame)
        _write_records(made, records, chosen)
        (made / "README.md").write_text(text, encoding="utf-8")
        manifest = {"made_from": made_from, "files": files(made)}
        listing = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
        (made / MANIFEST).write_text(listing, encoding="utf-8")
        _swap(made, folder)
    finally:
        remove(made)
    return True


def _seal(
    connection: duckdb.DuckDBPyConnection, spelling: Spelling, chosen: list[str]
) -> str | None:
    """Digest of all that an export could depend on; None of tables that are no warehouse's."""
    loaded = loaded_from(connection)
    return None if loaded is None else digest("export", loaded, made_with(), spelling, chosen)


def _seal_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.seal")


def _sealed(folder: Path) -> object:
    """What the folder was last made from, and the digest of its manifest; None: not known."""
    try:
        return json.loads(_seal_of(folder).read_bytes())
    except (OSError, ValueError):
        return None


def _write_seal(folder: Path, told: list[str | None]) -> None:
    """Without it the next export only takes longer."""
    aside = folder.with_name(f".{folder.name}.seal.{os.getpid()}")
    with suppress(OSError):
        aside.write_text(json.dumps(told) + "\n", encoding="utf-8")
        os.replace(aside, _seal_of(folder))


def _write_records(folder: Path, records: pl.DataFrame, formats: Sequence[str]) -> None:
    for split in SPLITS:
        chosen = records.filter(pl.col("split") == split).sort("record_id").select(RECORD_COLUMNS)
        for path, shard in shards(chosen, split):
            write_aside(folder / path, shard)
        for name in formats if chosen.height else ():
            lines = folder / name / f"{split}.jsonl"
            lines.parent.mkdir(exist_ok=True)
            lines.write_text(jsonl(chosen, name), encoding="utf-8")


def shards(records: pl.DataFrame, split: str) -> list[tuple[str, pl.DataFrame]]:
    """The records of a split cut into files, with their names; none of a split without records."""
    count = ceil(records.height / SHARD_ROWS)
    return [
        (f"data/{split}-{n:05d}-of-{count:05d}.parquet", records.slice(n * SHARD_ROWS, SHARD_ROWS))
        for n in range(count)
    ]


def jsonl(records: pl.DataFrame, format_: str = "") -> str:
    """Records as JSON lines in one of the forms, in their order."""
    form = FORMATS[format_]
    return "".join(canonical_json(form(row)) + "\n" for row in records.to_dicts())


def files(folder: Path) -> dict[str, str]:
    """BLAKE2b digests of all files of a folder by relative name."""
    found = sorted(p for p in folder.rglob("*") if p.is_file() and p != folder / MANIFEST)
    return {p.relative_to(folder).as_posix(): _file_digest(p) for p in found}


def damaged(folder: Path) -> Sequence[str]:
    """Names of exported files that are missing or differ from the manifest."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    now = files(folder)
    return sorted(name for name, known in manifest["files"].items() if now.get(name) != known)


def made_from_of(folder: Path) -> str | None:
    """What an export folder says that it was made from, or None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    return str(manifest.get("made_from")) if isinstance(manifest, dict) else None


def _file_digest(path: Path) -> str:
    return str(file_digest(path))


def _fingerprint(frame: pl.DataFrame) -> str:
    return blake2b(frame.write_json().encode(), digest_size=16).hexdigest()


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _recover(folder: Path) -> None:
    """Put back the folder that a kill between the two moves of a swap left aside."""
    if not folder.exists() and _old(folder).exists():
        os.replace(_old(folder), folder)


def _swap(new: Path, folder: Path) -> None:
    """Put a complete folder in the place of the old one; where that fails, the old one stays."""
    old = _old(folder)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    try:
        os.replace(new, folder)
    except OSError:
        _recover(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
