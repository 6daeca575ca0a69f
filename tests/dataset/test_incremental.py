import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import BadRows, Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.schemas import ZOO, Row
from steptp_dagster.dataset.store import PartitionBusy, Store

STAGE = Stage("zoo", {"zoo": ZOO}, {"zoo": ("pair",)}, again=pl.col("reason") == "timed-out")


def units(names: str, version: str = "1") -> list[Unit]:
    return [Unit(digest("test", name, version), name) for name in names]


class Computer:
    """Makes one row a unit, notes what it was asked for, and can fail at a unit.

    Units named in ``late`` are not done in time.
    """

    def __init__(
        self, fail_at: str = "", error: type[BaseException] = RuntimeError, late: str = ""
    ) -> None:
        self.asked: list[str] = []
        self.fail_at = fail_at
        self.error = error
        self.late = late

    def __call__(self, missing: Sequence[Unit]) -> Iterator[Made]:
        for unit in missing:
            if unit.payload == self.fail_at:
                raise self.error("the machine fell over")
            self.asked.append(unit.payload)
            row = {
                "pair": unit.payload,
                "kind": "k",
                "wrong": True,
                "accepted": False,
                "reason": "timed-out" if unit.payload in self.late else "too-large",
                "published_rule": None,
            }
            yield Made(unit, {"zoo": [row]}, 0.5)


def build(
    store: Store, names: str, computer: Callable[[Sequence[Unit]], Iterator[Made]], **more: str
) -> Report:
    version = more.get("version", "1")
    origin = Origin(more.get("run", "run-1"), version)
    return update(store, STAGE, "p", units(names, version), computer, origin=origin, batch=2)


def pairs(store: Store) -> list[str]:
    return store.read(ZOO, "p")["pair"].to_list()


def test_only_missing_units_are_computed(tmp_path: Path) -> None:
    store, computer = Store(tmp_path), Computer()
    assert build(store, "cab", computer) == Report(3, 0, 0, {"zoo": 3})
    assert build(store, "abcd", computer) == Report(1, 3, 0, {"zoo": 4})
    assert computer.asked == ["c", "a", "b", "d"]
    assert pairs(store) == ["a", "b", "c", "d"]


def test_unwanted_units_are_dropped(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(store, "abc", Computer())
    assert build(store, "b", Computer()) == Report(0, 1, 2, {"zoo": 1})
    assert pairs(store) == ["b"]


def test_other_code_computes_again(tmp_path: Path) -> None:
    store, computer = Store(tmp_path), Computer()
    build(store, "ab", Computer())
    assert build(store, "ab", computer, version="2") == Report(2, 0, 2, {"zoo": 2})
    assert computer.asked == ["a", "b"]


def test_nothing_to_do_touches_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(store, "ab", Computer())
    path = store.part("zoo", "p")
    os.utime(path, (1, 1))
    assert build(store, "ab", Computer(fail_at="a")) == Report(0, 2, 0, {"zoo": 2})
    assert path.stat().st_mtime == 1


def test_kept_units_keep_their_first_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(store, "a", Computer(), run="run-1")
    build(store, "ab", Computer(), run="run-2")
    lineage = pl.read_parquet(store.part("lineage-zoo", "p"), hive_partitioning=False)
    runs = dict(zip(lineage["unit"], lineage["run_id"], strict=True))
    assert [runs[u.key] for u in units("ab")] == ["run-1", "run-2"]


def test_what_the_machine_decided_is_made_again(tmp_path: Path) -> None:
    store, slow, fast = Store(tmp_path / "a"), Computer(late="bd"), Computer()
    assert build(store, "abcd", slow) == Report(4, 0, 0, {"zoo": 4}, unsettled=2)
    assert pairs(store) == ["a", "b", "c", "d"]
    assert build(store, "abcd", Computer(late="d")).unsettled == 1
    assert build(store, "abcd", fast) == Report(1, 3, 0, {"zoo": 4})
    assert fast.asked == ["d"]
    clean = Store(tmp_path / "b")
    build(clean, "abcd", Computer())
    assert store.part("zoo", "p").read_bytes() == clean.part("zoo", "p").read_bytes()
    lineage = pl.read_parquet(store.part("lineage-zoo", "p"), hive_partitioning=False)
    assert lineage.height == 4


def test_what_was_made_again_counts_although_a_kill_left_the_old_row(tmp_path: Path) -> None:
    store, again = Store(tmp_path), Computer(late="b")
    build(store, "ab", Computer(late="ab"))
    with pytest.raises(RuntimeError):
        build(store, "abcd", Computer("d"))
    assert store.read(ZOO, "p")["reason"].to_list() == ["timed-out"] * 2
    assert build(store, "abcd", again) == Report(1, 3, 0, {"zoo": 4})
    assert again.asked == ["d"]
    assert store.read(ZOO, "p")["reason"].to_list() == ["too-large"] * 4


class Interrupt(BaseException):
    """As Dagster turns Ctrl-C into: neither an Exception nor a KeyboardInterrupt."""


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Interrupt])
def test_an_error_keeps_what_was_done(tmp_path: Path, error: type[BaseException]) -> None:
    store, again = Store(tmp_path), Computer()
    with pytest.raises(error, match="fell over"):
        build(store, "abcde", Computer("d", error))
    assert len(store.batches("zoo", "p")) == 2
    assert build(store, "abcde", again).new == 2
    assert again.asked == ["d", "e"]
    assert store.batches("zoo", "p") == ()


def test_bytes_do_not_depend_on_history(tmp_path: Path) -> None:
    at_once, in_parts = Store(tmp_path / "a"), Store(tmp_path / "b")
    build(at_once, "abcde", Computer())
    with pytest.raises(RuntimeError):
        build(in_parts, "edcba", Computer(fail_at="b"))
    build(in_parts, "ax", Computer())
    build(in_parts, "abcde", Computer())
    a, b = (s.part("zoo", "p").read_bytes() for s in (at_once, in_parts))
    assert a == b


def test_rows_that_break_the_schema_are_not_written(tmp_path: Path) -> None:
    def bad(missing: Sequence[Unit]) -> Iterator[Made]:
        for unit in missing:
            row: Row = dict.fromkeys(("pair", "reason", "published_rule"))
            row |= {"kind": "k", "wrong": True, "accepted": True}
            yield Made(unit, {"zoo": [row]}, 0.0)

    store = Store(tmp_path)
    with pytest.raises(BadRows, match=r"zoo: 1 rows break the schema: pair: not_nullable"):
        build(store, "a", bad)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_partition_has_one_writer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.locked("zoo", "p"), pytest.raises(PartitionBusy, match="'zoo' of 'p'"):
        build(store, "a", Computer())
    assert build(store, "a", Computer()).new == 1


def test_a_killed_process_loses_at_most_its_batch(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from tests.dataset.test_incremental import Computer, build
        from steptp_dagster.dataset.store import Store

        class Killed(Computer):
            def __call__(self, missing):
                for made in super().__call__(missing):
                    if made.unit.payload == "d":
                        os.kill(os.getpid(), signal.SIGKILL)
                    yield made

        build(Store(Path(sys.argv[1])), "abcdef", Killed())
    """)
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    store, again = Store(tmp_path), Computer()
    assert build(store, "abcdef", again) == Report(4, 2, 0, {"zoo": 6})
    assert again.asked == ["c", "d", "e", "f"]
