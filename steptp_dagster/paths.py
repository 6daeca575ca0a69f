"""Where things lie: the project's folder, its data, its Dagster home."""

import os
from pathlib import Path

DATA_VARIABLE = "STEPTP_DATA"
#: Where stage files lie, in place of the data folder: a path, or a URL of fsspec's.
STORAGE_VARIABLE = "STEPTP_STORAGE"
HOME_VARIABLE = "DAGSTER_HOME"
#: Folder of users' programs, in place of that of the profile.
USERS_VARIABLE = "STEPTP_USER_PROGRAMS"
#: Settings in place of those of the profile, one ``KEY=VALUE`` a line.
OVERRIDES_VARIABLE = "STEPTP_SET"
#: Written into a Dagster home that has no settings: no telemetry, no welcome dialog.
SETTINGS = "telemetry:\n  enabled: false\nnux:\n  enabled: false\n"


class WrongSetting(ValueError):
    """An environment variable that cannot be meant; the message names it, and what may be."""


def project(start: Path | None = None) -> Path:
    """The nearest folder, from the current one upwards, with ``workspace.yaml``; else the start."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "workspace.yaml").exists():
            return folder
    return here


def data() -> Path:
    """The data folder: ``$STEPTP_DATA``, else ``data`` in the project."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).resolve() if named else project() / "data"


def storage() -> str:
    """Where stage files lie: ``$STEPTP_STORAGE``; empty for the data folder."""
    return os.environ.get(STORAGE_VARIABLE, "")


def dagster_home() -> Path:
    """The project's own Dagster home (``.dagster``), made where it is missing.

    An explicit ``$DAGSTER_HOME`` wins.
    """
    named = os.environ.get(HOME_VARIABLE)
    home = Path(named) if named else project() / ".dagster"
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text(SETTINGS, encoding="utf-8")
    return home.resolve()
