"""What people download: complete, typed, loadable, atomic; every figure of the card is true."""

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml

from steptp_dagster.dataset import exports
from steptp_dagster.dataset.card import card, markdown
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.figures import FIGURES, VIEWS, figure, over_export
from steptp_dagster.dataset.formats import RECORD_COLUMNS
from steptp_dagster.dataset.respelling import NotLeir, respelled
from steptp_dagster.dataset.schemas import (
    FILTERED_DATASET,
    SPLITS,
    STABLE,
    TABLES,
    empty,
    polars_schema,
)
from steptp_dagster.dataset.tokens import count
from steptp_dagster.dataset.warehouse import NoWarehouse, connect, load
from steptp_dagster.leir.compact_parser import parse_compact
from steptp_dagster.leir.parser import parse
from tests.support.prepared import prepare
from tests.support.rows import all_rows

TINY = load_profile("tiny")
Table = list[tuple[str, ...]]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    load(prepare(folder / "stages", all_rows(wrong=2)), TINY, folder / "w.duckdb")
    return folder / "w.duckdb"


@pytest.fixture(scope="module")
def export(warehouse: Path) -> Path:
    """An export in all forms; not to be changed."""
    with connect(warehouse) as reader:
        folder, written = exports.export_all(
            reader, warehouse.parent / "export", formats=("trl", "swift")
        )
    assert written
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def records(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "tables" / "filtered_dataset.parquet")


def splits_of(folder: Path) -> list[str]:
    there = set(records(folder)["split"].to_list())
    return [split for split in SPLITS if split in there]


# -- the card ---------------------------------------------------------------------------------


def read_tables(text: str) -> list[Table]:
    """Every table of a Markdown text: rows of cells, the heads first."""
    found: list[Table] = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        rows = [
            tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            for line in block.splitlines()
        ]
        found.append([rows[0], *rows[2:]])
    return found


def test_every_figure_of_the_card_is_what_the_exported_files_say(export: Path) -> None:
    text = (export / "README.md").read_text(encoding="utf-8")
    shown = [table for table in read_tables(text) if "field" not in table[0]]
    asked = []
    with over_export(export) as connection:
        for name in FIGURES:
            frame = figure(connection, name)
            if frame.height and name != "toolchains":
                cells = [tuple("" if v is None else str(v) for v in row) for row in frame.rows()]
                asked.append([tuple(frame.columns), *cells])
        assert sorted(table for table in shown if table[0][0] != "target" or len(table[0]) > 3) == (
            sorted(asked)
        )
        # Sentences too: the same text comes from the downloaded files alone.
        assert card(connection, TINY, records(export)) == text


def test_figures_agree_with_counts_made_without_sql(export: Path) -> None:
    frames = {name: pl.read_parquet(export / "tables" / f"{name}.parquet") for name in STABLE}
    kept = frames["filtered_dataset"]
    with over_export(export) as connection:
        contents = dict(figure(connection, "contents").rows())
        split_rows = {row[0]: row for row in figure(connection, "splits").rows()}
        levels = dict(figure(connection, "levels").select("level", "records").rows())
        lengths = {row[0]: row for row in figure(connection, "lengths").rows()}
        zoo = {row[0]: row for row in figure(connection, "zoo").rows()}
    verdicts = frames["gpu_verification"]
    assert contents == {
        "source programs": frames["source_programs"].height,
        "of these, translated": frames["translations"]["leir_id"].drop_nulls().len(),
        "distinct LEIR programs": frames["leir_programs"]["leir_id"].n_unique(),
        "steps": frames["transformed_steps"].height,
        "verdicts": verdicts.height,
        "accepted": verdicts["equal_pass"].sum(),
        "trajectories": frames["trajectories"].height,
        "negatives": frames["negatives"].height,
        "records": kept.height,
    }
    for split in splits_of(export):
        told = lines(export / f"{split}.jsonl")
        tokens = sum(
            row["prompt_tokens"] + row["reasoning_tokens"] + row["answer_tokens"] for row in told
        )
        assert split_rows[split][1:4] == (len(told), len({r["program"] for r in told}), tokens)
    assert levels == {
        level: (kept["strategy_level"] == level).sum() for level in set(kept["strategy_level"])
    }
    assert lengths["answer"][1:] == (
        kept["answer_tokens"].min(),
        round(float(kept["answer_tokens"].median() or 0)),
        kept["answer_tokens"].max(),
        kept["answer_tokens"].sum(),
    )
    assert zoo["wrong pairs"][1:4] == (1, 1, 100.0)


