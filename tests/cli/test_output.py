import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from steptp_dagster import paths, progress
from steptp_dagster.cli.output import Failure, emit, read_text, table


def test_a_table_without_rows_has_its_head() -> None:
    assert table([], ["a", "b"]) == "a  b"


def test_missing_values_are_blank() -> None:
    assert table([{"a": None, "b": "x"}]) == "a  b\n   x"


def test_read_text_fails_in_words(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="gone: No such file"):
        read_text(str(tmp_path / "gone"))
    binary = tmp_path / "binary"
    binary.write_bytes(b"ok \xff")
    with pytest.raises(Failure, match=r"not UTF-8 text \(byte 3\)"):
        read_text(str(binary))


def test_a_closed_input_fails_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Failure, match="standard input is closed"):
        read_text("-")


def test_a_full_device_fails_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(Failure, match="standard output: No space left"):
        emit({}, "text", as_json=True)


def test_progress_elsewhere_is_plain_lines() -> None:
    out = StringIO()
    show: progress.Progress[int] = progress.on_stream(out)
    assert list(show("steps", 3, [1, 2, 3])) == [1, 2, 3]
    assert out.getvalue().startswith("steps: 3/3, ")


def test_progress_on_a_terminal_is_a_bar() -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    show: progress.Progress[int] = progress.on_stream(out)
    assert list(show("steps", 3, [1, 2, 3])) == [1, 2, 3]
    assert "100%" in out.getvalue()


def test_the_project_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workspace.yaml").touch()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    monkeypatch.delenv(paths.DATA_VARIABLE, raising=False)
    monkeypatch.delenv(paths.HOME_VARIABLE, raising=False)
    assert paths.data() == tmp_path / "data"
    assert paths.dagster_home() == tmp_path / ".dagster"
    assert "enabled: false" in (tmp_path / ".dagster" / "dagster.yaml").read_text()


def test_a_closed_pipe_is_no_error() -> None:
    code = (
        "import os, sys\n"
        "from click.testing import CliRunner\n"
        "from steptp_dagster.cli.main import main\n"
        "read, write = os.pipe()\n"
        "os.dup2(write, 1); os.close(write); os.close(read)\n"
        "sys.argv = ['steptp', '--help']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
