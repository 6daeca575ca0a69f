"""Stage files on filesystems of fsspec's: the same bytes, nothing computed twice, nothing half."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from steptp_dagster.dataset.storage import leases
from steptp_dagster.dataset.storage.mirror import StorageFailure
from steptp_dagster.dataset.storage.stamps import Stamp
from steptp_dagster.dataset.store import NotWritten, Store, opened, write_aside
from tests.dataset.test_incremental_kills import FIRST, FOLDERS, STAGE
from tests.dataset.test_incremental_kills import build as update
from tests.support.filesystems import (
    Apart,
    Folders,
    Killed,
    Seconds,
    Stubborn,
    Tagged,
    contents,
    register,
    whole,
)

ROWS = pl.DataFrame({"a": range(1000)})


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    register()
    opened.cache_clear()
    monkeypatch.setattr(leases, "PATIENCE", 0.02)
    monkeypatch.setattr(leases, "LOOK", 0.005)
    # A process that is killed has no thread that goes on.
    monkeypatch.setattr(leases, "_start", lambda: None)
    monkeypatch.setattr(leases, "_known", {})
    yield
    opened.cache_clear()


def at(folder: Path, kind: type[Apart] = Apart) -> Store:
    """The store as another machine sees it, or the same where the folder is the same."""
    return opened(folder, f"{kind.protocol[0]}://bucket/prefix")


def tables(store: Store) -> dict[str, bytes]:
    """The finished tables."""
    paths = {name: store.part(name, "p") for name in STAGE.tables}
    store.bring(*paths.values())
    return {name: path.read_bytes() for name, path in paths.items()}


def test_bytes_and_names_are_those_of_a_local_folder(tmp_path: Path) -> None:
    local, remote = Store(tmp_path / "local"), at(tmp_path)
    for store in (local, remote):
        update(store, "abcde")
    there = {path.removeprefix("/bucket/prefix/"): b for path, b in contents(Apart).items()}
    here = {p.relative_to(local.root).as_posix(): p.read_bytes() for p in local.files()}
    assert there.keys() == here.keys()
    assert tables(remote) == tables(local)
    assert {name: there[f"{name}/program=p/part.parquet"] for name in STAGE.tables} == tables(local)


@pytest.mark.parametrize("kind", [Apart, Folders, Stubborn, Seconds, Tagged])
def test_what_is_there_is_not_made_again_on_any_machine(tmp_path: Path, kind: type[Apart]) -> None:
    assert update(at(tmp_path / "one", kind), "abc").new == 3
    before = contents(kind)
    assert update(at(tmp_path / "one", kind), "abc").new == 0
    other = at(tmp_path / "other", kind)
    assert update(other, "abc").new == 0
    assert contents(kind) == before
    assert update(other, "abcd").new == 1
    assert update(at(tmp_path / "one", kind), "abcd").new == 0


def test_a_copy_is_fetched_once_and_again_when_it_is_another(tmp_path: Path) -> None:
    one, two = at(tmp_path / "one"), at(tmp_path / "two")
    path = one.part("t", "p")
    one.write(path, ROWS)
    assert one.content("t", "p") == one.content("t", "p") == two.content("t", "p")
    assert Apart.asked.count("get") == 2
    two.write(two.part("t", "p"), ROWS.head(1))
    assert one.content("t", "p") == two.content("t", "p")
    assert pl.read_parquet(path).height == 1
    two.remove(two.part("t", "p"))
    assert one.content("t", "p") is None
    assert not path.exists()


def test_a_spoilt_copy_is_fetched_again(tmp_path: Path) -> None:
    store = at(tmp_path)
    store.write(path := store.part("t", "p"), ROWS)
    whole_file = store.content("t", "p")
    path.write_bytes(b"spoilt")
    assert store.content("t", "p") == whole_file
    path.unlink()
    assert store.content("t", "p") == whole_file


def test_a_tag_that_is_the_digest_saves_fetching_back(tmp_path: Path) -> None:
    store = at(tmp_path, Tagged)
    store.write(store.part("t", "p"), ROWS)
    assert store.content("t", "p") is not None
    assert "get" not in Tagged.asked


def test_files_of_one_second_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As large, and written in the same second: believed only when that second has passed."""
    from steptp_dagster.dataset.storage import mirror

    clock = [1000.0]
    monkeypatch.setattr(mirror.time, "time", lambda: clock[0])
    one, two = at(tmp_path / "one", Seconds), at(tmp_path / "two", Seconds)
    path = one.root / "s.seal" / "p.json"
    for content in (b"first", b"other"):
        two.write_bytes(two.root / "s.seal" / "p.json", content)
        one.bring(path)
        assert path.read_bytes() == content
    clock[0] += 3
    one.bring(path)
    fetched = Seconds.asked.count("get")
    one.bring(path)
    assert Seconds.asked.count("get") == fetched


def test_a_stamp_tells_files_apart_and_not_who_looked_at_them() -> None:
    told = {"name": "/b/p", "size": 9, "type": "file", "mtime": 1.5, "atime": 3.0}
    stamp = Stamp.of(told)
    assert Stamp.of({**told, "name": "b/p", "atime": 4.0}) == stamp
    assert stamp.sharp and not Stamp.of({**told, "mtime": 1.0}).sharp
    others = [{**told, "size": 8}, {**told, "mtime": 2.5}, {**told, "ETag": '"a"'}]
    assert stamp.text not in [Stamp.of(other).text for other in others]
    assert Stamp.of(others[2]).tag == "a" and Stamp.of({"size": 9, "ETag": "a"}).sharp