def test_token_figures_are_counts_of_the_texts(export: Path) -> None:
    for row in records(export).head(3).to_dicts():
        system, user, assistant = (m["content"] for m in row["messages"])
        thought, _, answer = assistant.rpartition("</think>\n")
        assert row["prompt_tokens"] == count(system) + count(user)
        assert row["reasoning_tokens"] == count(f"{thought}</think>")
        assert row["answer_tokens"] == count(answer)


def test_token_savings_by_kind_and_dtype() -> None:
    """Of sums; originals are what translations made, refusals count on neither side."""
    with duckdb.connect() as tables:
        for name, schema in TABLES.items():
            tables.register("nothing", empty(schema).to_arrow())
            tables.execute(f"create table {name} as from nothing")
        tables.execute(VIEWS.read_text(encoding="utf-8"))
        tables.execute("""
            insert into source_programs by name
            select unnest(['h', 'f', 'g']) as source_id, unnest(['f16', 'f32', 'f32']) as dtype;
            insert into translations by name
            select unnest(['h', 'f', 'g']) as source_id, unnest(['H', 'F', null]) as leir_id;
            insert into transformed_steps by name
            select unnest(['f', 'f', 'f', 'f']) as source_id,
                unnest(['F', 'R', 'R', 'X']) as result_leir_id;
            insert into token_counts by name
            select unnest(['H', 'F', 'R', 'X']) as leir_id, unnest([10, 30, 20, 1000]) as leir,
                unnest([40, 60, null, 1]) as tvm_kernels, unnest([100, 100, 80, 1]) as tvm_file,
                unnest([true, true, true, false]) as sampled""")
        columns = ("programs", "dtype", "counted", "leir_tokens", "tvm_kernels", "tvm_file")
        told = figure(tables, "token_savings_by_dtype").select(*columns).rows()
    assert told == [
        ("originals", "f16", 1, 10, 75.0, 90.0),
        ("originals", "f32", 1, 30, 50.0, 70.0),
        ("originals", "all", 2, 40, 60.0, 80.0),
        ("results", "f32", 1, 20, None, 75.0),
        ("results", "all", 1, 20, None, 75.0),
        ("all", "all", 3, 60, 60.0, 78.6),
    ]


def test_the_card_shows_a_step(export: Path) -> None:
    text = (export / "README.md").read_text(encoding="utf-8")
    kept = records(export)
    (shown,) = re.findall(r"^## A record\n\n`(\w+)`: ", text, re.MULTILINE)
    assert kept.filter(record_id=shown)["task"].item() == "single"
    negative = kept.filter(task="negative")["answer_tokens"].min()
    assert negative < kept.filter(record_id=shown)["answer_tokens"].item()


