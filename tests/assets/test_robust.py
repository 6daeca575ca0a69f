"""Runs side by side, failing writes, wrong settings: said in words, and nothing is lost."""

import threading
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import running
from assets.partitions import backfill_policy
from resources.build import BadSetting, fraction, number
from steptp_dagster.dataset import store as store_module
from steptp_dagster.dataset.incremental import Report
from steptp_dagster.dataset.stages import leir
from steptp_dagster.dataset.store import PartitionBusy, Store
from tests.support.light_graph import Graph, computed


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph(tmp_path, instance, monkeypatch)


def test_a_run_waits_for_another_that_writes_the_same_program(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BUSY_WAIT", 0.2)
    held, refused = threading.Event(), threading.Event()
    locked = Store.locked

    @contextmanager
    def watched(self: Store, stage: str, program: str) -> Iterator[None]:
        try:
            with locked(self, stage, program):
                yield
        except PartitionBusy:
            refused.set()
            raise

    def other() -> None:
        with locked(graph.store, "sources", "GELU"):
            held.set()
            refused.wait(60)

    monkeypatch.setattr(Store, "locked", watched)
    thread = threading.Thread(target=other)
    thread.start()
    assert held.wait(10)
    result = graph.run(assets=["source_programs"])
    thread.join()
    retries = [e for e in result.all_events if e.event_type_value == "STEP_UP_FOR_RETRY"]
    assert retries
    assert "is being written by another process" in str(retries[0].event_specific_data)
    assert computed(result)["source_programs"] <= 2
    assert graph.store.part("source_programs", "GELU").exists()


def test_a_full_disk_fails_in_words_and_the_next_run_goes_on(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.run(assets=["source_programs", "leir_programs"])
    written = store_module.os.replace
    count = 0

    def fills_up(*paths: object) -> None:
        nonlocal count
        count += 1
        if count > 6:
            raise OSError(28, "No space left on device")
        written(*paths)  # type: ignore[call-overload]

    monkeypatch.setattr(store_module.os, "replace", fills_up)
    result = graph.run(assets=["transformed_steps"], succeeds=False)
    (event,) = result.get_step_failure_events()
    assert "the disk is full; make room and run again" in str(event.step_failure_data)
    monkeypatch.setattr(store_module.os, "replace", written)
    graph.run(assets=["transformed_steps"])
    assert set(computed(graph.run(assets=["transformed_steps"])).values()) == {0}


@pytest.mark.parametrize("tags", [{}, {"steptp/progress": "console"}], ids=["in the UI", "steptp"])
def test_a_worker_that_dies_is_said_or_replaced(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, tags: dict[str, str]
) -> None:
    update, calls = leir.update_leir, 0

    def dies_once(*arguments: Any) -> Report:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise BrokenProcessPool("A process in the process pool was terminated abruptly")
        return update(*arguments)

    graph.run(assets=["source_programs"])
    monkeypatch.setattr(leir, "update_leir", dies_once)
    result = graph.run(assets=["leir_programs"], succeeds=not tags, tags=tags)
    if tags:
        (event,) = result.get_step_failure_events()
        said = str(event.step_failure_data)
        assert "a worker process died (killed, or out of memory)" in said
        assert "what was finished is kept, run again" in said
        graph.run(assets=["leir_programs"], tags=tags)
    assert graph.store.part("leir_programs", "GELU").exists()


@pytest.mark.parametrize("text", ["many", "-1", "1.5", ""])
def test_a_number_that_is_none_is_said(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTP_WORKERS", text)
    with pytest.raises(BadSetting, match=r"STEPTP_WORKERS=.* is not a number from 0 on"):
        number("STEPTP_WORKERS")


@pytest.mark.parametrize("text", ["half", "-0.1", "1.5", "nan", ""])
def test_a_share_that_is_none_is_said(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTP_DRIFT", text)
    with pytest.raises(BadSetting, match=r"STEPTP_DRIFT=.* is not a share from 0 to 1"):
        fraction("STEPTP_DRIFT", 0.5)


def test_a_share_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPTP_DRIFT", raising=False)
    assert fraction("STEPTP_DRIFT", 0.5) == 0.5
    monkeypatch.setenv("STEPTP_DRIFT", "0.25")
    assert fraction("STEPTP_DRIFT", 0.5) == 0.25


def test_backfills_are_one_run_unless_a_cluster_wants_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert backfill_policy().max_partitions_per_run is None
    monkeypatch.setenv("STEPTP_PROGRAMS_PER_RUN", "7")
    assert backfill_policy().max_partitions_per_run == 7
