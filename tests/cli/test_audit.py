"""``steptp audit`` and ``steptp lineage`` on a small folder whose ids are real."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from click.testing import CliRunner, Result

from steptp_dagster import paths
from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset.store import Store
from tests.support.small_build import RUN_ID, build

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    build(folder)
    return folder


@pytest.fixture
def run(data: Path) -> Run:
    def call(command: str, *arguments: str) -> Result:
        return CliRunner().invoke(steptp, [command, "--data", str(data), *arguments])

    return call


def links(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["links"]
    return found


def one(run: Run, query: str) -> str:
    (row,) = json.loads(run("sql", query, "--json").stdout)
    return str(next(iter(row.values())))


CHAINED = (
    "select record_id from filtered_dataset join transformed_steps on step_id = step_ids[-1] "
    "where step_depth = 1 and program = 'softmax' and task = 'single' order by 1 limit 1"
)


def test_a_sound_folder(run: Run) -> None:
    result = run("audit")
    assert result.exit_code == 0
    assert "nothing is wrong" in result.stdout
    told = json.loads(run("audit", "--json", "--quick").stdout)
    assert told["sound"] and told["defects"] == []
    assert told["rows"]["runs"] == 1


def test_findings_are_a_table_and_an_exit_code(tmp_path: Path) -> None:
    build(tmp_path)
    path = Store(tmp_path / "stages").part("surveys", "GELU")
    path.write_bytes(path.read_bytes()[:-50])
    result = CliRunner().invoke(steptp, ["audit", "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert "unreadable-file  surveys/program=GELU/part.parquet" in result.stdout
    assert "makes it again" in result.stdout
    assert "do not publish" in result.stderr
    told = CliRunner().invoke(steptp, ["audit", "--data", str(tmp_path), "--json"])
    assert told.exit_code == 1
    kinds = {d["kind"] for d in json.loads(told.stdout)["defects"]}
    assert {"unreadable-file", "warehouse", "warehouse-rows"} <= kinds


def test_no_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(steptp, ["audit", "--data", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "`steptp build` makes it" in result.stderr


def test_the_chain_of_a_record_with_seeds_versions_and_runs(run: Run) -> None:
    record = one(run, CHAINED)
    chain = links(run("lineage", record, "--json"))
    assert [link["what"] for link in chain] == [
        "record",
        "verdict",
        "step",
        "verdict",
        "step",
        "translation",
        "source",
    ]
    assert {link["run_id"] for link in chain} == {RUN_ID}
    assert [link["asset"] for link in chain][::3] == [
        "filtered_dataset",
        "gpu_verification",
        "source_programs",
    ]
    assert chain[-1]["seed"] == 7
    assert "code " in chain[-1]["detail"]
    assert {link["partition"] for link in chain[1:]} == {"softmax"}
    assert "started_at" in run("lineage", record).stdout


def test_the_way_down(run: Run) -> None:
    program = links(run("lineage", "softmax", "--down", "--json"))
    whats = [link["what"] for link in program]
    assert whats[:2] == ["source", "translation"]
    steps = [link["id"] for link in program if link["what"] == "step"]
    assert len(steps) == 4
    assert whats.count("record") >= 4
    root = next(link["id"] for link in program if link["what"] == "translation")
    below = links(run("lineage", root, "--down", "--json"))
    assert [link["id"] for link in below if link["what"] == "step"] == steps
    parent = one(run, "select parent_step_id from transformed_steps where step_depth = 1 limit 1")
    assert len(links(run("lineage", parent, "--down", "--json"))) > 3


def test_the_way_down_from_a_version_of_a_strategy(run: Run) -> None:
    version = one(
        run, "select min(strategy_version) from transformed_steps where strategy = 'loop_split'"
    )
    made = links(run("lineage", f"loop_split@{version}", "--down", "--json"))
    assert made == links(run("lineage", "loop_split", "--down", "--json"))
    assert {"step", "verdict", "record"} == {link["what"] for link in made}
    assert links(run("lineage", "loop_split@0", "--down", "--json")) == []


def test_the_way_down_from_nowhere(run: Run) -> None:
    result = run("lineage", "nosuch", "--down")
    assert result.exit_code == 2
    assert "nor is it a program or a strategy" in result.stderr
    result = run("lineage", one(run, CHAINED), "--down")
    assert "is a record: lineage goes no further down from it" in result.stderr


def test_the_materialisation_is_found_in_dagster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.asset(name="filtered_dataset")
    def records() -> None: ...

    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    (home / "dagster.yaml").write_text(paths.SETTINGS)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        made = dg.materialize([records], instance=instance)
    build(data, run_id=made.run_id)
    arguments = ["--data", str(data), "--json"]
    record = one(
        lambda command, *rest: CliRunner().invoke(steptp, [command, *rest, *arguments[:2]]), CHAINED
    )
    chain = links(CliRunner().invoke(steptp, ["lineage", record, "--events", *arguments]))
    assert isinstance(chain[0]["event"], int)
    assert {link["event"] for link in chain[1:]} == {None}


def test_rows_of_no_run_say_so(tmp_path: Path) -> None:
    build(tmp_path)
    path = Store(tmp_path / "stages").part("lineage-steps", "softmax")
    pl.read_parquet(path, hive_partitioning=False).head(0).write_parquet(path)
    result = CliRunner().invoke(steptp, ["audit", "--data", str(tmp_path), "--json", "--quick"])
    kinds = {d["kind"] for d in json.loads(result.stdout)["defects"]}
    assert {"no-lineage", "records_have_lineage"} <= kinds