def test_paths_in_the_card_exist(export: Path) -> None:
    text = (export / "README.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    named = re.findall(r"`((?:data|tables)/[^`]+|[a-z]+\.jsonl?|manifest\.json)`", body)
    assert len(named) >= 2 * len(splits_of(export)) + len(STABLE) + 1
    for name in named:
        assert list(export.glob(name)), name
    front = yaml.safe_load(head)
    assert [c["config_name"] for c in front["configs"]] == ["default"]
    for config in front["configs"]:
        assert [f["split"] for f in config["data_files"]] == splits_of(export)
        assert all(list(export.glob(f["path"])) for f in config["data_files"])
    for name in RECORD_COLUMNS:
        assert f"| `{name}` |" in body


def test_a_table_with_bars_stays_a_table() -> None:
    text = markdown(pl.DataFrame({"a": ["x|y\nz", None]}))
    assert text == "| a |\n|---|\n| x\\|y z |\n|  |\n"


# -- files ------------------------------------------------------------------------------------


def test_parquet_and_json_lines_say_the_same(export: Path) -> None:
    schema = polars_schema(FILTERED_DATASET)
    for split in splits_of(export):
        (shard,) = export.glob(f"data/{split}-*.parquet")
        frame = pl.read_parquet(shard)
        assert frame.schema == pl.Schema({name: schema[name] for name in RECORD_COLUMNS})
        # A guess of types from the first lines must not meet a column of nulls.
        filled = frame.with_columns(pl.col("trajectory_id", "negative_id").fill_null(""))
        assert filled.to_dicts() == lines(export / f"{split}.jsonl")
        assert frame["record_id"].is_sorted()
        group = pq.ParquetFile(shard).metadata.row_group(0)
        assert group.column(0).statistics.min == frame["record_id"].min()


def test_a_warehouse_of_another_release_is_said_to_be(warehouse: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.duckdb"
    older.write_bytes(warehouse.read_bytes())
    with duckdb.connect(str(older)) as connection:
        connection.execute("drop view token_savings_by_dtype")
    with connect(older) as reader, pytest.raises(NoWarehouse, match="another release"):
        exports.export_all(reader, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_many_records_are_cut_into_shards(
    export: Path, tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "SHARD_ROWS", 4)
    with connect(warehouse) as reader:
        folder, _ = exports.export_all(reader, tmp_path / "cut")
    for split in splits_of(export):
        parts = sorted(folder.glob(f"data/{split}-*.parquet"))
        whole = pl.read_parquet(next(export.glob(f"data/{split}-*.parquet")))
        assert len(parts) == -(-whole.height // 4)
        assert pl.concat([pl.read_parquet(part) for part in parts]).equals(whole)
        assert parts[-1].name == f"{split}-{len(parts) - 1:05d}-of-{len(parts):05d}.parquet"


def test_datasets_loads_parquet_and_json_lines(export: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    parquet = datasets.load_dataset(str(export), cache_dir=str(tmp_path / "a"))
    paths = {split: str(export / f"{split}.jsonl") for split in splits_of(export)}
    json_lines = datasets.load_dataset("json", data_files=paths, cache_dir=str(tmp_path / "b"))
    for found in (parquet, json_lines):
        assert sorted(found) == sorted(splits_of(export))
        for split in splits_of(export):
            told = lines(export / f"{split}.jsonl")
            assert found[split].num_rows == len(told)
            assert sorted(found[split].column_names) == sorted(told[0])
            for name in ("messages", "prompt_tokens", "strategies"):
                assert found[split][0][name] == told[0][name]


def check_chat(messages: Any) -> None:
    """The conversational form of TRL and of ms-swift: system, user, assistant in turn."""
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    assert all(isinstance(m["content"], str) and m["content"] for m in messages)


def test_forms_of_trainers(export: Path) -> None:
    for split in splits_of(export):
        plain = lines(export / f"{split}.jsonl")
        pairs, told = (
            lines(export / "trl" / f"{split}.jsonl"),
            lines(export / "swift" / f"{split}.jsonl"),
        )
        assert len(plain) == len(pairs) == len(told)
        for row, pair, learned in zip(plain, pairs, told, strict=True):
            check_chat(row["messages"])
            assert pair.keys() == {"prompt", "completion"}
            assert pair["prompt"] + pair["completion"] == row["messages"]
            assert [m["role"] for m in pair["completion"]] == ["assistant"]
            assert learned.keys() == {"messages"}
            check_chat(learned["messages"])
            assert [m["loss"] for m in learned["messages"]] == [False, False, True]
            assert all(m.keys() == {"role", "content", "loss"} for m in learned["messages"])


# -- the compact spelling ---------------------------------------------------------------------


def test_records_in_the_compact_spelling_say_the_same(export: Path) -> None:
    before = records(export)
    after = respelled(before)
    assert after.schema == before.schema
    assert after.drop("messages", "prompt_tokens", "answer_tokens").equals(
        before.drop("messages", "prompt_tokens", "answer_tokens")
    )
    for old, new in zip(before.to_dicts(), after.to_dicts(), strict=True):
        told = [m["content"] for m in new["messages"]]
        was = [m["content"] for m in old["messages"]]
        assert "compact LEIR" in told[0]
        program = told[1].split("```\n")[1].split("\n```")[0].splitlines()[-1]
        original = was[1].split("```\n")[1].split("\n```")[0].splitlines()[-1]
        assert parse_compact(program).program == parse(original).program
        reply = json.loads(told[2].rpartition("</think>\n")[2])
        if new["task"] == "single":
            result = json.loads(was[2].rpartition("</think>\n")[2])["leir"]
            assert parse_compact(reply["compact"]).program == parse(result).program
        assert told[2].rpartition("</think>")[0] == was[2].rpartition("</think>")[0]
        assert new["answer_tokens"] == count(told[2].rpartition("</think>\n")[2])
        assert new["answer_tokens"] <= old["answer_tokens"]


def test_only_leir_is_respelled(export: Path) -> None:
    row = records(export).row(0, named=True)
    row["messages"][0]["content"] = "Programs are CUDA kernels."
    with pytest.raises(NotLeir, match="does not show LEIR"):
        respelled(pl.DataFrame([row], schema=polars_schema(FILTERED_DATASET)))


# -- all or nothing ---------------------------------------------------------------------------


def full_disk(after: int, real: Callable[..., None]) -> Callable[..., None]:
    """``write_aside`` of a disk that is full after some files."""
    left = [after]

    def write(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*arguments)

    return write


@pytest.mark.parametrize(
    "after",
    [5, pytest.param(0, marks=pytest.mark.slow), pytest.param(len(STABLE), marks=pytest.mark.slow)],
)
def test_a_full_disk_leaves_the_old_export(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with connect(warehouse) as reader:
        folder, _ = exports.export_all(reader, tmp_path / "export")
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        monkeypatch.setattr(exports, "write_aside", full_disk(after, exports.write_aside))
        with pytest.raises(OSError, match="No space left"):
            exports.export_all(reader, folder, spelling="compact")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert {path.name for path in tmp_path.iterdir()} <= {"export", ".export.seal"}


@pytest.mark.slow
def test_a_failing_move_leaves_the_old_export(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(warehouse) as reader:
        folder, _ = exports.export_all(reader, tmp_path / "export")
        before, real = exports.files(folder), os.replace

        def replace(source: Any, target: Any) -> None:
            if Path(target) == folder and not Path(source).name.endswith(".old"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(OSError, match="error"):
            exports.export_all(reader, folder, spelling="compact")
    assert exports.files(folder) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"export", ".export.seal"}


def test_a_kill_between_the_two_moves_is_mended(warehouse: Path, tmp_path: Path) -> None:
    with connect(warehouse) as reader:
        folder, _ = exports.export_all(reader, tmp_path / "export")
        os.replace(folder, tmp_path / ".export.old")
        assert exports.export_all(reader, folder) == (folder, False)
    assert {path.name for path in tmp_path.iterdir()} <= {"export", ".export.seal"}


def test_an_export_that_is_sealed_is_not_made_to_be_compared(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    plain = exports.table
    monkeypatch.setattr(exports, "table", lambda c, name: asked.append(name) or plain(c, name))  # type: ignore[func-returns-value]
    with connect(warehouse) as reader:
        folder, _ = exports.export_all(reader, tmp_path / "export")
        asked.clear()
        assert exports.export_all(reader, folder) == (folder, False)
        assert asked == []
        exports.export_all(reader, folder, spelling="compact")
        assert asked
        (folder / "README.md").write_text("changed")
        assert exports.export_all(reader, folder, spelling="compact") == (folder, True)
