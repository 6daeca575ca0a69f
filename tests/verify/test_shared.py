"""Results that processes share: computed once, whoever asks, and never half written."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.verify import original as originals_module
from steptp_dagster.verify import shared
from steptp_dagster.verify.original import evaluate
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.zoo import originals


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    shared.use(tmp_path)
    yield tmp_path
    shared.use(None)


def test_without_a_folder_nothing_is_shared() -> None:
    made: list[int] = []
    for _ in range(2):
        shared.once("key", lambda: made.append(1))
    assert len(made) == 2


def test_a_result_is_made_once(folder: Path) -> None:
    made: list[int] = []

    def make() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        made.append(1)
        return np.array([1.0, np.nan, -0.0])

    first, second = shared.once(("key", 1), make), shared.once(("key", 1), make)
    assert first.tobytes() == second.tobytes()
    assert made == [1]
    shared.once(("key", 2), make)
    assert made == [1, 1]
    for file in folder.iterdir():
        file.write_bytes(b"spoilt")
    shared.once(("key", 1), make)
    assert made == [1, 1, 1]


def _slowly(folder: str, log: str) -> None:
    shared.use(Path(folder))

    def make() -> int:
        with Path(log).open("a") as lines:
            lines.write(f"{os.getpid()}\n")
        time.sleep(0.3)
        return 7

    assert shared.once("slow", make) == 7


def test_processes_that_ask_together_compute_it_once(tmp_path: Path) -> None:
    folder, log = tmp_path / "shared", tmp_path / "log"
    folder.mkdir()
    context = multiprocessing.get_context("forkserver")
    first = context.Process(target=_slowly, args=(str(folder), str(log)))
    first.start()
    while not log.exists():
        time.sleep(0.01)
    os.kill(int(log.read_text()), signal.SIGKILL)  # dies with the lock
    first.join()
    rest = [context.Process(target=_slowly, args=(str(folder), str(log))) for _ in range(3)]
    for process in rest:
        process.start()
    for process in rest:
        process.join()
    assert [process.exitcode for process in rest] == [0, 0, 0]
    assert len(log.read_text().splitlines()) == 2  # the one that died, and one more


def test_old_results_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_FILES", 3)
    monkeypatch.setattr(shared, "_LARGEST", 1000)
    for key in range(6):
        shared.once(key, lambda: "x")
    assert len([p for p in folder.iterdir() if not p.suffix]) == 3
    shared.once("large", lambda: "x" * 2000)
    assert len([p for p in folder.iterdir() if not p.suffix]) == 3


def test_what_an_original_computes_is_the_same_from_the_folder(folder: Path) -> None:
    signed = read(originals.SOFTMAX).signed
    first = evaluate(signed, 3)
    originals_module._kept.clear()
    assert len([p for p in folder.iterdir() if not p.suffix]) == 1
    again = evaluate(signed, 3)
    assert again is not first
    assert again.margins == first.margins
    assert [c.name for c in again.cases] == [c.name for c in first.cases]
    for mine, other in zip(first.cases, again.cases, strict=True):
        assert (mine.errors, mine.noise, mine.data_scale) == (
            other.errors,
            other.noise,
            other.data_scale,
        )
        for arrays in ("inputs", "reference", "working"):
            kept, read_back = getattr(mine, arrays), getattr(other, arrays)
            assert all(kept[n].tobytes() == read_back[n].tobytes() for n in kept)


def test_the_pool_removes_its_folder(tmp_path: Path) -> None:
    signed = read(originals.SCALE_ADD).signed
    with Verifier(1, cache_dir=tmp_path) as verifier:
        [(_, verdict)] = verifier.verify_many([("key", signed, signed)])
        [made] = tmp_path.iterdir()
        assert len([p for p in made.iterdir() if not p.suffix]) == 1
    assert verdict.accepted
    assert list(tmp_path.iterdir()) == []
