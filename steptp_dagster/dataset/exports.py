"""What people download: JSONL by split, Parquet of every table, a card; replaced as a whole."""

import json
import os
import shutil
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import duckdb
import polars as pl

from steptp_dagster.dataset.card import card
from steptp_dagster.dataset.ids import canonical_json, digest
from steptp_dagster.dataset.schemas import SPLITS, STABLE
from steptp_dagster.dataset.store import write_aside
from steptp_dagster.dataset.warehouse import profile_of

MANIFEST = "manifest.json"
#: Columns of a record in the JSONL files, apart from ``messages``.
RECORD_COLUMNS = (
    "record_id",
    "step_ids",
    "source_id",
    "program",
    "family",
    "dtype",
    "strategy",
    "strategy_level",
    "equality",
    "task",
    "split",
    "difficulty",
    "weights",
    "prompt_tokens",
    "reasoning_tokens",
    "answer_tokens",
)


def table(connection: duckdb.DuckDBPyConnection, name: str) -> pl.DataFrame:
    """A stable table in the order of its columns' values, so that equal rows give equal bytes."""
    columns = [c for c in STABLE[name].columns if c not in ("refusals", "messages", "weights")]
    ordered = ", ".join(f'"{c}" nulls first' for c in columns)
    frame = connection.sql(f"select * from {name} order by {ordered}").pl()
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"duckdb gave {type(frame).__name__} for {name}")
    return frame


def write(connection: duckdb.DuckDBPyConnection, folder: Path, text: str) -> tuple[Path, bool]:
    """Write all exports where they changed or were damaged; the folder, and whether it was.

    A new folder is filled beside the old one and takes its place when it is complete.
    """
    frames = {name: table(connection, name) for name in STABLE}
    made_from = digest("export", text, *(_fingerprint(f) for f in frames.values()))
    if made_from_of(folder) == made_from and not damaged(folder):
        return folder, False
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        for name, frame in frames.items():
            write_aside(aside / "tables" / f"{name}.parquet", frame)
        for split in SPLITS:
            lines = jsonl(frames["filtered_dataset"], split)
            (aside / f"{split}.jsonl").write_text(lines, encoding="utf-8")
        (aside / "README.md").write_text(text, encoding="utf-8")
        manifest = {"made_from": made_from, "files": files(aside)}
        listing = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
        (aside / MANIFEST).write_text(listing, encoding="utf-8")
        _swap(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder, True


def export_all(connection: duckdb.DuckDBPyConnection, folder: Path) -> tuple[Path, bool]:
    """Write all exports of a warehouse, the card included; as ``write``."""
    profile = profile_of(connection)
    text = card(profile, table(connection, "statistics"), table(connection, "filtered_dataset"))
    return write(connection, folder, text)


def jsonl(records: pl.DataFrame, split: str) -> str:
    """The records of a split as JSON lines, in the order of their ids."""
    chosen = records.filter(pl.col("split") == split).sort("record_id")
    rows = chosen.select(*RECORD_COLUMNS, "messages").to_dicts()
    return "".join(canonical_json(row) + "\n" for row in rows)


def files(folder: Path) -> dict[str, str]:
    """BLAKE2b digests of all files of a folder by relative name."""
    found = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {str(p.relative_to(folder)): _file_digest(p) for p in found}


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
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _fingerprint(frame: pl.DataFrame) -> str:
    return blake2b(frame.write_json().encode(), digest_size=16).hexdigest()


def _swap(new: Path, folder: Path) -> None:
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(new, folder)
    shutil.rmtree(old, ignore_errors=True)
