"""What a build is: profile, processes, how progress is shown."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from steptp_dagster import progress
from steptp_dagster.dataset.config import Profile, load
from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.incremental import Origin
from steptp_dagster.dataset.parallel import Workers, cores, workers
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.versions import code_version, releases, revision
from steptp_dagster.paths import WrongSetting

#: Environment variable with the profile's name, for code locations.
PROFILE_VARIABLE = "STEPTP_PROFILE"
#: Environment variable with the number of worker processes.
WORKERS_VARIABLE = "STEPTP_WORKERS"
#: Run tag that asks for progress on standard error instead of the run's log.
PROGRESS_TAG = "steptp/progress"


class BadSetting(WrongSetting):
    """An environment variable that should be a number, or one of some size, and is not."""


def number(variable: str) -> int:
    """A number from 0 on in an environment variable; 0 where it is not set. Raises BadSetting."""
    text = os.environ.get(variable, "0")
    if not text.isdecimal():
        raise BadSetting(f"{variable}={text!r} is not a number from 0 on")
    return int(text)


def fraction(variable: str, default: float) -> float:
    """A share, 0..1, in an environment variable. Raises BadSetting."""
    text = os.environ.get(variable, str(default))
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:  # true for NaN too
        raise BadSetting(f"{variable}={text!r} is not a share from 0 to 1")
    return value


def run_row(job: str, profile: str) -> Row:
    """What is known of a run, apart from its id."""
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "job": job,
        "profile": profile,
        "revision": revision(),
        "releases": canonical_json(releases()),
    }


RunContext = dg.AssetExecutionContext | dg.AssetCheckExecutionContext


def on_console(context: RunContext) -> bool:
    """Whether the run was started on a command line, where somebody waits for it."""
    return context.run.tags.get(PROGRESS_TAG) == "console"


class Build(dg.ConfigurableResource[str]):
    """The profile by name or path, and the number of worker processes (0: one per core)."""

    profile_name: str = "default"
    processes: int = 0

    @property
    def profile(self) -> Profile:
        """The profile. Raises ProfileError."""
        return load(self.profile_name)

    @property
    def count(self) -> int:
        """Worker processes to use."""
        return self.processes or cores()

    @contextmanager
    def workers(self) -> Iterator[Workers]:
        """A pool of worker processes."""
        with workers(self.count) as pool:
            yield pool

    def origin(self, context: RunContext, stage: str) -> Origin:
        """What the lineage of new rows says."""
        run = context.run
        describe = partial(run_row, run.job_name, self.profile.name)
        return Origin(run.run_id, code_version(stage), describe)

    def progress(self, context: RunContext) -> "progress.Progress[Any]":
        """A bar or lines on standard error for the command line, else lines in the run's log."""
        if on_console(context):
            return progress.on_stream()
        say: Callable[[str], None] = context.log.info
        return progress.lines(say)
