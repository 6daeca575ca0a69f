"""One writer a partition on stores without locks: alive, dead, stopped for long, at one moment."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from steptp_dagster.dataset.storage import leases
from steptp_dagster.dataset.storage.leases import Held, held, machine
from steptp_dagster.dataset.storage.mirror import Mirror
from steptp_dagster.dataset.store import NotWritten, PartitionBusy, Store, opened
from tests.support.filesystems import Apart, Folders, contents, register

ROWS = pl.DataFrame({"a": range(10)})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    register()
    opened.cache_clear()
    monkeypatch.setattr(leases, "BEAT", 0.02)
    monkeypatch.setattr(leases, "PATIENCE", 1.0)
    monkeypatch.setattr(leases, "LOOK", 0.01)
    # The thread of other tests sleeps longer between two signs of life.
    monkeypatch.setattr(leases, "_beating", [])
    monkeypatch.setattr(leases, "_known", {})
    yield
    opened.cache_clear()


def at(folder: Path, kind: type[Apart] = Apart) -> Mirror:
    """The store as a machine sees it."""
    return Mirror.at(f"{kind.protocol[0]}://bucket", folder)


def store_at(folder: Path) -> Store:
    return Store(folder, at(folder))


@pytest.mark.parametrize("kind", [Apart, Folders])
def test_one_holds_and_the_others_are_told(tmp_path: Path, kind: type[Apart]) -> None:
    one, two = at(tmp_path / "one", kind), at(tmp_path / "two", kind)
    with held(one, "s", "p"):
        with pytest.raises(Held, match="stage 's' of 'p' is being written by another process"):
            held(two, "s", "p").__enter__()
        with held(two, "s", "q"), held(two, "other", "p"):
            pass
        assert [name.rpartition("/")[0] for name in contents(kind)] == ["/bucket/s.lock"]
    with held(two, "s", "p"):
        pass
    assert contents(kind) == {}


def test_a_dead_holder_is_not_waited_for_longer_than_a_minute(tmp_path: Path) -> None:
    left = "/bucket/s.lock/p.0123456789abcdef-0123456789abcdef"
    Apart().pipe_file(left, b"host process 1, sign of life 7\n")
    start = time.monotonic()
    with held(at(tmp_path), "s", "p"):
        assert left not in contents(Apart)
    assert time.monotonic() - start >= leases.PATIENCE


def test_a_dead_process_of_this_machine_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has the local lock knows that nobody else here has the partition."""
    here = machine(tmp_path)
    Apart().pipe_file(f"/bucket/s.lock/p.{here}-0123456789abcdef", b"")
    monkeypatch.delattr(leases, "_alive")
    with held(at(tmp_path), "s", "p"):
        assert len(contents(Apart)) == 1


def test_a_copy_of_a_data_folder_is_another_machine(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert machine(one) == machine(one)
    two.mkdir()
    (two / ".machine").write_text((one / ".machine").read_text())
    assert machine(one) != machine(two)


def test_other_names_are_no_markers(tmp_path: Path) -> None:
    """Partitions whose names begin alike, files of locks in a folder that was copied there."""
    for name in ("p", "p.x.0123456789abcdef-0123456789abcdef", ".p.0-1.aside", "q.0-1"):
        Apart().pipe_file(f"/bucket/s.lock/{name}", b"")
    with held(at(tmp_path), "s", "p"):
        assert len(contents(Apart)) == 5


def test_of_many_at_once_never_two_hold(tmp_path: Path) -> None:
    inside, most, done = [0], [0], [0]
    guard = threading.Lock()

    def contend(number: int) -> None:
        mirror = at(tmp_path / str(number))
        for _ in range(6):
            try:
                with held(mirror, "s", "p"):
                    with guard:
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                        done[0] += 1
                    time.sleep(0.01)
                    with guard:
                        inside[0] -= 1
            except Held:
                time.sleep(0.01)

    threads = [threading.Thread(target=contend, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert done[0] >= 1
    assert contents(Apart) == {}


def files() -> dict[str, bytes]:
    """All but markers."""
    return {name: content for name, content in contents(Apart).items() if ".lock/" not in name}


def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a minute has passed since the last sign of life."""
    now = leases._now
    monkeypatch.setattr(leases, "_now", lambda: now() + 1000)


def test_who_was_taken_for_dead_writes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped: its partition is another's when it goes on."""
    beat = leases._Lease.beat
    monkeypatch.setattr(leases._Lease, "beat", lambda _: None)
    one, two = store_at(tmp_path / "one"), store_at(tmp_path / "two")
    with one.locked("s", "p"):
        one.write(one.part("t", "p"), ROWS)
        with two.locked("s", "p"):
            two.write(two.part("t", "p"), ROWS.head(1))
            before = files()
            monkeypatch.setattr(leases._Lease, "beat", beat)
            silent(monkeypatch)
            for action in (
                lambda: one.write(one.part("t", "p"), ROWS),
                lambda: one.write_bytes(one.root / "s.seal" / "p.json", b"{}"),
                lambda: one.remove(one.part("t", "p")),
            ):
                with pytest.raises(PartitionBusy, match="taken over by another process"):
                    action()
            assert files() == before
    assert two.content("t", "p") == one.content("t", "p") is not None


def test_who_was_silent_and_not_missed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(tmp_path)
    with store.locked("s", "p"):
        silent(monkeypatch)
        monkeypatch.setattr(Apart, "error", OSError("no route"))
        with pytest.raises(NotWritten, match=r"cannot lock apart://bucket/s.lock/p: no route"):
            store.write(store.part("t", "p"), ROWS)
        monkeypatch.setattr(Apart, "error", None)
        store.write(store.part("t", "p"), ROWS)
    assert store.content("t", "p") is not None
    assert not [name for name in contents(Apart) if ".lock" in name]


def test_a_marker_that_cannot_be_removed_is_dead_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(at(tmp_path / "one"), "s", "p"):
        monkeypatch.setattr(Apart, "error", OSError("no route"))
    monkeypatch.setattr(Apart, "error", None)
    with held(at(tmp_path / "two"), "s", "p"):
        assert len(contents(Apart)) == 1


def test_a_local_process_with_the_same_folder_is_told_by_the_local_lock(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with store.locked("s", "p"):
        (marker,) = contents(Apart)
        with pytest.raises(PartitionBusy), store.locked("s", "p"):
            pass
        assert list(contents(Apart)) == [marker]
