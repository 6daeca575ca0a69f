"""The whole pipeline on a few real programs, as users run it: ``steptp build``."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steptp_dagster.dataset.schemas import STABLE

PROFILE = """
name: small
seed: 3
dtypes: [f32]
programs: [{name: softmax}, {name: GELU}]
steps: {sites: 1, depth: 1, chains: 1, chain_sites: 1, trajectories: 2, negatives: 3}
balance: {base: standard, minimum: 0, program_strategy_cap: 1}
splits: {train: 0.5, validation: 0.5, test: 0.0}
"""
LIMIT = 400


def command(folder: Path, *arguments: str) -> list[str]:
    """``steptp`` in a project folder of its own."""
    (folder / "workspace.yaml").touch()
    (folder / "small.yaml").write_text(PROFILE)
    code = "from steptp_dagster.cli.main import main; main()"
    return [sys.executable, "-c", code, *arguments]


def environment() -> dict[str, str]:
    """Ours without settings of a surrounding project; a hash seed of its own for each process."""
    dropped = ("DAGSTER_HOME", "STEPTP_DATA", "STEPTP_PROFILE", "PYTHONHASHSEED")
    return {k: v for k, v in os.environ.items() if k not in dropped}


def steptp(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *arguments),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def build(folder: Path, workers: int) -> dict[str, Any]:
    done = steptp(folder, "build", "--profile", "small.yaml", "--workers", str(workers), "--json")
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project built with one worker, at once."""
    folder = tmp_path_factory.mktemp("one")
    build(folder, 1)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project built with two workers, killed in the middle of the verdicts, and resumed."""
    folder = tmp_path_factory.mktemp("two")
    running = subprocess.Popen(
        command(folder, "build", "--profile", "small.yaml", "--workers", "2"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + LIMIT
    verdicts = folder / "data" / "stages" / "verdicts"
    while not list(verdicts.glob("*/*.parquet")) and time.monotonic() < deadline:
        assert running.poll() is None, "the build ended before it could be killed"
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert not (folder / "data" / "steptp.duckdb").exists()
    summary = build(folder, 2)
    assert "sources" not in summary["computed"]
    assert "steps" not in summary["computed"]
    return folder


def parquet(folder: Path) -> dict[str, bytes]:
    """Bytes of all finished stage files that must not differ, and of all exports."""
    data = folder / "data"
    stages = [
        path
        for path in data.glob("stages/*/*/*.parquet")
        if not path.relative_to(data / "stages")
        .parts[0]
        .startswith(("lineage-", "timings-", "runs"))
    ]
    exported = [path for path in (data / "export").rglob("*") if path.is_file()]
    return {str(p.relative_to(data)): p.read_bytes() for p in sorted([*stages, *exported])}


def test_worker_count_kill_and_resume_change_no_byte(one: Path, two: Path) -> None:
    a, b = parquet(one), parquet(two)
    assert a.keys() == b.keys()
    assert {name for name in a if a[name] != b[name]} == set()
    assert {f"export/tables/{name}.parquet" for name in STABLE} <= a.keys()
    assert not list((two / "data").rglob("batch-*"))


def test_a_second_build_does_nothing(one: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (one / "data").rglob("*.*")}
    assert build(one, 1)["computed"] == {}
    assert before == {path: path.stat().st_mtime_ns for path in (one / "data").rglob("*.*")}


def test_every_step_is_verified_and_every_record_is_an_accepted_one(one: Path) -> None:
    tables = one / "data" / "export" / "tables"
    steps = pl.read_parquet(tables / "transformed_steps.parquet")
    verdicts = pl.read_parquet(tables / "gpu_verification.parquet")
    records = pl.read_parquet(tables / "filtered_dataset.parquet")
    assert steps.height >= 10
    assert set(records["task"]) == {"single", "multi", "trajectory", "negative"}
    capped = pl.read_parquet(tables / "balance.parquet").filter(pl.col("dimension") == "strategy")
    assert capped["before"].sum() > capped["after"].sum()
    assert set(steps["step_id"]) == set(verdicts["step_id"])
    shown = records.explode("step_ids").join(verdicts, left_on="step_ids", right_on="step_id")
    assert shown["equal_pass"].all()
    assert set(steps["step_depth"]) == {0, 1}
    assert steps["mismatches"].list.len().sum() == 0


@pytest.mark.parametrize(
    ("task", "whole"),
    [
        ("single", "evidence"),
        ("multi", "evidence"),
        ("trajectory", "trajectory"),
        ("negative", "wrong candidate"),
    ],
)
def test_a_record_is_replayed_from_its_source(one: Path, task: str, whole: str) -> None:
    """Every step that leads to its answers is taken and judged again, also those before them."""
    records = pl.read_parquet(one / "data" / "export" / "tables" / "filtered_dataset.parquet")
    steps = pl.read_parquet(one / "data" / "export" / "tables" / "transformed_steps.parquet")
    chosen = records.filter(pl.col("task") == task).sort("record_id").row(0, named=True)
    answers = chosen["step_ids"] if task == "multi" else chosen["step_ids"][-1:]
    depths = dict(steps.select("step_id", "step_depth").rows())
    done = steptp(one, "replay", chosen["record_id"], "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["what"] for row in rows][:2] == ["code", "translation"]
    assert rows[-1]["what"].startswith(whole)
    for what in ("step", "reasoning", "verdict"):
        made = [row for row in rows if row["what"].startswith(f"{what} ")]
        assert len(made) == sum(depths[name] + 1 for name in answers)
    assert {row["same"] for row in rows} == {"yes"}
    if task == "multi":
        assert len(set(chosen["step_ids"])) == len(chosen["step_ids"]) >= 2


def test_lineage_leads_to_the_run(one: Path) -> None:
    query = "select count(distinct step_run), count(*) from record_lineage"
    done = steptp(one, "sql", query, "--csv")
    runs, rows = done.stdout.splitlines()[1].split(",")
    assert runs == "1"
    assert int(rows) > 0


def test_the_run_is_in_the_project_s_dagster_home(one: Path) -> None:
    assert (one / ".dagster" / "history").is_dir()


def test_an_unknown_program_fails_in_words(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(PROFILE.replace("softmax", "Softmin"))
    done = steptp(tmp_path, "build", "--profile", "bad.yaml", "--workers", "1")
    assert done.returncode == 1
    assert "no source program 'Softmin'; `steptp sources` lists them" in done.stderr
    assert "Traceback" not in done.stderr
