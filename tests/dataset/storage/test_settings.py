"""The setting ``storage``: what it may be, and what is said of what it may not be."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from resources.store import ParquetStore
from steptp_dagster import paths
from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset.storage import probe
from steptp_dagster.dataset.storage.address import BadStorage, check, folder_of, shown
from steptp_dagster.dataset.store import Store, opened
from tests.support.filesystems import Apart, Deaf, contents, register


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register()
    opened.cache_clear()
    yield
    opened.cache_clear()


def test_by_default_stage_files_lie_in_the_data_folder(tmp_path: Path) -> None:
    assert opened(tmp_path) == Store(tmp_path / "stages")
    assert ParquetStore(data=str(tmp_path)).files == Store(tmp_path / "stages")


@pytest.mark.parametrize("prefix", ["", "file://", "local://"])
def test_a_local_folder_is_used_as_such(tmp_path: Path, prefix: str) -> None:
    store = opened(tmp_path / "data", f"{prefix}{tmp_path}/parts")
    assert store == Store(tmp_path / "parts")
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_store_elsewhere_has_its_copies_in_the_data_folder(tmp_path: Path) -> None:
    one, two = (opened(tmp_path, f"apart://bucket/{n}") for n in (1, 2))
    assert one.root.parent == two.root.parent == tmp_path / "mirror"
    assert one.root != two.root
    assert ParquetStore(data=str(tmp_path), storage="apart://bucket/1").files == one
    assert contents(Apart) == {}, "what it was tried with is gone"


WRONG = {
    "nothing://x": "fsspec knows no protocol 'nothing'; a local folder is a path without one",
    "sftp://me:secret@host/x": "needs a package that is not installed: .*paramiko",
    "simplecache::memory://x": "simplecache keeps copies without asking",
    "dir::nothing://x": "fsspec knows no protocol 'nothing'",
}
UNUSABLE = {
    "memory://": "names no folder or bucket",
    "deaf://bucket": "does not show at once what was written",
    "data://bucket": "cannot be used: .*files in it may be read, listed, replaced and removed",
    "dir::file:///proc/none": "cannot be used: .*/proc/none",
    "file:///proc/none": "may not be written to: .*No such file or directory",
}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sftp://me:secret@host/x", "sftp://me:***@host/x"),
        ("sftp://me:se@cr@et@host:22/x", "sftp://me:***@host:22/x"),
        ("sftp://me:se/cret@host/x", "sftp://me:***@host/x"),
        ("sftp://:secret@host/x", "sftp://:***@host/x"),
        ("dir::sftp://me:s3cret@host/x", "dir::sftp://me:***@host/x"),
        ("sftp://me@host:22/x", "sftp://me@host:22/x"),
        ("sftp://host:22/x@2", "sftp://host:22/x@2"),
        ("abfs://box@account/x", "abfs://box@account/x"),
    ],
)
def test_a_url_is_told_without_its_password(url: str, told: str) -> None:
    assert shown(url) == told


@pytest.mark.parametrize("url", WRONG)
def test_what_the_text_gives_away_is_said_when_settings_are_read(url: str) -> None:
    with pytest.raises(BadStorage, match=WRONG[url]) as raised:
        check(url)
    assert "secret" not in str(raised.value)
    with pytest.raises(BadStorage, match=WRONG[url]):
        ParquetStore(data="data", storage=url)
    assert ParquetStore(data="data", storage=dg.EnvVar("STEPTP_STORAGE"))


@pytest.mark.parametrize("url", [*WRONG, *UNUSABLE])
def test_a_build_says_it_before_it_begins(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "workspace.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(paths.DATA_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv(paths.STORAGE_VARIABLE, url)
    monkeypatch.delenv(paths.HOME_VARIABLE, raising=False)
    for arguments in ([], ["--storage", url]):
        done = CliRunner().invoke(steptp, ["build", "--profile", "tiny", *arguments])
        assert done.exit_code == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("steptp: storage '")
        with pytest.raises(BadStorage, match={**WRONG, **UNUSABLE}[url]) as raised:
            opened(tmp_path, url)
        assert line == f"steptp: {raised.value}"
    assert not (tmp_path / ".dagster").exists()


def test_a_folder_that_is_read_only_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refused)
    with pytest.raises(BadStorage, match=r"may not be written to: .*Permission denied"):
        opened(tmp_path, str(tmp_path / "parts"))


def test_a_store_that_never_answers_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    done = threading.Event()
    monkeypatch.setattr(probe, "LIMIT", 0.05)
    monkeypatch.setattr(Apart, "info", lambda *_: done.wait(20))
    monkeypatch.setattr(Apart, "ls", lambda *_, **__: done.wait(20))
    with pytest.raises(BadStorage, match="does not answer within 0 s"):
        opened(tmp_path, "apart://bucket")
    done.set()


def test_what_was_not_there_yet_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Apart, "error", OSError("no route"))
    with pytest.raises(BadStorage, match="OSError: no route"):
        opened(tmp_path, "apart://bucket")
    monkeypatch.setattr(Apart, "error", None)
    assert opened(tmp_path, "apart://bucket").remote is not None


def test_a_path_is_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("parts") == tmp_path / "parts"
    assert folder_of("FILE:///parts/a") == Path("/parts/a")
    assert folder_of("s3://bucket") is folder_of("dir::file:///x") is None


def test_a_deaf_store_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadStorage):
        opened(tmp_path, "deaf://bucket")
    assert contents(Deaf) == {}
