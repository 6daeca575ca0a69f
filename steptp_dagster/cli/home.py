"""Dagster's home folder, and what else must be right before anything runs: failures in words."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steptp_dagster import paths
from steptp_dagster.cli.output import Failure

if TYPE_CHECKING:
    import dagster as dg


def writable(folder: Path) -> None:
    """Make the data folder. Fails in words where it cannot be one, or may not be written to."""
    advice = f"change its owner or mode, or name another with --data or ${paths.DATA_VARIABLE}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise Failure(f"the data folder {folder} is a file, or lies in one; {advice}") from error
    except OSError as error:
        said = f"the data folder {folder} cannot be made: {error.strerror}; {advice}"
        raise Failure(said) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise Failure(f"the data folder {folder} may not be written to; {advice}")


@contextmanager
def instance(*, quiet: bool = False) -> "Iterator[dg.DagsterInstance]":
    """The project's Dagster instance. Fails in words where its home folder cannot be used.

    What it keeps is lists of runs and events: no data set depends on it. With ``quiet`` the steps'
    output is left on the console. Dagster copies it to files with three helper processes a step;
    nobody reads these, and the helpers answer Ctrl-C with tracebacks.
    """
    import dagster as dg
    from dagster._core.instance.ref import InstanceRef
    from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
    from sqlalchemy.exc import DatabaseError

    manager = {"module": NoOpComputeLogManager.__module__, "class": NoOpComputeLogManager.__name__}
    home = Path(os.environ.get(paths.HOME_VARIABLE) or paths.project() / ".dagster")
    try:
        home = paths.dagster_home()
        os.environ[paths.HOME_VARIABLE] = str(home)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "it may not be written to")
        reference = InstanceRef.from_dir(
            str(home), overrides={"compute_logs": manager} if quiet else None
        )
        opened = dg.DagsterInstance.from_ref(reference)
    except Exception as error:
        if (said := _reason(error)) is None:
            raise
        raise _unusable(home, said) from error
    with opened:
        try:
            yield opened
        except DatabaseError as error:
            raise _unusable(home, str(_reason(error))) from error


def _unusable(home: Path, said: str) -> Failure:
    advice = f"mend it, move it away, or name another folder with ${paths.HOME_VARIABLE}"
    return Failure(f"Dagster's home {home} cannot be used: {said}; {advice}")


def _reason(error: Exception) -> str | None:
    """What a failure says of the home folder, in a line; None of any other failure."""
    import dagster as dg
    import yaml
    from sqlalchemy.exc import DatabaseError

    if isinstance(error, DatabaseError):
        return f"its database: {error.orig}"
    if isinstance(error, dg.DagsterInvalidConfigError):
        return f"dagster.yaml: {' '.join('; '.join(error.error_messages).split())[:200]} ..."
    if isinstance(error, yaml.YAMLError):
        return f"dagster.yaml is not YAML: {' '.join(str(error).split())}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return None
