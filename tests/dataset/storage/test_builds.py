"""Whole builds on a store that is not a local folder: the same tables, audit, assets, processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from resources.store import ParquetStore
from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset.audit.whole import audit
from steptp_dagster.dataset.exports import MANIFEST
from steptp_dagster.dataset.schemas import ZOO
from steptp_dagster.dataset.storage.mirror import StorageFailure
from steptp_dagster.dataset.store import Store, opened
from steptp_dagster.dataset.warehouse import load
from tests.dataset.test_incremental_kills import STAGE
from tests.dataset.test_incremental_kills import build as update
from tests.dataset.test_seals import Counted
from tests.support import small_build
from tests.support.filesystems import Apart, contents, register
from tests.support.light_graph import Graph, computed

#: Of these every row has the hour or the machine it was made in.
JOURNALS = ("lineage-", "timings-", "runs")
LIMIT = 120


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    register()
    opened.cache_clear()
    yield
    opened.cache_clear()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small build in a local folder."""
    data = tmp_path_factory.mktemp("local")
    small_build.build(data)
    return data


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same build with its stage files elsewhere."""
    data = tmp_path_factory.mktemp("apart")
    small_build.build(data, store=store_of(data))
    return data


def store_of(data: Path, bucket: str = "bucket") -> Store:
    return opened(data, f"apart://{bucket}/prefix")


def tables(store: Store) -> dict[str, bytes]:
    """All finished files that two builds have the same."""
    files = store.files(name="part.parquet")
    store.bring(*files)
    named = {path.relative_to(store.root).as_posix(): path.read_bytes() for path in files}
    return {name: content for name, content in named.items() if not name.startswith(JOURNALS)}


def test_tables_and_exports_are_those_of_a_local_build(local: Path, apart: Path) -> None:
    there, here = tables(store_of(apart)), tables(Store(local / "stages"))
    assert there.keys() == here.keys()
    assert [name for name in here if there[name] != here[name]] == []
    assert not (apart / "stages").exists()
    manifests = [(data / "export" / MANIFEST).read_bytes() for data in (local, apart)]
    assert manifests[0] == manifests[1]


def test_another_machine_computes_nothing_and_has_the_same(apart: Path, tmp_path: Path) -> None:
    before = contents(Apart)
    judge = small_build.build(tmp_path, store=store_of(tmp_path))
    assert judge.asked == 0
    assert contents(Apart) == before
    assert not load(store_of(apart), small_build.profile(), apart / "steptp.duckdb").built


def test_an_audit_looks_there(apart: Path) -> None:
    name = "/bucket/prefix/surveys/program=GELU/part.parquet"
    content = contents(Apart)[name]
    arguments = [
        "audit",
        "--quick",
        "--json",
        "--data",
        str(apart),
        "--storage",
        "apart://bucket/prefix",
    ]
    try:
        Apart().pipe_file(name, content[:-50])
        done = CliRunner().invoke(steptp, arguments)
        assert done.exit_code == 1
        found = [(d["kind"], d["where"]) for d in json.loads(done.stdout)["defects"]]
        assert ("unreadable-file", "surveys/program=GELU/part.parquet") in found
        small_build.build(apart, store=store_of(apart))
        assert contents(Apart)[name] == content
        assert audit(apart, store_of(apart), quick=True).defects == ()
        Apart.error = OSError("no route")
        with pytest.raises(StorageFailure, match="cannot list"):
            audit(apart, store_of(apart))
        opened.cache_clear()
        done = CliRunner().invoke(steptp, arguments)
        assert done.exit_code == 2
        assert "cannot be used: OSError: no route" in done.stderr
    finally:
        Apart.error = None


def test_what_is_sealed_is_not_looked_at_on_any_machine(tmp_path: Path) -> None:
    part, other = Counted(tmp_path), Counted(tmp_path)
    part.store, other.store = (
        store_of(tmp_path / "one", "other"),
        store_of(tmp_path / "two", "other"),
    )
    assert [part().new, part().new, other().new] == [1, 0, 0]
    part.store.write(part.store.part("surveys", "softmax"), part.store.read(ZOO, "softmax"))
    assert other().kept == 1
    assert (part.looked, other.looked) == (1, 1)


@pytest.mark.slow
def test_assets_build_there_and_then_have_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ParquetStore
    monkeypatch.setattr(
        "tests.support.light_graph.ParquetStore",
        lambda data: plain(data=data, storage="apart://assets/all"),
    )
    with dg.DagsterInstance.ephemeral() as instance:
        graph = Graph(tmp_path, instance, monkeypatch)
        first, before = computed(graph.run()), contents(Apart)
        assert min(first.values()) > 0
        assert set(computed(graph.run()).values()) == {0}
    assert contents(Apart) == before
    seals = [path for path in before if path.startswith("/assets/all/") and ".seal/" in path]
    assert len(seals) == 2 * 4 + 1
    assert not (tmp_path / "data" / "stages").exists()


WRITER = """
import sys, time
from pathlib import Path
from steptp_dagster.dataset.storage import leases
from steptp_dagster.dataset.store import PartitionBusy, opened
from tests.dataset import test_incremental_kills as small
leases.BEAT, leases.PATIENCE, leases.LOOK = 0.1, 2.0, 0.05
data, url, names, wait = sys.argv[1:]
store = opened(Path(data), url)
timed = small.Made
def slow(unit, rows, seconds):
    if unit.payload == wait:
        print("waits", flush=True)
        time.sleep(1000)
    return timed(unit, rows, seconds)
small.Made = slow
try:
    print(small.build(store, names).new)
except PartitionBusy as error:
    print(error)
"""


def writer(data: Path, url: str, names: str, wait: str = "") -> "subprocess.Popen[str]":
    """A process that builds; at the unit ``wait`` it says so and waits."""
    command = [sys.executable, "-c", WRITER, str(data), url, names, wait]
    places = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in places if p)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
def test_processes_of_several_machines(tmp_path: Path) -> None:
    """One is killed while it holds a partition; one meets it, one comes after."""
    (tmp_path / "there").mkdir()
    url = f"dir::file://{tmp_path}/there"
    update(clean := Store(tmp_path / "clean"), "abcdef")
    first = writer(tmp_path / "first", url, "abcdef", wait="e")
    assert first.stdout is not None
    assert first.stdout.readline() == "waits\n"
    second = writer(tmp_path / "second", url, "abcdef")
    said, _ = second.communicate(timeout=LIMIT)
    assert said == "stage 's' of 'p' is being written by another process\n"
    os.kill(first.pid, signal.SIGKILL)
    first.communicate(timeout=LIMIT)
    assert first.returncode == -signal.SIGKILL
    store = opened(tmp_path / "here", url)
    assert len(store.batches("first", "p")) == 2
    assert store.files(name="part.parquet") == ()
    start = time.monotonic()
    third = writer(tmp_path / "second", url, "abcdef")
    said, _ = third.communicate(timeout=LIMIT)
    assert said == "2\n", "four of six units were there"
    assert time.monotonic() - start > 2
    files = {name: store.part(name, "p") for name in STAGE.tables}
    store.bring(*files.values())
    for name, path in files.items():
        assert path.read_bytes() == clean.part(name, "p").read_bytes()
    assert store.batches("first", "p") == ()
