import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.common import Result, by_program, schema_spec, tally
from assets.display import LINEAGE, column_schema
from assets.report import report
from assets.samples import block
from assets.statistics import statistics, summary
from assets.warehouse import warehouse_asset
from resources.build import Build
from resources.store import ParquetStore
from resources.warehouse import Warehouse
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.integrity import CHECKS
from steptp_dagster.dataset.schemas import STATISTICS, TABLES, ZOO
from steptp_dagster.dataset.store import Store
from steptp_dagster.definitions import defs
from tests.support.prepared import prepare
from tests.support.rows import all_rows, key

PARTITIONED = {"source_programs", "leir_programs", "transformed_steps", "gpu_verification"}
WHOLE_ASSETS = {"filtered_dataset", "statistics", "warehouse", "export", "report"}


def graph() -> Any:
    """The asset graph; Dagster does not export its type."""
    return defs.resolve_asset_graph()


def test_the_assets_of_the_design_and_their_order() -> None:
    nodes = {n.key.to_user_string(): n for n in graph().asset_nodes}
    assert nodes.keys() == {"program_files"} | PARTITIONED | WHOLE_ASSETS
    above = {name: {k.to_user_string() for k in n.parent_keys} for name, n in nodes.items()}
    assert above == {
        "program_files": set(),
        "source_programs": {"program_files"},
        "leir_programs": {"source_programs"},
        "transformed_steps": {"leir_programs"},
        "gpu_verification": {"transformed_steps"},
        "filtered_dataset": {"gpu_verification"},
        "statistics": {"filtered_dataset"},
        "warehouse": {"statistics"},
        "export": {"warehouse"},
        "report": {"warehouse"},
    }
    assert {name for name, n in nodes.items() if n.partitions_def} == {
        "program_files"
    } | PARTITIONED


def test_every_check_blocks() -> None:
    checks = [graph().get(key) for key in graph().asset_check_keys]
    assert set(CHECKS) == {
        *("references", "ids_unique", "no_wrong_pair", "trajectories", "negatives_rejected"),
        *("splits_disjoint", "no_near_copy", "records_have_lineage", "grounding", "zoo"),
    }
    assert len(checks) == 6 + 10 + 3
    assert all(check.blocking for check in checks)


def test_every_asset_has_a_description_and_a_code_version_where_it_computes() -> None:
    for node in graph().asset_nodes:
        assert node.description
        assert node.group_name in ("programs", "steps", "dataset")
        assert node.kinds and node.owners
        without = ("program_files", "warehouse", "export", "report")
        assert node.code_version or node.key.to_user_string() in without


def test_tables_say_what_a_row_is_and_link_to_code() -> None:
    for node in graph().asset_nodes:
        name = node.key.to_user_string()
        if name in TABLES:
            assert str(node.description).startswith("One row per"), name
            assert node.metadata["dagster/column_schema"].columns
            assert node.metadata["dagster/table_name"] == name
        if name != "program_files":
            (reference,) = node.metadata["dagster/code_references"].code_references
            assert Path(reference.file_path).name == f"{name}.py"


def test_columns_come_from_columns_that_exist() -> None:
    for name, columns in LINEAGE.items():
        assert set(columns) <= set(TABLES[name].columns)
        for source in (s for sources in columns.values() for s in sources):
            table, column = source.split(".")
            assert column in TABLES[table].columns


def test_assets_are_thin() -> None:
    """What an asset does stands in the library; here it is called and shown."""
    for node in graph().asset_nodes:
        name = node.key.to_user_string()
        if name != "program_files":
            function = defs.resolve_assets_def(name).op.compute_fn.decorated_fn
            assert len(inspect.getsource(function).splitlines()) <= 40, name


def test_one_job_and_a_schedule_that_waits() -> None:
    job = defs.resolve_job_def("build")
    assert len(job.nodes) >= 8
    schedule = defs.resolve_schedule_def("nightly")
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert defs.resolve_sensor_def("due").default_status is dg.DefaultSensorStatus.STOPPED


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_shown_with_descriptions(name: str) -> None:
    shown = column_schema(TABLES[name])
    assert [c.name for c in shown.columns] == list(TABLES[name].columns)
    assert all(c.description for c in shown.columns)


