"""Verdicts from other machines, through TVM's RPC: a server alone, or a pool behind a tracker.

Texts of programs go there and verdicts come back; inputs are drawn there from the seed, so that
large tensors never travel. The server is ``rpc_server``; ``docs/verification.md`` has the commands.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from json import dumps, loads
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.violation import Violation
from steptp_dagster.verify.pool import BATCH, same_seed
from steptp_dagster.verify.record import FamilyEvidence, KernelFigures, Verdict
from steptp_dagster.verify.worker import quieten_tvm

Key = TypeVar("Key")

FUNCTION: Final = "steptp.verify"
#: Seconds a session may last, and a server be waited for.
_SESSION_S: Final = 24 * 3600
_WAIT_S: Final = 60


class RemoteFailure(RuntimeError):
    """No server answers, or its session broke off: a fault of the machines, not of a pair."""


class RemoteVerifier:
    """As ``pool.Verifier``, on ``workers`` servers at once. A context manager.

    ``address`` is the ``HOST:PORT`` of a tracker that hands out servers with ``key``, or with
    ``tracker=False`` of one server, which serves one session at a time.
    """

    def __init__(
        self,
        address: str,
        key: str = "steptp",
        workers: int = 1,
        *,
        tracker: bool = True,
        timeout_s: float = 60.0,
        memory_mb: int = 2048,
        seed: int = 0,
        target: str = "llvm",
    ) -> None:
        self.workers, self.target, self.seed = workers, target, seed
        self._settings = {"timeout_s": timeout_s, "memory_mb": memory_mb, "seed": seed}
        self._free: SimpleQueue[Any] = SimpleQueue()
        self._threads = ThreadPoolExecutor(workers)
        for _ in range(workers):
            self._free.put(_session(address, key, tracker))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all sessions, and with them the work that is left there."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._free.empty():
            self._free.get()

    def verify_many(
        self,
        pairs: Iterable[tuple[Key, SignedProgram, SignedProgram]],
        *,
        target: str | None = None,
        seed: int | None = None,
    ) -> Iterator[tuple[Key, Verdict]]:
        """As ``pool.Verifier.verify_many``. Raises RemoteFailure."""
        same_seed(self.seed, seed)
        return self._verify_many(iter(pairs), target or self.target)

    def _verify_many(
        self, source: Iterator[tuple[Key, SignedProgram, SignedProgram]], where: str
    ) -> Iterator[tuple[Key, Verdict]]:
        waiting: deque[tuple[list[Key], Future[list[Verdict]]]] = deque()
        while True:
            while len(waiting) < 2 * self.workers and (batch := list(islice(source, BATCH))):
                texts = [[write(o), write(c)] for _, o, c in batch]
                future = self._threads.submit(self._ask, texts, where)
                waiting.append(([key for key, _, _ in batch], future))
            if not waiting:
                return
            keys, future = waiting.popleft()
            yield from zip(keys, future.result(), strict=True)

    def _ask(self, pairs: list[list[str]], target: str) -> list[Verdict]:
        session = self._free.get()
        request = dumps({"pairs": pairs, "target": target, "settings": self._settings})
        try:
            answer = session.get_function(FUNCTION)(request)
        except Exception as error:
            words = f"the session broke off: {type(error).__name__}: {error}"
            raise RemoteFailure(words) from error
        finally:
            self._free.put(session)
        return [_without_places(verdict_of(told)) for told in loads(str(answer))]


def _without_places(verdict: Verdict) -> Verdict:
    """Without positions in texts: those that were sent are not those that programs came from."""
    return replace(verdict, static=tuple(replace(v, pos=-1) for v in verdict.static))


def _session(address: str, key: str, tracker: bool) -> Any:  # noqa: ANN401 - TVM has no types
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise RemoteFailure(f"an address is HOST:PORT, not {address!r}")
    quieten_tvm()
    from tvm import rpc

    try:
        if not tracker:
            return rpc.connect(host, int(port), key, session_timeout=_SESSION_S)
        found = rpc.connect_tracker(host, int(port))
        return found.request(key, session_timeout=_SESSION_S, max_retry=1)
    except Exception as error:
        what = f"a server with key {key!r} behind the tracker" if tracker else "a server"
        raise RemoteFailure(f"{what} at {address} does not answer: {error}") from error


def verdict_of(told: Mapping[str, Any]) -> Verdict:
    """A verdict from its JSON values (``Verdict.to_json``)."""
    families = []
    for family in told["families"]:
        numbers = ("difference", "original_error", "candidate_error")
        families.append(FamilyEvidence(**{**family, **{n: _number(family[n]) for n in numbers}}))
    plain = Verdict(
        accepted=told["accepted"],
        equality=told["equality"],
        bitwise=told["bitwise"],
        reason=told["reason"],
        message=told["message"],
    )
    return replace(
        plain,
        static=tuple(Violation(**{**v, "path": tuple(v["path"])}) for v in told["static"]),
        families=tuple(families),
        dropped_families=tuple(told["dropped_families"]),
        margins=tuple((name, float(value)) for name, value in told["margins"].items()),
        target=told["target"],
        seeds=tuple(told["seeds"]),
        versions=tuple(told["versions"].items()),
        evidence=told["evidence"],
        kernels=tuple(map(_kernel, told["kernels"])),
        original_kernels=tuple(map(_kernel, told["original_kernels"])),
        sibling=tuple(told["sibling"].items()),
    )


def _kernel(told: Mapping[str, Any]) -> KernelFigures:
    return KernelFigures(**{**told, "grid": tuple(told["grid"]), "block": tuple(told["block"])})


def _number(value: float | str | None) -> float | None:
    """JSON has no infinite numbers: they are texts there."""
    return None if value is None else float(value)
