"""Work over processes with results in order, so that their number changes nothing but time."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Workers:
    """A pool of processes, or none: then work is done in this one."""

    pool: ProcessPoolExecutor | None

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


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which closes the pool; workers would print tracebacks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Open ``count`` worker processes (1: none) and close them at the end, also on errors."""
    if count <= 1:
        yield Workers(None)
        return
    # Fresh processes: forking one that has imported torch or runs threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_ignore_interrupts)
    try:
        yield Workers(pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
