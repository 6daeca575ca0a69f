"""What goes wrong in users' files: one refusal each, and nothing that spreads."""

import time
from pathlib import Path
from typing import Any

import pytest

from steptp_dagster.dataset.user_bench import bench
from steptp_dagster.users.files import file_of
from steptp_dagster.users.isolation import Isolation, Limits
from steptp_dagster.users.refusal import UserRefusal
from tests.support.users import BROKEN, BROKEN_PROGRAMS, FUNCTION

BENCH = bench(Limits(60.0, 1500))
NARROW = bench(Limits(60.0, 500))
HASTY = bench(Limits(1.0, 500))
FILE = file_of(Path("mine.py"))


def fine() -> None:
    """The next file is not hurt."""
    found = BENCH.programs(FILE, FUNCTION)
    assert not isinstance(found, UserRefusal), found
    assert [program.form for program in found] == ["program"]


def gone(note: Path) -> bool:
    """Whether the process whose number a file notes has ended; nobody may have taken note of it."""
    stat = Path(f"/proc/{note.read_text()}/stat")
    for _ in range(100):
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_refusal_and_the_next_file_is_fine(name: str) -> None:
    text, reason, line, words = BROKEN[name]
    refused = (HASTY if reason == "timed-out" else NARROW).programs(FILE, text)
    assert isinstance(refused, UserRefusal)
    assert (refused.reason, refused.location) == (reason, f"mine.py:{line}" if line else "mine.py")
    assert words in refused.message
    assert str(refused).endswith(refused.advice)
    fine()


@pytest.mark.parametrize("name", BROKEN_PROGRAMS)
def test_a_broken_program_is_one_refusal(name: str) -> None:
    text, reason, _, words = BROKEN_PROGRAMS[name]
    refused = BENCH.samples(FILE, text, "", ["f32"], 1)
    assert isinstance(refused, UserRefusal)
    assert refused.reason == reason
    assert words in refused.message


def test_nothing_that_a_file_starts_outlives_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    text = (
        "import os, subprocess\n"
        "p = subprocess.Popen(['sh', '-c', 'sleep 300 & sleep 300'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(str(p.pid))\n"
    )
    refused = BENCH.programs(FILE, text)
    assert isinstance(refused, UserRefusal)
    assert refused.reason == "no-program"
    assert gone(note)


def test_what_users_change_in_python_is_gone_with_the_next_file() -> None:
    text = "import torch, builtins\ntorch.set_default_dtype(torch.float64)\nbuiltins.len = None\n"
    assert isinstance(BENCH.programs(FILE, text), UserRefusal)
    found = BENCH.samples(FILE, FUNCTION, "", ["f32"], 1)
    assert not isinstance(found, UserRefusal)
    assert found.samples[0].inputs[0]["dtype"] == "f32"


@pytest.mark.parametrize("task", ["judge", "derive"])
def test_samples_that_want_of_time_decided_say_so(
    monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    late, plain = UserRefusal("timed-out", "was not done after 60 s", "mine.py"), Isolation.ask

    def ask(self: Isolation, file: Any, wanted: str, *rest: Any, **named: Any) -> Any:
        return late if wanted == task else plain(self, file, wanted, *rest, **named)

    monkeypatch.setattr(Isolation, "ask", ask)
    found = BENCH.samples(FILE, FUNCTION, "", ["f32"], 2)
    assert not isinstance(found, UserRefusal)
    assert found.late == late
    assert found.samples


@pytest.mark.slow
def test_a_zygote_that_is_gone_is_started_again(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    text = (
        f"import os\nopen({str(note)!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), 9)\nwhile True: pass\n"
    )
    refused = HASTY.programs(FILE, text)
    assert isinstance(refused, UserRefusal)
    assert refused.reason == "crashed"
    assert gone(note)
    fine()


def test_helpers_of_the_folder_are_found_and_do_not_shadow_python(tmp_path: Path) -> None:
    (tmp_path / "_layers.py").write_text(FUNCTION.replace("def program", "def made"))
    (tmp_path / "random.py").write_text("raise SystemExit")
    text = "import random\nfrom _layers import made\nprogram = made\n"
    found = BENCH.programs(file_of(tmp_path / "main.py"), text)
    assert not isinstance(found, UserRefusal), found
    assert not (tmp_path / "__pycache__").exists()


def test_replies_that_are_none_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Isolation, "ask", lambda *_, **__: {"leir": 3, "programs": 5})
    assert isinstance(BENCH.programs(FILE, ""), UserRefusal)
    assert isinstance(BENCH.samples(FILE, "", "", ["f32"], 1), UserRefusal)
    assert isinstance(BENCH.translation(FILE, "", "", {}), UserRefusal)
