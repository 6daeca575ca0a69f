"""Users' files on the command line: listed, translated, and built into a data set."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from steptp_dagster.cli.main import steptp
from steptp_dagster.paths import USERS_VARIABLE
from tests.support.users import BENCHMARK, BROKEN, FLOW, FUNCTION, LARGE, SEVERAL


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of users' files; the environment is as it was afterwards."""
    monkeypatch.setenv(USERS_VARIABLE, "")
    files = {"net": BENCHMARK, "many": SEVERAL, "flow": FLOW, "bad": "def f(:\n", "large": LARGE}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(steptp, [str(a) for a in arguments])


def test_sources_lists_programs_of_users_and_names_broken_files(folder: Path) -> None:
    result = run("sources", "--user-programs", folder, "--json")
    assert result.exit_code == 1
    assert result.stderr.startswith("steptp: bad.py:1: no valid Python")
    assert result.stderr.count("\n") == 1
    rows = {row["program"]: row for row in json.loads(result.stdout)}
    assert "softmax" in rows
    assert rows["user_net"]["origin"] == "user: net.py"
    assert {name for name, row in rows.items() if row["family"] == "user_many"} >= {
        "user_many.Scale",
        "user_many.Pair",
    }


def test_translate_a_file(folder: Path) -> None:
    result = run("translate", folder / "net.py", "--dtype", "f16", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["program"], told["objection"], told["unexecuted"]) == ("user_net", None, None)
    assert told["fidelity"] < 1e-9
    assert "f16[2,5]" in told["leir"]
    assert "families of data: difference" in result.stderr


def test_translate_one_of_several_programs(folder: Path) -> None:
    several = run("translate", folder / "many.py")
    assert several.exit_code == 2
    assert "has several programs; choose one with --program: 'Scale', 'Pair'" in several.stderr
    assert run("translate", folder / "many.py", "--program", "Pear").exit_code == 2
    assert run("translate", folder / "many.py", "--program", "Pair").exit_code == 0


def test_what_is_not_translated(folder: Path) -> None:
    flow = run("translate", folder / "flow.py")
    assert flow.exit_code == 1
    assert "flow.py is not translated: " in flow.stderr
    assert "flow.py:6" in flow.stderr
    bad = run("translate", folder / "bad.py")
    assert (bad.exit_code, bad.stdout) == (2, "")
    assert bad.stderr.startswith("steptp: bad.py:1: no valid Python")


def test_a_large_file_is_compared_with_smaller_numbers(folder: Path) -> None:
    result = run("translate", folder / "large.py")
    assert result.exit_code == 0, result.stderr
    assert "A f32[4096,65536]" in result.stdout
    assert "not executed: executes" in result.stderr
    assert "; with batch=8, inner=8, outer=8 it differs from PyTorch by " in result.stderr


PROFILE = """
name: small
seed: 3
dtypes: [f32]
programs: []
user_programs: {folder: nets, timeout_s: 20, memory_mb: 1500}
steps: {sites: 1, depth: 0}
strategies: [loop_split, loop_reorder]
splits: {train: 0.5, validation: 0.5, test: 0.0}
"""


def build(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """A build as a user runs it: its summary and the lines about broken programs."""
    code = "from steptp_dagster.cli.main import main; main()"
    dropped = ("DAGSTER_HOME", "STEPTP_DATA", "STEPTP_PROFILE", USERS_VARIABLE)
    done = subprocess.run(
        [sys.executable, "-c", code, "build", "--profile", "small.yaml", "--json"],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k not in dropped},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), [s for s in done.stderr.splitlines() if "steptp: " in s]


@pytest.mark.slow
def test_a_folder_becomes_a_data_set_and_bad_files_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").touch()
    (tmp_path / "small.yaml").write_text(PROFILE)
    nets = tmp_path / "nets"
    nets.mkdir()
    bad = {name: BROKEN[name][0] for name in ("syntax", "raises", "exits", "crashes", "hangs")}
    good = {"mlp": BENCHMARK, "double": FUNCTION, "large": LARGE}
    for name, text in {**good, **bad, "many": SEVERAL, "flow": FLOW}.items():
        (nets / f"{name}.py").write_text(text, encoding="utf-8")
    summary, problems = build(tmp_path)
    assert len(problems) == len(bad) + 2  # flow.py, and the class Broken in many.py
    for name in (*bad, "many", "flow"):
        assert len([line for line in problems if f"{name}" in line]) == 1, problems
    with duckdb.connect(str(tmp_path / "data" / "steptp.duckdb"), read_only=True) as tables:
        records = dict(
            tables.execute("select program, count(*) from filtered_dataset group by all").fetchall()
        )
        accepted = tables.execute("select bool_and(equal_pass) from gpu_verification").fetchall()
    assert {"user_mlp", "user_many.Pair", "user_large"} <= records.keys()
    assert accepted == [(True,)]
    (nets / "large.py").unlink()
    (nets / "raises.py").write_text(FUNCTION.replace("x * 2", "x * 3"))
    again, problems = build(tmp_path)
    # The file that changed; what crashed or hung is tried again.
    assert again["computed"]["sources"] == 1 + len(("crashes", "hangs"))
    assert again["rows"]["source_programs"] == summary["rows"]["source_programs"] - 2 + 1
    assert not [line for line in problems if "raises" in line]