def test_a_file_that_is_replaced_while_it_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = at(tmp_path)
    path = store.root / "s.seal" / "p.json"
    store.write_bytes(path, b"first")
    plain, turns = Apart.get_file, count()

    def disturbed(self: Apart, rpath: str, lpath: str) -> None:
        plain(self, rpath, lpath)
        if next(turns) < 3:
            self.pipe_file(rpath, b"newer")

    monkeypatch.setattr(Apart, "get_file", disturbed)
    store.bring(path)
    assert path.read_bytes() == b"newer"
    monkeypatch.setattr(Apart, "get_file", lambda self, rpath, _: self.rm_file(rpath))
    path.unlink()
    store.bring(path)
    assert not path.exists()


@pytest.mark.parametrize("kind", [Apart, pytest.param(Folders, marks=pytest.mark.slow)])
def test_a_kill_at_any_change_of_the_store_leaves_nothing_half(
    tmp_path: Path, kind: type[Apart]
) -> None:
    """The next build, on this machine or another, makes what a build without a kill makes."""
    assert whole(Apart) and not whole(Folders)
    update(clean := Store(tmp_path / "clean"), "acd")
    update(at(tmp_path / "before", kind), "ab")
    before = contents(kind)
    for number in count():
        kind.clear()
        for path, content in before.items():
            kind().pipe_file(path, content)
        store = at(tmp_path / str(number), kind)
        kind.left = number
        try:
            update(store, "acd")
        except Killed:
            killed = True
        else:
            killed = False
        kind.left, kind.dead = None, False
        assert not killed or number < 100
        reader = at(tmp_path / f"{number} read", kind)
        for path in reader.files(name="part.parquet"):
            reader.bring(path)
            pl.read_parquet(path, hive_partitioning=False)
        assert set(reader.read(FIRST, "p")["name"]) in ({"a", "b"}, {"a", "c", "d"})
        if not killed:
            assert number > len(FOLDERS)
            break
        after = reader if number % 2 else store
        update(after, "acd")
        assert tables(after) == tables(clean), f"killed at change {number}"
        # What was put aside in a partition is removed by who writes there next, as locally.
        names = [path.rpartition("/") for path in contents(kind)]
        assert not [n for f, _, n in names if f.endswith("program=p") and n != "part.parquet"]
        assert not [n for f, _, n in names if n[0] != "." and f.endswith("lock")]


def test_what_a_killed_writer_had_begun_is_removed_by_the_next(tmp_path: Path) -> None:
    left = "/bucket/prefix/first/program={}/.part.parquet.0123456789abcdef"
    for kind in (Apart, Folders):
        for partition in "pq":
            kind().pipe_file(left.format(partition), b"half")
        update(at(tmp_path, kind), "ab")
    # Where files are put whole, nobody writes aside, and nobody asks; other partitions are others'.
    assert left.format("p") in contents(Apart)
    assert {path for path in contents(Folders) if "/." in path} == {left.format("q")}


@pytest.mark.parametrize("error", [OSError(5, "no route"), ValueError("Forbidden"), TimeoutError()])
def test_a_store_that_does_not_answer_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Else a build would make everything again."""
    store = at(tmp_path)
    update(store, "ab")
    monkeypatch.setattr(Apart, "error", error)
    where = "apart://bucket/prefix/first/program=p/part.parquet"
    with pytest.raises(StorageFailure, match=f"cannot read {where}: .*run again when") as raised:
        store.read(FIRST, "p")
    assert "\n" not in str(raised.value)
    with pytest.raises(StorageFailure, match="cannot list"):
        store.files()
    with pytest.raises(StorageFailure, match="cannot list"):
        store.batches("first", "p")
    with pytest.raises(StorageFailure, match="cannot lock"):
        update(store, "abc")
    with pytest.raises(NotWritten, match=f"cannot write {where}"):
        store.write(store.part("first", "p"), ROWS)
    with pytest.raises(NotWritten, match=f"cannot remove {where}"):
        store.remove(store.part("first", "p"))
    monkeypatch.setattr(Apart, "error", None)
    assert store.read(FIRST, "p").height == 2


def test_a_folder_of_stage_files_may_be_copied_there(tmp_path: Path) -> None:
    local = Store(tmp_path / "local")
    update(local, "abc")
    for path in (p for p in local.root.rglob("*") if p.is_file()):
        name = path.relative_to(local.root).as_posix()
        Apart().pipe_file(f"/bucket/prefix/{name}", path.read_bytes())
    store = at(tmp_path)
    assert update(store, "abc").new == 0
    assert store.files(name="part.parquet") == tuple(
        store.root / p.relative_to(local.root) for p in local.files(name="part.parquet")
    )
    assert store.files("other", "part*") == (store.part("other", "p"),)
    write_aside(store.part("unsent", "p"), ROWS)
    assert store.part("unsent", "p") not in store.files()
