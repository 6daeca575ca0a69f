import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from steptp_dagster.cli.main import COMMANDS, steptp
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.warehouse import load
from tests.support.prepared import prepare
from tests.support.rows import all_rows, key

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a warehouse of the rows by hand."""
    folder = tmp_path_factory.mktemp("data")
    loaded = load(
        prepare(folder / "stages", all_rows(wrong=2)),
        load_profile("tiny"),
        folder / "steptp.duckdb",
    )
    assert loaded.sound
    return folder


@pytest.fixture
def run(data: Path) -> Run:
    """Run ``steptp COMMAND --data DATA ARGUMENTS``."""

    def call(command: str, *arguments: str) -> Result:
        return CliRunner().invoke(steptp, [command, "--data", str(data), *arguments])

    return call


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_help_lists_all_commands() -> None:
    result = CliRunner().invoke(steptp, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name}" in result.output


def test_an_unknown_command_is_wrong_usage() -> None:
    result = CliRunner().invoke(steptp, ["compile"])
    assert result.exit_code == 2
    assert "No such command 'compile'" in result.output


def test_stats(run: Run) -> None:
    numbers = read(run("stats", "--json"))
    assert numbers["totals"]["steps"] == 18
    assert numbers["totals"]["accepted"] == 16
    assert numbers["pass_rate"] == pytest.approx(16 / 18)
    assert "pass rate 88.9 %" in run("stats").output


def test_stats_broken_down(run: Run) -> None:
    rows = {row["strategy"]: row for row in read(run("stats", "--by", "strategy", "--json"))}
    assert rows["loop_split"]["rejected"] == 2
    assert rows["compute_inline"]["accepted"] == 9
    lines = run("stats", "--by", "strategy").output.splitlines()
    assert lines[0].split()[:2] == ["strategy", "sites"]
    assert lines[1].split()[0] == "compute_inline"


def test_stats_of_the_balance(run: Run) -> None:
    rows = read(run("stats", "--balance", "--json"))
    (single,) = (r for r in rows if (r["task"], r["dimension"]) == ("single", "strategy"))
    assert (single["before"], single["after"], single["dropped"]) == (15, 15, {})
    assert single["entropy_after"] == pytest.approx(0.970951)
    parts = read(run("stats", "--balance", "--by", "strategy", "--json"))
    assert {r["name"]: r["after"] for r in parts if r["task"] == "single"} == {
        "loop_split": 6,
        "compute_inline": 9,
    }
    assert "bits after" in run("stats", "--balance").stdout
    assert run("stats", "--balance", "--by", "split").exit_code == 2


def test_sql(run: Run) -> None:
    query = "select program, count(*) as n from step_overview group by program order by program"
    assert read(run("sql", query, "--json")) == [
        {"program": "GELU", "n": 6},
        {"program": "Matmul3D", "n": 6},
        {"program": "softmax", "n": 6},
    ]
    assert run("sql", query, "--csv").output == "program,n\nGELU,6\nMatmul3D,6\nsoftmax,6\n"
    assert run("sql", query).output.splitlines()[0] == "program   n"


def test_sql_errors_are_words(run: Run) -> None:
    result = run("sql", "select * from nothing")
    assert result.exit_code == 2
    assert result.stderr.startswith("steptp: Catalog Error: Table with name nothing")
    assert "Traceback" not in result.output


def test_sql_cannot_write(run: Run) -> None:
    result = run("sql", "drop table zoo")
    assert result.exit_code == 2
    assert "read-only" in result.stderr


def test_a_missing_warehouse_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(steptp, ["stats", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "run `steptp build` first" in result.stderr


@pytest.mark.parametrize(
    ("noun", "name"),
    [
        ("step", key("step", "softmax/compute_inline/0")),
        ("program", key("leir", "softmax")),
        ("source", key("source", "softmax", "f32")),
    ],
)
def test_show_by_the_start_of_an_id(run: Run, noun: str, name: str) -> None:
    shown = read(run("show", name[:12], "--json"))
    assert shown["noun"] == noun
    assert name in shown.values()
    assert f"{noun} {name}" in run("show", name).output


def test_show_a_record(run: Run) -> None:
    (row,) = read(run("sql", "select record_id from filtered_dataset limit 1", "--json"))
    text = run("show", row["record_id"]).output
    assert "--- assistant ---\n<think>" in text


def test_show_a_step_with_both_programs_and_verdict(run: Run) -> None:
    shown = read(run("show", key("step", "Matmul3D/loop_split/0"), "--json"))
    assert shown["before"]["leir_id"] == key("leir", "Matmul3D")
    assert shown["after"]["leir_id"] == key("leir", "Matmul3D/loop_split/0")
    assert [v["reason"] for v in shown["verdicts"]] == ["values-differ"]


def test_show_in_the_compact_spelling(run: Run) -> None:
    identity = key("step", "Matmul3D/loop_split/0")
    shown = read(run("show", identity, "--spelling", "compact", "--json"))
    assert shown["before"]["text"] == "f32;Btx4D[tx]=A[tx]+1.0"
    assert "Btx4D[tx]" in run("show", identity, "--spelling", "compact").output


def test_show_a_trajectory_with_its_steps_reasoning_and_verdicts(run: Run) -> None:
    first, last = (key("step", f"softmax/loop_split/{n}") for n in (0, 2))
    name = key("trajectory", last)
    shown = read(run("show", name, "--json"))
    assert shown["noun"] == "trajectory"
    assert [step["step_id"] for step in shown["chain"]] == [first, last]
    assert shown["before"]["leir_id"] == key("leir", "softmax")
    text = run("show", name.upper()).output
    assert text.startswith(f"trajectory {name}: 2 steps from softmax (f32, composed), source ")
    assert "verdict on the first and the last program: llvm: exact\n" in text
    for number, step in enumerate(("softmax/loop_split/0", "softmax/loop_split/2"), 1):
        assert f"--- step {number}: {key('step', step)}: loop_split at statement 1 with" in text
        assert f"The loop tx of {step} has extent 4.\nverdict: llvm: exact\n" in text
        assert f"result {key('leir', step)}:\nB^{{4}}_{{tx=0}}[" in text


def test_show_a_negative_with_its_mistake_and_why_it_is_rejected(run: Run) -> None:
    step = key("step", "softmax/loop_split/1")
    name = key("negative", step)
    shown = read(run("show", name[:10], "--json"))
    assert (shown["noun"], shown["negative_id"]) == ("negative", name)
    assert shown["right"]["step_id"] == step
    assert shown["before"]["leir_id"] == key("leir", "softmax")
    text = run("show", name).output
    assert f"negative {name}: operator-changed in a result of loop_split, softmax" in text
    assert "mistake: statement 1.1 has `-` in place of `+`\n" in text
    assert "verdict: llvm: rejected (different-mathematics)\n" in text
    assert "inputs normal: different-mathematics, difference 0.25\n" in text
    for part in ("before: ", "candidate", "the right step: ", "its reasoning"):
        assert f"\n--- {part}" in text
    short = run("show", name, "--spelling", "compact").output
    assert "--- candidate ---\nf32;Btx4D[tx]=A[tx]-1.0\n" in short


def test_a_record_says_what_it_is_made_of(run: Run) -> None:
    for task in ("trajectory", "negative"):
        query = f"select record_id, {task}_id as made from filtered_dataset where task = '{task}'"
        row = read(run("sql", f"{query} order by all limit 1", "--json"))[0]
        text = run("show", row["record_id"]).output
        assert f"record {row['record_id']}: {task}, " in text
        assert f"\n{task}: {row['made']}\nsteps: " in text


@pytest.mark.parametrize("noun", ["trajectory", "negative"])
def test_lineage_of_what_is_made_of_steps(run: Run, noun: str) -> None:
    number = {"trajectory": 2, "negative": 1}[noun]
    step = key("step", f"softmax/loop_split/{number}")
    chain = read(run("lineage", key(noun, step), "--json"))["links"]
    assert [(link["what"], link["id"]) for link in chain[:3]] == [
        (noun, key(noun, step)),
        ("verdict", step),
        ("step", step),
    ]
    assert chain[-1]["what"] == "source"
    down = run("lineage", key(noun, step), "--down")
    assert down.exit_code == 2
    assert f"is a {noun}: lineage goes no further down" in down.stderr


@pytest.mark.parametrize("task", ["single", "multi", "trajectory", "negative"])
def test_lineage_of_a_record_names_all_that_it_is_made_of(run: Run, task: str) -> None:
    query = f"select * from filtered_dataset where task = '{task}' order by len(step_ids) desc"
    record = read(run("sql", f"{query}, record_id limit 1", "--json"))[0]
    chain = read(run("lineage", record["record_id"], "--json"))["links"]
    told = [(link["what"], link["id"]) for link in chain]
    assert len(told) == len(set(told))
    assert told[0] == ("record", record["record_id"])
    if task in ("trajectory", "negative"):
        assert told[1] == (task, record[f"{task}_id"])
    steps = [name for what, name in told if what == "step"]
    assert set(record["step_ids"]) <= set(steps)
    assert [name for what, name in told if what == "verdict"] == steps
    assert [what for what, _ in told].count("source") == 1
    assert told[-1] == ("source", record["source_id"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("abc", "'abc' is no id: give at least 4"),
        ("xyzxyz", "'xyzxyz' is no id"),
        ("0" * 32, "no record, step, trajectory, negative, program or source has an id"),
    ],
)
def test_show_refuses_in_words(run: Run, name: str, message: str) -> None:
    result = run("show", name)
    assert result.exit_code == 2
    assert message in result.stderr


def test_lineage_leads_from_a_chained_step_to_its_source(run: Run) -> None:
    chain = read(run("lineage", key("step", "softmax/compute_inline/2"), "--json"))["links"]
    assert [(link["what"], link["id"]) for link in chain] == [
        ("verdict", key("step", "softmax/compute_inline/2")),
        ("step", key("step", "softmax/compute_inline/2")),
        ("verdict", key("step", "softmax/compute_inline/0")),
        ("step", key("step", "softmax/compute_inline/0")),
        ("translation", key("leir", "softmax")),
        ("source", key("source", "softmax", "f32")),
    ]
    assert {link["run_id"] for link in chain} == {"run-1"}


def test_lineage_of_a_result_names_the_step_that_made_it(run: Run) -> None:
    chain = read(run("lineage", key("leir", "softmax/compute_inline/1"), "--json"))["links"]
    assert [link["what"] for link in chain] == [
        "program",
        "verdict",
        "step",
        "translation",
        "source",
    ]


def test_export_to_a_folder(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out"
    first = read(run("export", "--to", str(target), "--json"))
    assert first["written"]
    assert (target / "train.jsonl").exists()
    assert not read(run("export", "--to", str(target), "--json"))["written"]


def test_export_does_not_replace_other_things(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    result = run("export", "--to", str(tmp_path))
    assert result.exit_code == 2
    assert "has other things in it" in result.stderr
    assert (tmp_path / "thesis.tex").exists()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: 1 << 17])


def other(file: Path) -> None:
    file.unlink()
    with duckdb.connect(str(file)) as connection:
        connection.execute("create table statistics as select 1 as metric")


@pytest.mark.parametrize("spoil", [cut, other])
@pytest.mark.parametrize("command", [["stats"], ["sql", "from filtered_dataset"], ["report"]])
def test_a_spoilt_warehouse_is_said(
    data: Path, tmp_path: Path, command: list[str], spoil: Callable[[Path], None]
) -> None:
    shutil.copy(data / "steptp.duckdb", tmp_path)
    spoil(tmp_path / "steptp.duckdb")
    result = CliRunner().invoke(steptp, [*command, "--data", str(tmp_path)])
    assert result.exit_code == 2, result.output
    assert "remove it: `steptp build` makes it again" in result.stderr
    compared = CliRunner().invoke(steptp, ["diff", str(tmp_path), str(data)])
    assert compared.exit_code == 2, compared.output


def test_an_export_that_cannot_be_written_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run("export", "--to", str(tmp_path / "file"))
    assert (result.exit_code, result.stderr) == (
        2,
        f"steptp: {tmp_path / 'file'} is a file; name an empty or a new folder\n",
    )
    for command in ("export", "report"):
        result = run(command, "--to", str(tmp_path / "file" / "below"))
        assert result.exit_code == 1
        assert "below is not written: Not a directory; make room, change the" in result.stderr


@pytest.mark.parametrize(
    "command", [["stats"], ["audit"], ["export", "--to", "x"], ["build", "--profile", "tiny"]]
)
def test_an_empty_name_is_no_folder(command: list[str]) -> None:
    """As of a variable that is not set; it would be the current folder."""
    result = CliRunner().invoke(steptp, [*command, "--data", ""])
    assert result.exit_code == 2
    assert "the name is empty; leave the option out, or name a folder" in result.stderr


def test_replay_wants_what_is_made_of_steps(run: Run) -> None:
    name = key("source", "softmax", "f32")
    result = run("replay", name)
    assert result.exit_code == 2
    assert f"{name} is a source: what is made of steps is replayed" in result.stderr


def test_a_bad_profile_is_said() -> None:
    result = CliRunner().invoke(steptp, ["build", "--profile", "huge"])
    assert result.exit_code == 2
    known = "cpu, default, full, tiny"
    assert result.stderr == f"steptp: no profile 'huge'; there are {known}, or give a .yaml\n"


def test_a_defect_is_a_message_and_not_a_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("steptp_dagster.cli.show.find", broken)
    result = run("show", "0" * 32)
    assert result.exit_code == 70
    assert "internal error, please report it: ZeroDivisionError: boom" in result.stderr


def test_the_questions_in_the_documentation_have_answers(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs" / "dataset.md").read_text(encoding="utf-8")
    block = re.search(r"```sql\n(.*?)```", page, re.DOTALL)
    assert block is not None
    questions = [q for q in block[1].split(";") if q.strip()]
    assert len(questions) > 4
    for question in questions:
        assert isinstance(read(run("sql", question.strip(), "--json")), list)
