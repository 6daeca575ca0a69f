"""Killing workers and the process that has the pool, at random times."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.shared import shared_folder
from steptp_dagster.verify.verdict import verify
from steptp_dagster.verify.zoo import originals

ORIGINAL = read(originals.SOFTMAX).signed
OWNER = """
import sys
from steptp_dagster.leir.fileform import read
from steptp_dagster.verify.pool import Verifier
from steptp_dagster.verify.zoo import originals
from tests.support import judges

signed = read(originals.SCALE_ADD).signed
spinning = read(
    "L^{106}_{a=0}[D^{f32,g}_{a}=1:a<20;];", inherit=signed.signature
).signed
with Verifier(2, judge=judges.telling, cache_dir=sys.argv[1]) as verifier:
    list(verifier.verify_many((i, signed, spinning) for i in range(100)))
"""


@pytest.mark.slow
def test_killed_workers_cost_time_only() -> None:
    pairs = [(i, ORIGINAL, ORIGINAL) for i in range(60)]
    expected = verify(ORIGINAL, ORIGINAL)
    stop = threading.Event()
    killed: list[int] = []

    def kill_now_and_then(workers: Verifier) -> None:
        chosen = random.Random(4)
        while not stop.wait(chosen.uniform(0.5, 3.0)):
            processes = workers._pool._pool_manager.worker_manager.workers.values()
            if alive := [process.pid for process in processes if process.pid is not None]:
                killed.append(chosen.choice(alive))
                os.kill(killed[-1], signal.SIGKILL)

    with Verifier(2) as verifier:
        thread = threading.Thread(target=kill_now_and_then, args=(verifier,))
        thread.start()
        found = [verdict for _, verdict in verifier.verify_many(pairs)]
        stop.set()
        thread.join()
    assert killed
    assert found == [expected] * 60


@pytest.mark.slow
def test_workers_end_with_the_process_that_has_them(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "STEPTP_TEST_MARKER": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while len(spinning := list(tmp_path.glob("worker-*"))) < 2:
        assert time.monotonic() < deadline
        assert owner.poll() is None
        time.sleep(0.1)
    workers = [int(path.name.removeprefix("worker-")) for path in spinning]
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 90
    while any(_runs(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived the process that had it"
        time.sleep(0.1)
    # What it shared is removed by the next pool in the same folder.
    assert len(list(tmp_path.glob("steptp-workers-*"))) == 1
    with shared_folder(tmp_path) as mine:
        assert [str(path) for path in tmp_path.glob("steptp-workers-*")] == [mine]


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
