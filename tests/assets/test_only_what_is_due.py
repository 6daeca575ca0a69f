"""What runs again, and what Dagster believes: other code, other programs, nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from steptp_dagster.dataset import seals, versions
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.schemas import TRANSFORMED_STEPS
from steptp_dagster.dataset.stages import steps
from tests.support.light_graph import Graph, computed


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph(tmp_path, instance, monkeypatch)


def lineage_of_steps(graph: Graph) -> dict[str, set[str]]:
    """Strategy -> runs that made its surveys and steps."""
    found: dict[str, set[str]] = {}
    for program in graph.instance.get_dynamic_partitions("programs"):
        runs = pl.read_parquet(graph.store.part("lineage-steps", program), hive_partitioning=False)
        surveys = pl.read_parquet(graph.store.part("surveys", program), hive_partitioning=False)
        for strategy, run in surveys.join(runs, on="unit").select("strategy", "run_id").iter_rows():
            found.setdefault(strategy, set()).add(run)
    return found


def latest(graph: Graph, asset: str) -> dict[str, str]:
    """Data version of every partition of an asset."""
    found = {}
    for program in graph.instance.get_dynamic_partitions("programs"):
        wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[program])
        (record,) = graph.instance.fetch_materializations(wanted, limit=1).records
        event = record.asset_materialization
        assert event is not None and event.tags is not None
        found[program] = event.tags["dagster/data_version"]
    return found


def test_a_second_run_computes_nothing(graph: Graph) -> None:
    first = computed(graph.run())
    assert first["source_programs"] == 2
    assert first["transformed_steps"] == 4
    assert first["gpu_verification"] >= 3
    assert first["filtered_dataset"] >= 3
    assert set(computed(graph.run()).values()) == {0}


def test_another_version_of_a_strategy_makes_its_rows_again_and_no_others(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = graph.run().run_id
    known = versions.strategy_version
    changed = lambda name: digest("new", known(name)) if name == "loop_split" else known(name)  # noqa: E731
    monkeypatch.setattr(steps, "strategy_version", changed)
    monkeypatch.setattr(seals, "steps_version", lambda: digest("new", versions.steps_version()))
    before = graph.store.read_all(TRANSFORMED_STEPS, ("softmax", "GELU"))
    second = graph.run()
    assert computed(second) == {
        "source_programs": 0,
        "leir_programs": 0,
        "transformed_steps": 2,
        "gpu_verification": 0,
        "filtered_dataset": 0,
    }
    made = lineage_of_steps(graph)
    assert made == {"loop_split": {second.run_id}, "reduction_factorization": {first}}
    after = graph.store.read_all(TRANSFORMED_STEPS, ("softmax", "GELU"))
    assert set(before["step_id"]) == set(after["step_id"])


def test_a_new_program_makes_its_rows_and_no_others(graph: Graph) -> None:
    first = computed(graph.run())
    assert graph.choose("softmax", "GELU", "Matmul3D") == ("softmax", "GELU", "Matmul3D")
    second = computed(graph.run())
    assert second["source_programs"] == 1
    assert second["transformed_steps"] == 2
    assert 0 < second["gpu_verification"] < first["gpu_verification"]


@pytest.mark.slow
def test_a_program_that_goes_is_forgotten_and_comes_back_for_nothing(graph: Graph) -> None:
    graph.run()
    assert graph.choose("GELU") == ("GELU",)
    assert computed(graph.run())["transformed_steps"] == 0
    assert set(graph.choose("softmax", "GELU")) == {"softmax", "GELU"}
    assert computed(graph.run())["transformed_steps"] == 0


def test_partitions_have_data_versions_of_their_own(graph: Graph) -> None:
    graph.run()
    before = {name: latest(graph, name) for name in ("source_programs", "transformed_steps")}
    assert all(len(set(found.values())) == 2 for found in before.values())
    graph.run(["GELU"])
    assert before == {name: latest(graph, name) for name in before}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_what_is_due(graph: Graph) -> None:
    parted = ("source_programs", "leir_programs", "transformed_steps", "gpu_verification")
    names = (*parted, "filtered_dataset")

    def ask(cursor: Any = None) -> tuple[list[int], Any]:
        """How many partitions of each asset are due."""
        result = dg.evaluate_automation_conditions(graph.definitions, graph.instance, cursor=cursor)
        return [result.get_num_requested(dg.AssetKey(name)) for name in names], result.cursor

    due, cursor = ask()
    assert due == [2, 2, 2, 2, 1]
    graph.run()
    due, cursor = ask(cursor)
    assert due == [0, 0, 0, 0, 0]
    graph.run(["GELU"], ["transformed_steps"])  # nothing changed, so nobody is to follow
    due, cursor = ask(cursor)
    assert due == [0, 0, 0, 0, 0]
    graph.choose("softmax", "GELU", "Matmul3D")
    due, cursor = ask(cursor)
    assert due == [1, 1, 1, 1, 0]
    graph.run(["Matmul3D"], parted)
    due, cursor = ask(cursor)
    assert due == [0, 0, 0, 0, 1]


def test_a_partition_that_the_profile_lacks_is_said(graph: Graph) -> None:
    graph.instance.add_dynamic_partitions("programs", ["Softmin"])
    result = graph.run(["Softmin"], ["source_programs"], succeeds=False)
    (event,) = result.get_step_failure_events()
    assert "'Softmin' is no program of the profile light" in str(event.step_failure_data)
