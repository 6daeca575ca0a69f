"""``--storage``: where stage files lie, for commands that read or write them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steptp_dagster import paths
from steptp_dagster.cli.output import Failure

if TYPE_CHECKING:
    from steptp_dagster.dataset.store import Store


def storage_option(command: Any) -> Any:  # noqa: ANN401 - a decorator
    """Add ``--storage URL`` (parameter ``storage``, or None for the default) to a command."""
    return click.option(
        "--storage",
        metavar="URL",
        help=f"Where stage files lie: s3://bucket/prefix, a folder (default: "
        f"${paths.STORAGE_VARIABLE}, else in the data folder).",
    )(command)


def stage_files(data: Path, storage: str | None) -> "Store":
    """The stage files, tried out. Fails in words where nothing can be read or written there."""
    from steptp_dagster.dataset.storage.address import BadStorage
    from steptp_dagster.dataset.store import opened

    try:
        return opened(data, paths.storage() if storage is None else storage)
    except BadStorage as error:
        raise Failure(str(error)) from error