def test_rows_that_break_the_schema_fail_the_run_and_are_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ran = []

    def bad(missing: Sequence[Unit]) -> Iterator[Made]:
        row = {"pair": None, "kind": "k", "wrong": True, "accepted": True}
        for unit in missing:
            yield Made(unit, {"zoo": [{**row, "reason": None, "published_rule": None}]}, 0.0)

    def one(program: str) -> Report:
        units = [Unit(key(program), program)]
        return update(store, Stage("zoo", {"zoo": ZOO}, {}), program, units, bad, origin=Origin())

    partitions = dg.StaticPartitionsDefinition(["p"])

    @dg.asset(name="zoo", partitions_def=partitions, check_specs=[schema_spec(ZOO)])
    def zoo(context: dg.AssetExecutionContext) -> Result:
        yield from by_program(context, store, ZOO, one)

    @dg.asset(deps=[zoo], partitions_def=partitions)
    def after() -> None:
        ran.append("after")

    with dg.instance_for_test() as instance:
        result = dg.materialize(
            [zoo, after], instance=instance, partition_key="p", raise_on_error=False
        )
    assert not result.success
    assert ran == []
    assert not list(tmp_path.rglob("*.parquet"))
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert "pair: not_nullable" in str(check.description)


def materialize(asset: dg.AssetsDefinition, data: Path) -> dg.ExecuteInProcessResult:
    resources = {
        "store": ParquetStore(data=str(data)),
        "warehouse": Warehouse(data=str(data)),
        "build": Build(profile_name="tiny"),
    }
    return dg.materialize([asset], resources=resources, raise_on_error=False)


def test_a_warehouse_with_a_wrong_pair_does_not_appear(tmp_path: Path) -> None:
    rows = all_rows()
    store = prepare(tmp_path / "stages", rows)
    assert materialize(warehouse_asset, tmp_path).success
    before = (tmp_path / "steptp.duckdb").read_bytes()
    rows["gpu_verification"][0].update(equal_pass=False, equality="rejected", unit=key("other"))
    path = store.part("gpu_verification", "all")
    verdicts = pl.read_parquet(path, hive_partitioning=False)
    first = rows["gpu_verification"][0]["step_id"]
    verdicts.with_columns(
        equal_pass=pl.when(pl.col("step_id") == first).then(False).otherwise(pl.col("equal_pass"))
    ).write_parquet(path)
    result = materialize(warehouse_asset, tmp_path)
    assert not result.success
    failed = [e.check_name for e in result.get_asset_check_evaluations() if not e.passed]
    assert failed == ["no_wrong_pair"]
    assert (tmp_path / "steptp.duckdb").read_bytes() == before


def test_statistics_are_computed_once(tmp_path: Path) -> None:
    prepare(tmp_path / "stages", all_rows())
    computed = []
    for _ in range(2):
        result = materialize(statistics, tmp_path)
        assert result.success
        (event,) = result.asset_materializations_for_node("statistics")
        computed.append(event.metadata["computed"].value)
    assert computed == [True, False]


def test_the_page_of_plots_is_drawn_where_the_data_changed(tmp_path: Path) -> None:
    prepare(tmp_path / "stages", all_rows())
    assert materialize(warehouse_asset, tmp_path).success
    written = []
    for spoil in (False, False, True):
        if spoil:
            (tmp_path / "report.html").write_text("spoilt")
        result = materialize(report, tmp_path)
        assert result.success
        (event,) = result.asset_materializations_for_node("report")
        written.append(event.metadata["written"].value)
        assert "plotly-graph-div" in (tmp_path / "report.html").read_text()
    assert written == [True, False, True]


def test_the_summary_names_the_pass_rate(tmp_path: Path) -> None:
    store = prepare(tmp_path, all_rows(wrong=9))
    told = summary(store.read(STATISTICS, "all"))
    assert told["pass rate"] == 0.5
    assert "| steps | 18 |" in told["totals"].value


def test_a_tally_counts_the_most_frequent_first() -> None:
    text = tally(pl.DataFrame({"c": ["b", "a", "b"]}), "c").value
    assert text is not None
    assert text.splitlines()[2:] == [f"| b | 2 | {'█' * 30} |", f"| a | 1 | {'█' * 15} |"]


def test_long_lines_of_a_sample_are_folded_and_long_texts_cut() -> None:
    text = block("word " * 60 + "\n" + "x" * 300)
    lines = text.splitlines()
    assert lines[0] == "````text" and lines[-1] == "````"
    assert max(len(line) for line in lines[1:-2]) <= 110
    assert lines[-2] == "x" * 300
    assert "[1000 more characters]" in block("y" * 4000)
