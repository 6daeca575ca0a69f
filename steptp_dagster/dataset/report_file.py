"""The page of plots as a file: drawn again where the data or the code changed."""

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import duckdb

from steptp_dagster.dataset.card import markdown
from steptp_dagster.dataset.figures import figure
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.seals import made_with
from steptp_dagster.dataset.store import explained
from steptp_dagster.dataset.warehouse import loaded_from


@dataclass(frozen=True, slots=True)
class Page:
    """What is there now: whether it had to be drawn, its bytes, its first table as Markdown."""

    written: bool
    size: int
    contents: str


def update_report(connection: duckdb.DuckDBPyConnection, path: Path) -> Page:
    """Draw the page of an open warehouse, unless it is there as it was drawn from the same data.

    Raises NotWritten; then the page that was there before is whole.
    """
    seal = path.with_name(f".{path.name}.seal")
    made_from = digest("report", loaded_from(connection), made_with())
    contents = markdown(figure(connection, "contents"))
    there = path.read_bytes() if path.exists() else b""
    if seal.exists() and seal.read_text(encoding="utf-8") == _sealed(made_from, there):
        return Page(False, len(there), contents)
    from steptp_dagster.dataset.report import report_html

    page = report_html(connection).encode()
    write_page(path, page)
    write_page(seal, _sealed(made_from, page).encode())
    return Page(True, len(page), contents)


def write_page(path: Path, content: bytes) -> None:
    """Write a file aside and move it into place. Raises NotWritten."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with explained(path):
        try:
            aside.write_bytes(content)
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)


def _sealed(made_from: str, page: bytes) -> str:
    return f"{made_from} {blake2b(page, digest_size=16).hexdigest()}\n"
