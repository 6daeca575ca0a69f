"""A clean build gives no finding; each planted corruption is found and named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from steptp_dagster.dataset import store
from steptp_dagster.dataset.audit import made
from steptp_dagster.dataset.audit.defects import KINDS, Defect, first_of
from steptp_dagster.dataset.audit.stage_files import folders
from steptp_dagster.dataset.audit.whole import audit
from steptp_dagster.dataset.exports import export_all, files
from steptp_dagster.dataset.file_digests import file_digest
from steptp_dagster.dataset.ids import record_id
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.parts import STEPS
from steptp_dagster.dataset.respelling import NotLeir
from steptp_dagster.dataset.seals import Seals
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.warehouse import connect
from tests.support.small_build import build, profile

PROGRAM = "softmax"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("clean")
    build(data)
    return data


def test_a_clean_build_has_no_defect(clean: Path) -> None:
    found = audit(clean)
    assert found.defects == ()
    assert found.sound
    assert found.rows["transformed_steps"] >= 6
    assert found.rows["filtered_dataset"] >= 3
    assert found.rows["runs"] == 1


def rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    change(pl.read_parquet(path, hive_partitioning=False)).write_parquet(path)


def part(data: Path, folder: str, program: str = PROGRAM) -> Path:
    return Store(data / "stages").part(folder, program)


def first_row(data: Path, folder: str, program: str = PROGRAM, **values: object) -> None:
    """Set columns of a file's first row."""

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        first = pl.int_range(pl.len()) == 0
        return rows.with_columns(
            pl.when(first).then(pl.lit(v, dtype=rows.schema[c])).otherwise(pl.col(c)).alias(c)
            for c, v in values.items()
        )

    rewrite(part(data, folder, program), change)


def drop_rows(data: Path, folder: str, program: str = PROGRAM) -> None:
    rewrite(part(data, folder, program), lambda rows: rows.head(0))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def other_text(data: Path) -> None:
    rewrite(
        part(data, "step_programs"),
        lambda rows: rows.with_columns(pl.col("text").str.replace_all("exp", "sin")),
    )


def broken_text(data: Path) -> None:
    rewrite(
        part(data, "leir_programs"),
        lambda rows: rows.with_columns(pl.col("text").str.replace(";];", ";", literal=True)),
    )


def overlap(data: Path) -> None:
    """Records of a family in two splits."""
    other = pl.when(pl.col("split") == "train").then(pl.lit("test")).otherwise(pl.lit("train"))
    odd = pl.int_range(pl.len()) % 2 == 0
    rewrite(
        part(data, "filtered_dataset", "all"),
        lambda rows: rows.with_columns(split=pl.when(odd).then(other).otherwise(pl.col("split"))),
    )


def older_verifier(data: Path) -> None:
    rewrite(
        part(data, "lineage-verdicts"),
        lambda rows: rows.with_columns(code_version=pl.lit("0" * 32)),
    )


def unknown_run(data: Path) -> None:
    for path in (data / "stages" / "runs").rglob("part.parquet"):
        path.unlink()


def edited_answer(data: Path) -> None:
    def change(rows: pl.DataFrame) -> pl.DataFrame:
        content = pl.element().struct.field("content").str.replace_all("loop_split", "loop_fusion")
        role = pl.element().struct.field("role")
        messages = pl.col("messages").list.eval(pl.struct(role, content.alias("content")))
        return rows.with_columns(messages)

    rewrite(part(data, "filtered_dataset", "all"), change)


def rejected_but_recorded(data: Path) -> None:
    rejected = {"equal_pass": False, "equality": "rejected", "reason": "values-differ"}
    for folder in ("verdicts", "gpu_verification"):
        first_row(data, folder, **rejected)


def foreign_row_in_warehouse(data: Path) -> None:
    with duckdb.connect(str(data / "steptp.duckdb")) as connection:
        connection.execute(
            "delete from filtered_dataset where record_id = "
            "(select min(record_id) from filtered_dataset)"
        )


def edited_export(data: Path) -> None:
    with (data / "export" / "train.jsonl").open("a", encoding="utf-8") as out:
        out.write("{}\n")


def records(data: Path, *changes: pl.Expr) -> None:
    rewrite(part(data, "filtered_dataset", "all"), lambda rows: rows.with_columns(*changes))


def family_moved(data: Path) -> None:
    """To another split, with all its records: no two splits share anything."""
    other = pl.when(pl.col("split") == "train").then(pl.lit("test")).otherwise(pl.lit("train"))
    records(
        data, pl.when(pl.col("program") == PROGRAM).then(other).otherwise("split").alias("split")
    )


