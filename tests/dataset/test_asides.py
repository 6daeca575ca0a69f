"""What a process that was killed left beside a file goes; what others are making stays."""

import os
import subprocess
import sys
from pathlib import Path

from steptp_dagster.dataset.asides import aside


def test_leftovers_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "set [1].duckdb"
    own = aside(path)
    assert own.parent == tmp_path and not own.exists()
    prefix = own.name.removesuffix(str(os.getpid()))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = [tmp_path / f"{prefix}{ended.pid}", tmp_path / f"{prefix}{ended.pid}.wal", own]
    stay = [tmp_path / f"{prefix}{os.getppid()}", path, tmp_path / f".{path.name}.other.1"]
    for file in stay:
        file.write_text("x")
    gone[0].mkdir()
    (gone[0] / "in it").write_text("x")
    for file in gone[1:]:
        file.write_text("x")
    assert aside(path) == own
    assert [file for file in (*gone, *stay) if file.exists()] == stay
