"""``steptp build``: what it says when it ends otherwise than it should."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from steptp_dagster.cli.main import steptp

ROOT = Path(__file__).parents[2]


def test_an_unknown_profile_lists_the_known_ones() -> None:
    result = CliRunner().invoke(steptp, ["build", "--profile", "nix"])
    assert result.exit_code == 2
    assert "no profile 'nix'; there are cpu, default, full, tiny" in result.stderr


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
