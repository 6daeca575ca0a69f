"""Work over processes and threads: order, sharing of workers, errors, interruption."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

import pytest

from steptp_dagster.dataset.parallel import Workers, side_by_side, workers
from tests.support.judges import meet, nap

ROOT = Path(__file__).parents[2]


def test_results_are_in_the_order_of_the_items_for_any_count() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.05 if item == 0 else 0.0)
        return item * item

    for count in (1, 2, 5):
        found = side_by_side(slow_first, range(6), count, lambda: None)
        assert list(found) == [0, 1, 4, 9, 16, 25]


def test_calls_with_one_unit_each_keep_all_workers_busy(tmp_path: Path) -> None:
    with workers(2) as pool:

        def one_unit(_: str) -> list[int]:
            return list(pool.map(meet, [str(tmp_path)]))

        found = list(side_by_side(one_unit, ["a", "b"], pool.count, pool.stop))
    assert len({pid for pids in found for pid in pids} - {os.getpid()}) == 2


def test_one_worker_works_in_this_process_and_thread() -> None:
    with workers(1) as pool:
        assert pool == Workers(None)
        here = side_by_side(lambda _: threading.get_ident(), [0, 1], pool.count, pool.stop)
        assert set(here) == {threading.get_ident()}
        assert list(pool.map(len, ["abc"])) == [3]


def test_an_error_stops_the_others_soon() -> None:
    ended: list[type[BaseException]] = []

    with workers(2) as pool:

        def call(item: int) -> None:
            if item == 0:
                time.sleep(0.5)
                raise ValueError("first")
            try:
                list(pool.map(nap, [0.3] * 40))
            except BaseException as error:
                ended.append(type(error))
                raise

        with pytest.raises(ValueError, match="first"):
            list(side_by_side(call, range(5), pool.count, pool.stop))
    # Whoever had begun got an error; the others never began.
    assert 1 <= len(ended) <= 3
    assert set(ended) <= {CancelledError, RuntimeError}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as on a terminal: a shell's background jobs, and what they start, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_caller_waits_for_nothing_but_work_in_flight() -> None:
    with workers(2) as pool:
        ended: list[int] = []

        def call(item: int) -> int:
            napped = len(list(pool.map(nap, [0.3] * 40)))
            ended.append(item)
            return napped

        def interrupted() -> Iterator[int]:
            yield from side_by_side(call, range(4), pool.count, pool.stop)

        timer = threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(interrupted())
        assert ended == []


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from steptp_dagster.dataset.parallel import workers\n"
        "from tests.support.judges import own_id\n"
        "with workers(2) as pool:\n"
        "    print(*set(pool.map(own_id, range(8))), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # Not through a pipe: workers that stay would keep it open, and this would wait for them.
    told = tmp_path / "told"
    with told.open("w") as out:
        ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=out, check=False)
    assert ended.returncode == -signal.SIGKILL
    ids = [int(word) for word in told.read_text().split()]
    assert ids
    until = time.monotonic() + 60
    while any(alive(number) for number in ids):
        assert time.monotonic() < until, "a worker outlived its parent"
        time.sleep(0.05)


def alive(number: int) -> bool:
    """Whether there is a process of this number that has not ended."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return not _waits_to_be_buried(number)


def _waits_to_be_buried(number: int) -> bool:
    status = Path(f"/proc/{number}/stat")
    with suppress(OSError):
        return status.read_text().rpartition(")")[2].split()[0] in "ZX"
    return False