def prompt_edited(data: Path) -> None:
    """And the record renamed accordingly."""

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        found = rows.to_dicts()
        found[0]["messages"][0]["content"] += " Answer yes."
        contents = [message["content"] for message in found[0]["messages"]]
        found[0]["record_id"] = record_id(found[0]["step_ids"], found[0]["task"], contents)
        return pl.DataFrame(found, schema=rows.schema)

    rewrite(part(data, "filtered_dataset", "all"), change)


def record_dropped(data: Path) -> None:
    rewrite(part(data, "filtered_dataset", "all"), lambda rows: rows.tail(-1))


def figure_edited(data: Path) -> None:
    rewrite(
        part(data, "statistics", "all"),
        lambda rows: rows.with_columns(pl.col("value") + 1),
    )


def evidence_edited(data: Path) -> None:
    """In both tables of verdicts alike."""
    numeric = '{"families":[{"exact":false,"failure":null,"family":"ties"}]}'
    for folder in ("verdicts", "gpu_verification"):
        first_row(data, folder, numeric=numeric)


def in_warehouse(query: str) -> Callable[[Path], object]:
    def change(data: Path) -> None:
        with duckdb.connect(str(data / "steptp.duckdb")) as connection:
            connection.execute(query)

    return change


def export_and_manifest_edited(data: Path) -> None:
    """The digests of the manifest fit."""
    folder = data / "export"
    line = (folder / "train.jsonl").read_text(encoding="utf-8")
    (folder / "train.jsonl").write_text(line.replace("loop_split", "loop_fusion"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = files(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def shard_added(data: Path) -> None:
    """``datasets`` would load it with the others."""
    shards = data / "export" / "data"
    first = next(shards.glob("train-*.parquet"))
    shutil.copy(first, shards / "train-00001-of-00002.parquet")


#: What is done to a clean folder -> kind that must be found, part of what it says.
CORRUPTIONS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "cut file": (lambda d: cut(part(d, "surveys")), "unreadable-file", "surveys/program=softmax"),
    "empty file": (
        lambda d: part(d, "translations").write_bytes(b""),
        "unreadable-file",
        "translations",
    ),
    "lost file": (
        lambda d: part(d, "timings-leir", "GELU").unlink(),
        "missing-file",
        "timings-leir",
    ),
    "lost column": (
        lambda d: rewrite(part(d, "surveys"), lambda rows: rows.drop("sites")),
        "other-columns",
        "sites",
    ),
    "value out of range": (
        lambda d: first_row(d, "surveys", "GELU", sites=-1),
        "schema",
        "sites: ",
    ),
    "source edited": (lambda d: first_row(d, "source_programs", seed=99), "wrong-id", "source_id"),
    "program edited": (other_text, "wrong-id", "leir_id"),
    "program does not parse": (broken_text, "unparsable", "leir_programs"),
    "measure edited": (lambda d: first_row(d, "leir_programs", flops=1), "wrong-measure", "flops"),
    "site edited": (lambda d: first_row(d, "transformed_steps", site="[5]"), "wrong-id", "step_id"),
    "no JSON": (
        lambda d: first_row(d, "transformed_steps", parameters="{"),
        "unparsable",
        "parameters",
    ),
    "unknown strategy": (
        lambda d: first_row(d, "transformed_steps", strategy="loop_magic"),
        "unknown-strategy",
        "loop_magic",
    ),
    "strategy of another version": (
        lambda d: first_row(d, "transformed_steps", strategy_version="0"),
        "outdated-strategy",
        "0, today",
    ),
    "survey of another program": (
        lambda d: first_row(d, "surveys", parent_leir_id="0" * 32),
        "wrong-id",
        "survey_id",
    ),
    "older verifier": (older_verifier, "outdated", "gpu_verification"),
    "verdict by hand": (
        lambda d: first_row(d, "gpu_verification", bitwise=False),
        "disagreement",
        "verdicts",
    ),
    "rejected and recorded": (rejected_but_recorded, "no_wrong_pair", "record_id"),
    "verdicts lost": (lambda d: drop_rows(d, "gpu_verification"), "no_wrong_pair", "record_id"),
    "orphaned steps": (lambda d: drop_rows(d, "source_programs"), "references", "step -> source"),
    "parent lost": (
        lambda d: first_row(d, "transformed_steps", parent_step_id="0" * 32),
        "references",
        "earlier step",
    ),
    "splits overlap": (overlap, "splits_disjoint", "splits 2"),
    "ungrounded record": (
        lambda d: first_row(d, "transformed_steps", mismatches=["a claim"]),
        "grounding",
        "a claim",
    ),
    "rows without a run": (
        lambda d: drop_rows(d, "lineage-steps"),
        "no-lineage",
        "transformed_steps",
    ),
    "unknown run": (unknown_run, "no-run", "00000000-0000"),
    "answer edited": (edited_answer, "wrong-answer", "the answer has another"),
    "record of another task": (
        lambda d: first_row(d, "filtered_dataset", "all", step_ids=["0" * 32]),
        "wrong-id",
        "record_id",
    ),
    "wrong pair accepted": (lambda d: first_row(d, "zoo", "all", accepted=False), "zoo", "tiled"),
    "warehouse lost": (lambda d: (d / "steptp.duckdb").unlink(), "warehouse", "there is none"),
    "warehouse cut": (lambda d: cut(d / "steptp.duckdb"), "warehouse", "steptp.duckdb"),
    "warehouse row deleted": (foreign_row_in_warehouse, "warehouse-rows", "missing there"),
    "stage file changed after loading": (
        lambda d: first_row(d, "surveys", sites=77),
        "warehouse",
        "changed after it was loaded",
    ),
    "export edited": (edited_export, "export", "train.jsonl"),
    "export lost": (lambda d: (d / "export" / "test.jsonl").unlink(), "export", "test.jsonl"),
    "manifest lost": (
        lambda d: (d / "export" / "manifest.json").unlink(),
        "export",
        "not readable",
    ),
}


CORRUPTIONS |= {
    "family in another split": (family_moved, "not-derived", "the tables give another split"),
    "prompt edited": (prompt_edited, "not-derived", "the tables give no such record"),
    "token count edited": (
        lambda d: first_row(d, "filtered_dataset", "all", prompt_tokens=1),
        "not-derived",
        "prompt_tokens",
    ),
    "record dropped": (record_dropped, "not-derived", "missing: the tables give this record"),
    "figure edited": (figure_edited, "not-derived", "statistics not what the tables give"),
    "evidence edited": (evidence_edited, "disagreement", "exact, but not on ties"),
    "code edited": (
        lambda d: first_row(d, "source_programs", code="import os"),
        "wrong-id",
        "code_hash",
    ),
    "run of other rows": (
        in_warehouse("update lineage set run_id = 'x'"),
        "warehouse-rows",
        "lineage only there",
    ),
    "view replaced": (
        in_warehouse("create or replace view refusals as select 1 as a"),
        "warehouse-rows",
        "refusals another view",
    ),
    "export edited with its manifest": (
        export_and_manifest_edited,
        "export",
        "train.jsonl not what the warehouse gives",
    ),
    "shard added": (shard_added, "export", "train-00001-of-00002.parquet"),
}

#: Corruptions that do not hide one another.
TOGETHER = (
    "cut file",
    "lost file",
    "value out of range",
    "source edited",
    "program edited",
    "measure edited",
    "no JSON",
    "older verifier",
    "verdict by hand",
    "splits overlap",
    "ungrounded record",
    "unknown run",
    "answer edited",
    "wrong pair accepted",
    "warehouse row deleted",
    "view replaced",
    "record dropped",
    "evidence edited",
    "code edited",
    "export edited",
)
#: More of them.
TOGETHER_TOO = (
    "family in another split",
    "prompt edited",
    "figure edited",
    "run of other rows",
    "export edited with its manifest",
    "shard added",
)


@pytest.mark.parametrize("names", [TOGETHER, TOGETHER_TOO], ids=["many", "more"])
def test_many_corruptions_are_found_together(
    clean: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    for name in names:
        CORRUPTIONS[name][0](data)
    found = audit(data)
    missed = [
        name
        for name in names
        for _, kind, said in [CORRUPTIONS[name]]
        if not any(d.kind == kind and said in f"{d.where} {d.message}" for d in found.defects)
    ]
    assert missed == [], found.defects


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_found(clean: Path, tmp_path: Path, name: str) -> None:
    plant, kind, said = CORRUPTIONS[name]
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    plant(data)
    found = audit(data)
    assert not found.sound
    hits = [d for d in found.defects if d.kind == kind]
    assert any(said in f"{d.where} {d.message}" for d in hits), found.defects
    assert {d.kind for d in found.defects} <= KINDS.keys()


def test_a_build_that_was_stopped_is_no_defect(clean: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    finished = part(data, "verdicts")
    shutil.copy(finished, finished.with_name("batch-00001.parquet"))
    (data / "stages" / "notes").mkdir()
    (data / "stages" / "notes" / "program=x").mkdir()
    (data / "stages" / "notes" / "program=x" / "todo.txt").write_text("later")
    found = audit(data)
    assert found.sound
    assert [d.kind for d in found.defects] == ["unknown-file", "unfinished"]


def test_a_table_of_somebody_else_is_no_defect(clean: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    in_warehouse("create table mine as select 1 as a; create view its as from mine")(data)
    found = audit(data)
    assert found.sound
    assert [(d.kind, d.message) for d in found.defects] == [
        ("unknown-table", "mine"),
        ("unknown-table", "the view its"),
    ]


def test_a_sealed_file_that_was_changed_is_named(clean: Path, tmp_path: Path) -> None:
    """Also where what stands in it contradicts nothing."""
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    store = Store(data / "stages")
    Seals.of(store, profile()).update(STEPS, lambda: Report(0, 1, 0), PROGRAM)
    assert audit(data).defects == ()
    first_row(data, "transformed_steps", reasoning_text="Because.")
    found = [d for d in audit(data).defects if d.kind == "changed-file"]
    assert [d.where for d in found] == ["transformed_steps/program=softmax/part.parquet"]


def test_a_file_that_may_not_be_read_is_told_and_all_else_looked_at(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a sealed part, which is digested too; the rights of files do not bind every user."""
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    stages = Store(data / "stages")
    Seals.of(stages, profile()).update(STEPS, lambda: Report(0, 1, 0), PROGRAM)
    closed = part(data, "transformed_steps")
    drop_rows(data, "timings-steps")
    digest_of, rows_of = file_digest, pl.read_parquet

    def refused(plain: Callable[..., Any]) -> Callable[..., Any]:
        def asked(path: Path, *args: Any, **named: Any) -> Any:
            if path == closed:
                raise PermissionError(13, "Permission denied", str(path))
            return plain(path, *args, **named)

        return asked

    monkeypatch.setattr(store, "file_digest", refused(digest_of))
    monkeypatch.setattr(pl, "read_parquet", refused(rows_of))
    found = {(d.kind, d.where) for d in audit(data).defects}
    assert ("unreadable-file", "transformed_steps/program=softmax/part.parquet") in found
    assert ("changed-file", "timings-steps/program=softmax/part.parquet") in found


def test_a_warehouse_of_records_in_another_language_is_compared_all_the_same(
    clean: Path, tmp_path: Path
) -> None:
    """The compact spelling, which is tried too, cannot be made of records in CUDA or TIR."""
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    in_warehouse(
        "update filtered_dataset set messages = [{'role': m.role, 'content': 'In CUDA: ' "
        "|| m.content} for m in messages]"
    )(data)
    with connect(data / "steptp.duckdb") as connection, pytest.raises(NotLeir):
        export_all(connection, tmp_path / "compact", spelling="compact")
    found = {d.where for d in made.export(data / "export", data / "steptp.duckdb")}
    assert "export/train.jsonl" in found
    assert "export/tables/surveys.parquet" not in found


def test_nothing_is_changed(clean: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in clean.rglob("*")}
    audit(clean, quick=True)
    assert before == {p: p.stat().st_mtime_ns for p in clean.rglob("*")}


def test_a_quick_audit_leaves_single_rows_out(clean: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean, data)
    first_row(data, "transformed_steps", site="[5]")
    kinds = {d.kind for d in audit(data, quick=True).defects}
    assert "wrong-id" not in kinds
    assert "warehouse" in kinds


def test_an_empty_folder_has_no_warehouse(tmp_path: Path) -> None:
    kinds = {d.kind for d in audit(tmp_path).defects}
    assert {"warehouse", "zoo"} == kinds


def test_many_findings_of_a_kind_are_counted() -> None:
    many = [Defect("schema", "t", str(n), "bad") for n in range(5)]
    told = list(first_of(many, 2))
    assert [d.id for d in told] == ["0", "1", ""]
    assert told[-1].message == "and 3 more"
    assert json.dumps(told[0].to_json())


def test_every_folder_of_the_stages_is_known() -> None:
    names = folders()
    for name in ("verdicts", "step_programs", "lineage-steps", "timings-zoo", "runs"):
        assert name in names
