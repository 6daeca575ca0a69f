"""A stage with several tables: killed at every file that it touches, or with files spoilt."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pandera.polars as pa
import polars as pl
import pytest

from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.store import Store

FIRST = pa.DataFrameSchema(
    {"name": pa.Column(pl.String, unique=True), "unit": pa.Column(pl.String)},
    name="first",
    strict=True,
)
#: Several rows a unit and none for some, as steps are to surveys.
OTHER = pa.DataFrameSchema(
    {"item": pa.Column(pl.String, unique=True), "unit": pa.Column(pl.String)},
    name="other",
    strict=True,
)
STAGE = Stage("s", {"first": FIRST, "other": OTHER}, {"first": ("name",), "other": ("item",)})
SPARSE = replace(STAGE, sparse=True)
FOLDERS = (*STAGE.tables, *STAGE.journals)


class Killed(BaseException):
    """Ends a build as a kill does: nobody catches it."""


def build(store: Store, names: str, stage: Stage = STAGE) -> Report:
    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        for unit in missing:
            others = [{"item": f"{unit.payload}{i}"} for i in range(ord(unit.payload) % 3)]
            first = [] if stage.sparse and unit.payload == "b" else [{"name": unit.payload}]
            rows = {"first": first, "other": others}
            yield Made(unit, rows, 0.5)

    wanted = [Unit(digest("test", name), name) for name in names]
    return update(store, stage, "p", wanted, compute, origin=Origin("run"), batch=2)


def contents(store: Store) -> dict[str, bytes]:
    """The finished tables."""
    return {name: store.part(name, "p").read_bytes() for name in STAGE.tables}


def journal_units(store: Store) -> set[tuple[str, ...]]:
    """The sorted units of each journal."""
    return {
        tuple(pl.read_parquet(store.part(n, "p"), hive_partitioning=False)["unit"].sort())
        for n in STAGE.journals
    }


def killed_at(number: int, patch: pytest.MonkeyPatch, action: Callable[[], Any]) -> bool:
    """Run ``action``, killed before it writes or removes its ``number``-th file; whether it was."""
    touched = count()

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def touch(*args: Any, **named: Any) -> Any:
            if next(touched) == number:
                raise Killed
            return real(*args, **named)

        return touch

    with patch.context() as p:
        p.setattr(Store, "write", counted(Store.write))
        p.setattr(Store, "remove", counted(Store.remove))
        try:
            action()
        except Killed:
            return True
    return False


@pytest.mark.parametrize("stage", [STAGE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("before", "killed", "after"),
    [("", "abc", "abcd"), ("abc", "bd", "acde"), ("abc", "bd", "abc"), ("ab", "acd", "acd")],
)
def test_a_kill_at_any_file_leaves_no_trace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    killed: str,
    after: str,
    stage: Stage,
) -> None:
    clean = Store(tmp_path / "clean")
    build(clean, after, stage)
    for number in count():
        store = Store(tmp_path / str(number))
        if before:
            build(store, before, stage)
        if not killed_at(number, monkeypatch, partial(build, store, killed, stage)):
            assert number > len(FOLDERS)
            break
        build(store, after, stage)
        assert contents(store) == contents(clean), f"killed at file {number}"
        assert journal_units(store) == journal_units(clean)
        assert build(store, after, stage).new == 0


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("spoil", ["removed", "cut short", "empty", "other columns"])
@pytest.mark.parametrize("stage", [STAGE, SPARSE], ids=["dense", "sparse"])
def test_a_spoilt_file_is_made_again(tmp_path: Path, folder: str, spoil: str, stage: Stage) -> None:
    store = Store(tmp_path)
    build(store, "abcde", stage)
    whole = contents(store)
    path = store.part(folder, "p")
    if spoil == "removed":
        path.unlink()
    elif spoil == "other columns":
        pl.DataFrame({"unit": [1]}).write_parquet(path)
    else:
        path.write_bytes(path.read_bytes()[: 40 if spoil == "cut short" else 0])
    assert build(store, "abcde", stage).new == 5
    assert contents(store) == whole
    assert build(store, "abcde", stage).new == 0


def test_units_without_rows_are_done_where_their_stage_is_sparse(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert build(store, "ab", SPARSE).new == 2
    assert build(store, "abc", SPARSE) == Report(1, 2, 0, {"first": 2, "other": 3})
    assert build(store, "ac", SPARSE).dropped == 1
    assert build(store, "b", SPARSE).new == 1


def test_files_that_a_killed_writer_had_begun_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(store, "ab")
    left = [store.part(name, "p").with_name(".batch-00001.parquet.77.1") for name in FOLDERS]
    for path in left:
        path.write_bytes(b"half")
    other = store.part("first", "q").with_name(".part.parquet.77.1")
    other.parent.mkdir(parents=True)
    other.write_bytes(b"of another partition")
    build(store, "ab")
    assert [path for path in (*left, other) if path.exists()] == [other]
