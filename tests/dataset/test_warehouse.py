import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset import exports, warehouse
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.integrity import CHECKS, integrity
from steptp_dagster.dataset.schemas import EXCLUSIONS, FILTERED_DATASET, STATISTICS, Row, frame
from steptp_dagster.dataset.selection import Filtered, filtered
from steptp_dagster.dataset.statistics import by, statistics, total
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.warehouse import NoWarehouse, connect, load
from tests.support.prepared import prepare
from tests.support.rows import all_rows, frames, key, tables

TINY = load_profile("tiny")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stage files and a warehouse of the rows by hand, without a defect; not to be changed."""
    folder = tmp_path_factory.mktemp("sound")
    assert load(prepare(folder / "stages", all_rows()), TINY, folder / "w.duckdb").sound
    return folder


def broken(findings: tuple[object, ...]) -> set[str]:
    return {f.check for f in findings if not f.holds}  # type: ignore[attr-defined]


def test_a_sound_data_set_is_loaded_once(tmp_path: Path) -> None:
    store, path = prepare(tmp_path, all_rows()), tmp_path / "w.duckdb"
    first = load(store, TINY, path)
    assert broken(first.findings) == set()
    assert first.built
    assert first.rows["transformed_steps"] == 18
    assert first.rows["filtered_dataset"] == 18 + 3 + 3 + 3
    os.utime(path, (1, 1))
    again = load(store, TINY, path)
    assert not again.built
    assert again.rows == first.rows
    assert path.stat().st_mtime == 1


def test_only_named_tables_differ_from_build_to_build(tmp_path: Path) -> None:
    for name, run in (("a", "run-1"), ("b", "run-2")):
        store = prepare(tmp_path / name, all_rows())
        lineage = store.part("lineage-records", "all")
        rows = pl.read_parquet(lineage, hive_partitioning=False)
        rows.with_columns(run_id=pl.lit(run)).write_parquet(lineage)
        assert load(store, TINY, tmp_path / f"{name}.duckdb").sound
    with duckdb.connect() as both:
        for name in "ab":
            both.execute(f"attach '{tmp_path / name}.duckdb' as {name} (read_only)")
        listed = "select table_name from duckdb_tables() where database_name = 'a' order by 1"
        differing = {
            name
            for (name,) in both.execute(listed).fetchall()
            if both.execute(
                f"(from a.{name} except all from b.{name})"
                f" union all (from b.{name} except all from a.{name})"
            ).fetchall()
        }
    assert differing == {"lineage", "loaded"}


def test_every_check_is_run(sound: Path) -> None:
    findings = load(Store(sound / "stages"), TINY, sound / "w.duckdb").findings
    assert [f.check for f in findings] == list(CHECKS)


def defect(name: str) -> tuple[dict[str, list[Row]], Filtered | None]:
    """Rows with one thing wrong."""
    rows = all_rows()
    profile = load_profile("tiny")
    made = filtered(tables(rows), profile)
    match name:
        case "references":
            rows["leir_programs"].pop()
        case "no_wrong_pair":
            rows["gpu_verification"][0].update(equal_pass=False, equality="rejected")
        case "splits_disjoint":
            other = next(r for r in made.rows if r["split"] != "train")
            other["split"] = "train"
        case "records_have_lineage":
            rows["source_programs"][0]["source_id"] = key("lost")
        case "grounding":
            rows["transformed_steps"][4]["mismatches"] = ["a claim"]
        case "no_near_copy":
            made.leakage[0].update(nearest="Matmul3D", likeness=0.9, near=True)
        case "trajectories":
            rows["trajectories"][0]["step_ids"].reverse()
        case "negatives_rejected":
            rows["negatives"][0].update(equal_pass=True, equality="exact", reason=None)
        case "zoo":
            rows["zoo"][0]["accepted"] = True
        case "ids_unique":
            rows["gpu_verification"].append(
                {**rows["gpu_verification"][0], "unit": key("another unit")}
            )
    return rows, made


@pytest.mark.parametrize("beside", [None, {"target": "llvm", "equality": "built"}])
def test_another_target_alone_makes_no_step_right(
    tmp_path: Path, beside: dict[str, str] | None
) -> None:
    rows = all_rows()
    made = filtered(tables(rows), load_profile("tiny"))
    verdict = rows["gpu_verification"][0]
    if beside is not None:
        more = {**verdict, **beside, "equal_pass": None, "unit": key("another unit")}
        rows["gpu_verification"].append(more)
    verdict["target"] = "cuda:sm_90"
    loaded = load(prepare(tmp_path / "bad", rows, made), TINY, tmp_path / "w.duckdb")
    assert "no_wrong_pair" in broken(loaded.findings)


@pytest.mark.parametrize("name", CHECKS)
def test_a_defect_is_found_and_keeps_the_old_file(sound: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "w.duckdb"
    shutil.copy(sound / "w.duckdb", path)
    before = path.read_bytes()
    rows, made = defect(name)
    loaded = load(prepare(tmp_path / "bad", rows, made), TINY, path)
    assert name in broken(loaded.findings)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad", "w.duckdb"]


def test_an_open_reader_does_not_block_the_loader(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(prepare(tmp_path / "a", all_rows()), TINY, path)
    with connect(path) as reader:
        load(prepare(tmp_path / "b", all_rows(wrong=1)), TINY, path)
        row = reader.execute("select count(*) from gpu_verification where equal_pass").fetchone()
    assert row == (18,)
    with connect(path) as reader:
        row = reader.execute("select count(*) from gpu_verification where equal_pass").fetchone()
    assert row == (17,)


def test_sql_and_duckdb_answer_while_a_build_loads(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "steptp.duckdb"
    shutil.copy(sound / "w.duckdb", path)
    query = "select count(*) as n from filtered_dataset"
    code = (
        "import duckdb, sys\n"
        "reader = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print(reader.sql(sys.argv[2]).fetchall())"
    )
    answers = []

    def checked(connection: duckdb.DuckDBPyConnection) -> object:
        # The loader holds its new file open for writing here.
        arguments = ["sql", query, "--json", "--data", str(tmp_path)]
        answers.append(json.loads(CliRunner().invoke(steptp, arguments).stdout))
        alone = [sys.executable, "-c", code, str(path), query]
        answers.append(subprocess.run(alone, capture_output=True, text=True, check=True).stdout)
        return integrity(connection)

    monkeypatch.setattr(warehouse, "integrity", checked)
    assert load(Store(sound / "stages"), replace(TINY, seed=8), path).built
    assert answers == [[{"n": 27}], "[(27,)]\n"]


def test_readers_cannot_write(sound: Path) -> None:
    with connect(sound / "w.duckdb") as reader, pytest.raises(duckdb.Error, match="read-only"):
        reader.execute("delete from zoo")


def test_no_warehouse_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoWarehouse, match="run `steptp build` first"), connect(tmp_path / "w"):
        pass


def test_views_answer_without_joins(sound: Path) -> None:
    with connect(sound / "w.duckdb") as reader:
        runs = reader.execute("select distinct step_run from record_lineage").fetchall()
        refused = reader.execute("select sum(count) from refusals").fetchone()
        steps = reader.execute("select count(*) from step_overview").fetchone()
    assert runs == [("run-1",)]
    assert refused == (12,)
    assert steps == (18,)


def test_statistics_count_what_is_there() -> None:
    rows = all_rows(wrong=2)
    made = filtered(tables(rows), load_profile("tiny"))
    records = frame(FILTERED_DATASET, [{**row, "unit": key("unit")} for row in made.rows])
    gone = frame(EXCLUSIONS, made.exclusions)
    counted = statistics(tables(rows), frames(rows)["surveys"], records, gone)
    assert STATISTICS.validate(counted, lazy=True).height == counted.height
    assert {m: total(counted, m) for m in ("sources", "sites", "refused", "steps")} == {
        "sources": 3,
        "sites": 30,
        "refused": 12,
        "steps": 18,
    }
    assert total(counted, "accepted") + total(counted, "rejected") == total(counted, "verified")
    assert by(counted, "rejected", "reason") == {"values-differ": 2}
    assert by(counted, "excluded", "reason") == {"earlier-step-excluded": 1, "rejected": 2}
    assert total(counted, "records") == 15 + 2 + 2 + 2


def test_exports_are_complete_and_equal_for_equal_tables(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.duckdb"
        load(prepare(tmp_path / name, all_rows()), TINY, path)
        with connect(path) as reader:
            folder, written = exports.export_all(reader, tmp_path / f"export-{name}")
            assert written
            assert exports.export_all(reader, folder) == (folder, False)
        made.append(exports.files(folder))
    assert made[0] == made[1]
    assert {"README.md", "train.jsonl", "data/train-00000-of-00001.parquet"} < made[0].keys()
    # A split without records has no file.
    lines = [pl.read_ndjson(path).height for path in folder.glob("*.jsonl")]
    assert sum(lines) == 18 + 3 + 3 + 3
    assert exports.damaged(folder) == []
    (folder / "train.jsonl").write_text("")
    assert exports.damaged(folder) == ["train.jsonl"]
    (folder / "README.md").unlink()
    with connect(tmp_path / "b.duckdb") as connection:
        assert exports.export_all(connection, folder) == (folder, True)
        assert exports.damaged(folder) == []
        assert exports.export_all(connection, folder) == (folder, False)


def test_the_card_names_every_file_that_it_lies_beside(sound: Path, tmp_path: Path) -> None:
    with connect(sound / "w.duckdb") as reader:
        folder, _ = exports.export_all(reader, tmp_path / "export")
    text = (folder / "README.md").read_text()
    assert "Profile `tiny`, seed 7" in text
    named = {
        path.relative_to(folder).as_posix()
        for line in text.splitlines()
        if line.startswith("- `")
        for word in line.split(": ")[0].split("`")[1::2]
        for path in folder.glob(word)
    }
    assert named == {*exports.files(folder), "manifest.json"} - {"README.md"}


def test_a_file_that_somebody_writes_is_said_and_replaced_all_the_same(tmp_path: Path) -> None:
    """Nobody waits for the lock: a reader is told who has it, a build puts a new file there."""
    store, path = prepare(tmp_path / "stages", all_rows()), tmp_path / "steptp.duckdb"
    profile = load_profile("tiny")
    load(store, profile, path)
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        with (
            pytest.raises(NoWarehouse, match=f"open for writing .*PID {writer.pid}"),
            connect(path),
        ):
            pass
        assert load(store, profile, path).built
        with connect(path) as connection:
            assert warehouse.counts(connection)["filtered_dataset"] > 0
        writer.communicate("\n")
