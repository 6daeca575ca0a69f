"""Verdicts from isolated worker processes: a crash or a hang costs one pair, never the run."""

import multiprocessing
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from pebble import ProcessExpired, ProcessPool

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import reasons, worker
from steptp_dagster.verify.record import Verdict, rejection
from steptp_dagster.verify.shared import shared_folder

Key = TypeVar("Key", bound=Hashable)

#: Judges one batch inside a worker: pairs, seed, target.
Judge = Callable[[list[tuple[SignedProgram, SignedProgram]], int, str], list[Verdict]]

BATCH: Final = 20
#: How often a pair that a worker died of is judged alone.
_TRIES: Final = 2
#: How often workers that all died are replaced.
_RENEWALS: Final = 100
_PRELOAD: Final = ["steptp_dagster.verify.preload"]


class Verifier:
    """A pool of worker processes that judge pairs. A context manager.

    ``timeout_s`` bounds one pair (and one batch at first: a batch that takes longer is judged pair
    by pair); ``memory_mb`` is what one worker may allocate on top of what it starts with. Verdicts
    do not depend on the number of workers or on what else is in a batch. Threads may share it.
    What originals compute is shared between the workers through a folder in ``cache_dir`` (the
    system's for temporary files), removed at the end; kernels for CUDA stay in ``cache_dir``.
    ``judge`` is for tests.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        timeout_s: float = 60.0,
        memory_mb: int = 2048,
        seed: int = 0,
        target: str = "llvm",
        cache_dir: str | Path | None = None,
        judge: Judge = worker.judge,
    ) -> None:
        self.workers = workers
        self.timeout_s = timeout_s
        self.seed = seed
        self.target = target
        self._judge = judge
        self._in_flight = 2 * workers
        self._scheduled: set[Any] = set()
        self._shared = shared_folder(cache_dir)
        self._cubins = str(Path(cache_dir) / "cubins") if cache_dir else None
        self._memory_mb = memory_mb
        self._lock = Lock()
        self._closed = False
        self._renewals = 0
        self._pool = self._new_pool()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _new_pool(self) -> ProcessPool:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOAD)
        return ProcessPool(
            max_workers=self.workers,
            context=context,
            initializer=worker.start,
            initargs=(self._memory_mb, self._shared.name, self._cubins),
        )

    def close(self) -> None:
        """Stop all workers; who still waits for a verdict, in another thread, gets CancelledError.

        Nothing happens where it is closed already.
        """
        with self._lock:
            self._closed = True
        self._pool.stop()  # type: ignore[no-untyped-call]
        for future in list(self._scheduled):
            future.cancel()
        self._pool.join()
        self._shared.cleanup()

    def verify_many(
        self,
        pairs: Iterable[tuple[Key, SignedProgram, SignedProgram]],
        *,
        target: str | None = None,
        seed: int | None = None,
    ) -> Iterator[tuple[Key, Verdict]]:
        """Verdicts by key in input order, as they become available.

        ``pairs`` (key, original, candidate) is read as it is needed, a few batches ahead. A pair
        whose original is invalid is rejected with reason ``invalid-original``. ``target`` is
        another one than the pool's. ``seed`` says which one the caller counts on: raises ValueError
        if the pool draws from another. Builds need not say it with each call: they get their pool
        from ``TvmExecutor.verifier``, which compares seed and target with the profile's.
        """
        same_seed(self.seed, seed)
        return self._verify_many(iter(pairs), target or self.target)

    def _verify_many(
        self, source: Iterator[tuple[Key, SignedProgram, SignedProgram]], where: str
    ) -> Iterator[tuple[Key, Verdict]]:
        waiting: deque[tuple[list[tuple[Key, SignedProgram, SignedProgram]], Any]] = deque()
        while True:
            while len(waiting) < self._in_flight and (batch := list(islice(source, BATCH))):
                waiting.append((batch, self._schedule([(o, c) for _, o, c in batch], where)))
            if not waiting:
                return
            batch, future = waiting.popleft()
            verdicts = self._verdicts(batch, future, where)
            yield from zip([key for key, _, _ in batch], verdicts, strict=True)

    def _schedule(self, pairs: list[tuple[SignedProgram, SignedProgram]], target: str) -> Any:  # noqa: ANN401
        arguments = (pairs, self.seed, target)
        with self._lock:
            if self._closed:
                raise CancelledError
            try:
                future = self._pool.schedule(self._judge, args=arguments, timeout=self.timeout_s)
            except RuntimeError:
                # A worker that is killed between two tasks breaks the whole pool.
                self._renewals += 1
                if self._renewals > _RENEWALS:
                    raise
                self._pool.stop()  # type: ignore[no-untyped-call]
                self._pool.join()
                self._pool = self._new_pool()
                future = self._pool.schedule(self._judge, args=arguments, timeout=self.timeout_s)
        self._scheduled.add(future)
        future.add_done_callback(self._scheduled.discard)
        return future

    def _verdicts(
        self,
        batch: list[tuple[Key, SignedProgram, SignedProgram]],
        future: Any,  # noqa: ANN401
        target: str,
        tries: int = _TRIES,
    ) -> list[Verdict]:
        """The verdicts of a scheduled batch; if it failed, its pairs are judged one by one.

        A worker may die of what is not its pair's fault (the system kills whom it likes when
        memory is short), so a pair that it died of alone is tried once more.
        """
        failure = _failure(future)
        while failure is _BROKEN:
            future = self._schedule([pair[1:] for pair in batch], target)
            failure = _failure(future)
        if failure is None:
            verdicts: list[Verdict] = future.result()
            return verdicts
        if len(batch) == 1:
            if failure.reason == reasons.CRASHED and tries > 1:
                again = self._schedule([batch[0][1:]], target)
                return self._verdicts(batch, again, target, tries - 1)
            return [replace(failure, target=target)]
        alone = [([pair], self._schedule([pair[1:]], target)) for pair in batch]
        return [v for pair, again in alone for v in self._verdicts(pair, again, target)]


def same_seed(own: int, wanted: int | None) -> None:
    """Raise ValueError if a pool's seed is not the one that its caller counts on."""
    if wanted is not None and wanted != own:
        raise ValueError(
            f"these workers draw data from seed {own}, not {wanted}: a verdict stored under "
            f"{wanted} would not be that; make a verifier with seed={wanted}"
        )


_BROKEN: Final = rejection(reasons.CRASHED, "all workers died")


def _failure(future: Any) -> Verdict | None:  # noqa: ANN401
    """Wait for a batch; what went wrong with it as a verdict, or None."""
    try:
        future.result()
    except CancelledError:
        raise
    except BrokenProcessPool:
        return _BROKEN
    except FutureTimeout:
        return rejection(reasons.TIMED_OUT, "no verdict in time")
    except MemoryError:
        return rejection(reasons.OUT_OF_MEMORY, "the worker's memory limit was reached")
    except ProcessExpired as died:
        return rejection(reasons.CRASHED, f"the worker died with exit code {died.exitcode}")
    except Exception as error:  # noqa: BLE001  (whatever a pair provokes is its verdict)
        if "bad_alloc" in str(error):  # how TVM tells it
            return rejection(reasons.OUT_OF_MEMORY, "the worker's memory limit was reached")
        return rejection(reasons.CRASHED, f"{type(error).__name__}: {error}")
    return None
