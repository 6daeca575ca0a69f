"""What is said when files cannot be written, and what is left."""

import errno
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from steptp_dagster.dataset.store import NotWritten, SpoiltFile, Store, explained, write_aside

ROWS = pl.DataFrame({"a": range(1000)})


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A finished file."""
    path = tmp_path / "t" / "program=p" / "part.parquet"
    write_aside(path, ROWS)
    return path


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    """As polars and the system say it: every write to this device fails so."""
    said = "the disk is full; make room and run again"
    with pytest.raises(NotWritten, match=said), explained(tmp_path):
        ROWS.write_parquet("/dev/full")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EROFS, "may not be written to; change its owner or mode"),
        (errno.EACCES, "may not be written to"),
        (errno.EIO, "nothing was replaced"),
    ],
)
def test_the_file_that_was_there_stays(
    kept: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    before = kept.read_bytes()

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(NotWritten, match=advice) as raised:
        write_aside(kept, ROWS.head(1))
    assert str(kept) in str(raised.value)
    assert kept.read_bytes() == before
    assert [p.name for p in kept.parent.iterdir()] == ["part.parquet"]


@pytest.fixture
def short_files(kept: Path) -> Iterator[Path]:
    """The finished file, and then files end after 2000 bytes, as on a disk that fills."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    yield kept
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_ends_half_way_is_gone_and_the_old_one_stays(short_files: Path) -> None:
    kept = short_files
    before = kept.read_bytes()
    large = pl.DataFrame({"a": [str(n) * 7 for n in range(10_000)]})
    with pytest.raises(NotWritten, match=r"no file may be that large \(ulimit -f\)"):
        write_aside(kept, large)
    with pytest.raises(NotWritten, match="ulimit"):
        Store(kept.parents[2]).write_bytes(kept.with_name("seal.json"), bytes(5000))
    assert kept.read_bytes() == before
    assert [p.name for p in kept.parent.iterdir()] == ["part.parquet"]


def test_a_file_in_the_way_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "stages").write_text("in the way")
    store = Store(tmp_path / "stages")
    with pytest.raises(NotWritten, match="a file is where a folder should be"):
        write_aside(store.part("t", "p"), ROWS)
    with pytest.raises(NotWritten), store.locked("t", "p"):
        pass


def test_threads_that_write_one_file_do_not_hurt_each_other(tmp_path: Path) -> None:
    """Programs side by side note the same run; each file is whole, whoever is last."""
    path = tmp_path / "runs" / "program=r" / "part.parquet"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: write_aside(path, ROWS), range(64)))
    assert pl.read_parquet(path).equals(ROWS)
    assert [p.name for p in path.parent.iterdir()] == ["part.parquet"]


def test_a_file_that_may_not_be_read_is_said(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest decides what is made again, so it is neither there nor missing."""

    def refused(self: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(SpoiltFile, match=f"{kept} may not be read; change its owner or mode"):
        Store(kept.parents[2]).content("t", "p")
