"""``steptp build``: what it says when it ends otherwise than it should."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from steptp_dagster.cli.build import _why
from steptp_dagster.cli.home import instance
from steptp_dagster.cli.main import steptp
from steptp_dagster.cli.output import Failure
from steptp_dagster.dataset.store import NotWritten

ROOT = Path(__file__).parents[2]


def test_an_unknown_profile_lists_the_known_ones() -> None:
    result = CliRunner().invoke(steptp, ["build", "--profile", "nix"])
    assert result.exit_code == 2
    assert "no profile 'nix'; there are cpu, default, full, tiny" in result.stderr


def test_a_data_folder_that_is_none_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    (tmp_path / "file").write_text("not a folder")
    for place in (tmp_path / "file", tmp_path / "file" / "data"):
        told = ["build", "--profile", "tiny", "--data", str(place)]
        result = CliRunner().invoke(steptp, told)
        assert result.exit_code == 2
        assert f"the data folder {place} is a file, or lies in one; change its" in result.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of Dagster's that is not there yet."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_home_is_made_where_it_is_missing(home: Path) -> None:
    with instance() as dagster:
        assert dagster.get_runs_count() == 0
    assert "telemetry" in (home / "dagster.yaml").read_text()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("telemetry: [", "dagster.yaml is not YAML: while parsing"),
        ("colour: red", "dagster.yaml: Received unexpected config entry"),
        (None, "File exists"),
    ],
)
def test_a_home_that_cannot_be_used_is_said(home: Path, settings: str | None, message: str) -> None:
    if settings is None:
        home.write_text("a file")
    else:
        home.mkdir()
        (home / "dagster.yaml").write_text(settings)
    with pytest.raises(Failure) as caught, instance():
        pass
    assert f"Dagster's home {home} cannot be used: {message}" in caught.value.message
    assert "move it away, or name another folder with $DAGSTER_HOME" in caught.value.message


def test_a_home_whose_database_is_spoilt_is_said(home: Path) -> None:
    (home / "history").mkdir(parents=True)
    (home / "history" / "runs.db").write_bytes(b"no database" * 1000)
    message = "cannot be used: its database: file is not a database; mend it"
    with pytest.raises(Failure, match=message), instance() as dagster:
        dagster.get_runs_count()


def test_a_failed_run_tells_what_stopped_it() -> None:
    """A warning of a check is none of it, nor are the names of our classes."""

    @dg.asset
    def full() -> None:
        raise NotWritten("cannot write x: the disk is full")

    @dg.asset(check_specs=[dg.AssetCheckSpec("rows", asset="checked", blocking=True)])
    def checked() -> dg.MaterializeResult:
        bad = dg.AssetCheckResult(passed=False, check_name="rows", description="two are odd")
        return dg.MaterializeResult(check_results=[bad])

    @dg.asset(check_specs=[dg.AssetCheckSpec("many", asset="warned")])
    def warned() -> dg.MaterializeResult:
        severity = dg.AssetCheckSeverity.WARN
        few = dg.AssetCheckResult(
            passed=False, check_name="many", severity=severity, description="few"
        )
        return dg.MaterializeResult(check_results=[few])

    definitions = dg.Definitions(assets=[full, checked, warned])
    with dg.DagsterInstance.ephemeral() as dagster:
        job = definitions.resolve_implicit_global_asset_job_def()
        said = _why(job.execute_in_process(instance=dagster, raise_on_error=False))
    _, _, told = said.partition("; ")
    assert told == ("full: cannot write x: the disk is full; check rows of checked: two are odd")


@pytest.mark.slow
def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    """As a terminal does it: the signal goes to all processes of the build."""
    log = tmp_path / "log"
    code = "from steptp_dagster.cli.main import main; main()"
    command = [sys.executable, "-c", code, "build", "--profile", "tiny", "--data", str(tmp_path)]
    environment = os.environ | {"DAGSTER_HOME": str(tmp_path / "home")}
    with log.open("w", encoding="utf-8") as out:
        started = subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=out, start_new_session=True
        )
    while "LEIR of" not in log.read_text(encoding="utf-8"):
        assert started.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.1)
    os.killpg(started.pid, signal.SIGINT)
    assert started.wait(timeout=120) == 130
    said = log.read_text(encoding="utf-8")
    assert said.endswith("steptp: stopped; what is done is kept, and the same command goes on\n")
    assert "Traceback" not in said
