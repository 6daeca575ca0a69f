"""Work over processes with results in order, so that their number changes nothing but time.

Programs are brought up to date ``side_by_side``, each in a thread of the main process that waits
for worker processes most of the time; all threads share the workers, so that these have something
to do while one program is written, and while another has only one unit left.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Seconds after which the main thread looks for signals.
_HEARTBEAT: Final = 0.5


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Workers:
    """A pool of ``count`` processes, or none: then work is done in this one."""

    pool: ProcessPoolExecutor | None
    count: int = 1

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Results in the order of the items; ``function`` must be a module's own function."""
        if self.pool is None:
            return map(function, items)
        # Processes start here, with the signals that are blocked now: none dies of Ctrl-C while it
        # imports. The main process gets the signal as soon as they are unblocked.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self.pool.map(function, items)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def stop(self) -> None:
        """Drop what no process has begun; whoever waits for it gets CancelledError."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)


def side_by_side(
    function: Callable[[T], R], items: Sequence[T], count: int, stop: Callable[[], None]
) -> Iterator[R]:
    """Results in the order of the items; with more than one worker, several items at a time.

    ``count`` is the number of workers that the calls share. When a call raises, or the caller is
    interrupted, ``stop`` is called, which must make the calls in flight fail soon; the first
    error, in the order of the items, is raised when they have.
    """
    if count <= 1:
        yield from map(function, items)
        return
    # One more than workers: while one call is busy in this process, no worker is idle.
    threads = ThreadPoolExecutor(count + 1, thread_name_prefix="program")
    try:
        calls = [threads.submit(function, item) for item in items]
        for call in calls:
            # The system may hand Ctrl-C to another thread, and this one hears of it when it wakes.
            while not wait([call], timeout=_HEARTBEAT).done:
                pass
            yield call.result()
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        stop()
        raise
    finally:
        threads.shutdown(wait=True)


def _prepare() -> None:
    """Leave Ctrl-C to the main process, and end with it.

    It closes the pool, where workers would print tracebacks. One that is killed closes nothing, and
    its workers would wait for work for ever: each holds the end of the pipe that the others read.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Open ``count`` worker processes (1: none) and close them at the end, also on errors."""
    if count <= 1:
        yield Workers(None)
        return
    # Fresh processes: forking one that has imported torch or runs threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_prepare)
    try:
        yield Workers(pool, count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
