"""``steptp diff``: rows that came, went and changed are found, each with its reason."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.difference import (
    KEYS,
    REASONS,
    Difference,
    NoBuild,
    Side,
    difference,
)
from steptp_dagster.dataset.schemas import STABLE
from steptp_dagster.dataset.warehouse import load
from tests.support.prepared import prepare
from tests.support.rows import all_rows, key

STEPS = ("transformed_steps", "gpu_verification")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    stages = prepare(folder / "stages", all_rows())
    assert load(stages, load_profile("tiny"), folder / "steptp.duckdb").built
    return folder


def altered(
    first: Path, tmp_path: Path, *statements: str, tables: Collection[str] = tuple(KEYS)
) -> Difference:
    """What ``diff`` says of a build after some SQL on a copy of its file."""
    copy = tmp_path / "steptp.duckdb"
    copy.write_bytes((first / "steptp.duckdb").read_bytes())
    with duckdb.connect(str(copy)) as connection:
        for statement in statements:
            connection.execute(statement)
    return difference(first, copy, tables)


def test_every_table_that_is_equal_in_every_build_is_compared() -> None:
    # Of the others: counts of what is compared, and files without ids.
    left_out = {"user_programs", "statistics", "balance", "leakage"}
    assert KEYS.keys() == REASONS.keys()
    assert {name for name in STABLE if name not in left_out} == KEYS.keys()
    for name, keys in KEYS.items():
        assert set(keys) <= STABLE[name].columns.keys()


def test_a_build_equals_itself_and_its_copy(first: Path, tmp_path: Path) -> None:
    for found in (difference(first, first, STEPS), altered(first, tmp_path, tables=STEPS)):
        assert found.same
        assert found.settings == ()
        assert found.tables["transformed_steps"].before == 18


def test_steps_that_came(first: Path, tmp_path: Path) -> None:
    new = f"where step_id = '{key('step', 'softmax/loop_split/0')}'"
    there = altered(
        first,
        tmp_path,
        f"insert into transformed_steps select * replace ('{key('new')}' as step_id) "
        f"from transformed_steps {new}",
        f"insert into gpu_verification select * replace ('{key('new')}' as step_id) "
        f"from gpu_verification {new}",
        tables=STEPS,
    ).tables
    assert there["transformed_steps"].came == Side({"choice of sites": 1}, (key("new"),))
    assert there["gpu_verification"].came.reasons == {"step": 1}
    assert there["transformed_steps"].went.rows == 0
    back = difference(tmp_path, first, STEPS).tables
    assert back["transformed_steps"].went == there["transformed_steps"].came


@pytest.mark.parametrize(
    ("statement", "table", "reasons"),
    [
        (
            "update transformed_steps set strategy_version = '2', step_id = md5(step_id) "
            "where strategy = 'loop_split'",
            "transformed_steps",
            {"version of the strategy": 9},
        ),
        (
            "update source_programs set source_id = md5(source_id), code_hash = 'other' "
            "where program = 'GELU'",
            "source_programs",
            {"code of the program": 1},
        ),
        (
            "update source_programs set source_id = md5(source_id), dtype = 'f16' "
            "where program = 'GELU'",
            "source_programs",
            {"dtype": 1},
        ),
        (
            "update source_programs set source_id = md5(source_id), seed = 2 "
            "where program = 'GELU'",
            "source_programs",
            {"sample of shapes": 1},
        ),
        (
            "update filtered_dataset set record_id = md5(record_id) where task = 'negative'",
            "filtered_dataset",
            {"wording": 3},
        ),
        ("update gpu_verification set target = 'cuda:sm_90'", "gpu_verification", {"target": 18}),
    ],
)
def test_reasons(
    first: Path, tmp_path: Path, statement: str, table: str, reasons: dict[str, int]
) -> None:
    found = altered(first, tmp_path, statement, tables=[table]).tables[table]
    assert found.came.reasons == reasons
    assert found.went.rows == sum(reasons.values())
    assert found.changed == 0


def test_records_that_went_have_the_reason_of_their_exclusion(first: Path, tmp_path: Path) -> None:
    found = altered(
        first,
        tmp_path,
        "insert into exclusions select step_ids[1], 'program-cap' from filtered_dataset "
        "where task = 'single' order by record_id limit 1",
        "delete from filtered_dataset where task = 'single' and step_ids[1] in "
        "(select step_id from exclusions where reason = 'program-cap')",
        tables=["filtered_dataset", "exclusions"],
    )
    assert found.tables["filtered_dataset"].went.reasons == {"left out: program-cap": 1}
    assert found.tables["exclusions"].came.reasons == {"record": 1}


def test_changed_columns_are_counted_and_units_are_no_content(first: Path, tmp_path: Path) -> None:
    found = altered(
        first,
        tmp_path,
        "update gpu_verification set equality = 'reassociated', bitwise = false "
        f"where step_id = '{key('step', 'GELU/loop_split/0')}'",
        "update transformed_steps set unit = md5(unit)",
        tables=["gpu_verification", "transformed_steps"],
    )
    verdicts = found.tables["gpu_verification"]
    assert (verdicts.changed, verdicts.columns) == (1, {"bitwise": 1, "equality": 1})
    assert verdicts.examples == (f"{key('step', 'GELU/loop_split/0')} llvm",)
    assert found.tables["transformed_steps"].same
    assert not found.same


def test_settings_and_versions_that_differ_are_told(first: Path, tmp_path: Path) -> None:
    found = altered(
        first,
        tmp_path,
        """update build set profile = replace(profile, '"seed":7', '"seed":8')""",
        "update lineage set code_version = 'v2' where stage = 'verdicts'",
        'update gpu_verification set toolchain = \'{"tvm":"9"}\'',
    )
    assert [(c.what, c.before, c.after) for c in found.settings] == [("seed", "7", "8")]
    assert [(c.what, c.before, c.after) for c in found.versions] == [
        ("code of stage verdicts", "v1", "v2"),
        ("toolchain of llvm", "{}", '{"tvm":"9"}'),
    ]


def test_the_code_of_a_strategy_that_differs_is_told(first: Path, tmp_path: Path) -> None:
    other = "update surveys set unit = md5(unit)"
    one = altered(first, tmp_path, f"{other} where strategy = 'loop_split'")
    assert [c.what for c in one.versions] == ["code of strategy loop_split"]
    assert one.same
    every = altered(first, tmp_path, other)
    assert [c.what for c in every.versions] == ["code of all strategies"]
    setting = """update build set profile = replace(profile, '"sites":1', '"sites":2')"""
    asked = altered(first, tmp_path, other, setting)
    assert [c.what for c in asked.settings] == ["steps.sites"]
    assert asked.versions == ()


def test_a_build_of_an_older_release_can_be_compared(first: Path, tmp_path: Path) -> None:
    found = altered(
        first,
        tmp_path,
        "drop table zoo",
        "alter table filtered_dataset drop column weights",
        "alter table transformed_steps drop column strategy_version",
        "delete from transformed_steps where strategy = 'loop_split'",
        tables=["zoo", "filtered_dataset", "transformed_steps"],
    )
    assert "zoo" not in found.tables
    assert found.tables["filtered_dataset"].same
    assert found.tables["transformed_steps"].went.reasons == {"unknown": 9}


def test_the_command(first: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> Any:
        return CliRunner().invoke(steptp, ["diff", *map(str, arguments)])

    same = run("--json", first, first / "steptp.duckdb")
    assert same.exit_code == 0
    assert json.loads(same.stdout)["same"]
    altered(first, tmp_path, "delete from zoo where wrong", tables=[])
    differs = run(first, tmp_path)
    assert differs.exit_code == 1
    assert "zoo:\n  went, for: pair (1); e.g. dropped-tail" in differs.stdout
    assert differs.stdout.endswith("the builds differ\n")
    (tmp_path / "text").write_text("no database")
    for place, message in (("nowhere", "no build at"), ("text", "text: ")):
        nothing = run(first, tmp_path / place)
        assert nothing.exit_code == 2
        assert message in nothing.stderr
    with pytest.raises(NoBuild):
        difference(first, tmp_path / "text")
