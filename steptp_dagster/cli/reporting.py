"""``steptp report``: plots of a data set as one HTML page."""

import os
from contextlib import suppress
from pathlib import Path

import click

from steptp_dagster import paths
from steptp_dagster.cli.output import NamedPath, emit, json_option, unwritten
from steptp_dagster.cli.warehouse import data_option, opened


@click.command()
@click.option("--to", type=NamedPath(), help="File (default: data/report.html).")
@data_option
@json_option
def report(to: Path | None, data: Path | None, as_json: bool) -> None:
    """Write one HTML page with plots of the data set; it needs no network.

    Exit code: 0 written, 1 the file cannot be written, 2 no data set.
    """
    from steptp_dagster.dataset.report import report_html

    target = to or (data or paths.data()) / "report.html"
    with opened(data) as connection:
        page = report_html(connection)
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        aside.write_text(page, encoding="utf-8")
        os.replace(aside, target)
    except OSError as error:
        raise unwritten(target, error) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    emit({"file": str(target), "bytes": len(page.encode())}, str(target), as_json=as_json)
