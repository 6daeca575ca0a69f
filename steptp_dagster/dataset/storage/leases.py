"""Who writes a partition, on stores that know no locks.

Every writer puts a marker of its own and then looks for others: of two that do so, at least the
later sees the other. It needs a store that lists what was put before. Holders write their markers
again every few seconds; one that does not for a minute is taken for dead, whatever its clock says.
Processes on one machine with one data folder also lock a local file, which a kill frees: a marker
from there that its lock does not go with is dead at once.

    <base>/<stage>.lock/<program>.<machine>-<token>
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from steptp_dagster.dataset.storage.mirror import Mirror

#: Seconds between two signs of life, without any after which a holder is dead, and between looks.
BEAT: Final = 10.0
PATIENCE: Final = 60.0
LOOK: Final = 1.0
#: How often a writer that met another at the same moment tries again.
_TRIES: Final = 3


class Held(RuntimeError):
    """Another process, on this machine or another, is writing the partition."""


@dataclass(slots=True)
class _Lease:
    """A marker of this process, and when it was last written (``_now``)."""

    mirror: Mirror
    folder: str
    program: str
    name: str
    beaten: float
    count: int = 0
    lost: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def remote(self) -> str:
        return f"{self.mirror.base}/{self.folder}/{self.name}"

    def write(self) -> None:
        """Write the marker; people who find it read where it is from."""
        started = _now()
        text = f"{socket.gethostname()} process {os.getpid()}, sign of life {self.count}\n"
        self.mirror.write(self.remote, text.encode())
        self.count += 1
        self.beaten = started

    def beat(self) -> None:
        """Give a sign of life, unless somebody has taken this writer for dead."""
        with self.lock:
            if self.lost:
                return
            if _now() - self.beaten > PATIENCE / 2:
                there = _markers(self.mirror, self.folder, self.program)
                self.lost = there != [self.name]
            if not self.lost:
                self.write()


#: The markers of this process, and the thread that gives their signs of life.
_known: dict[int, _Lease] = {}
_guard = threading.Lock()
_beating: list[threading.Thread] = []
_own = threading.local()


@contextmanager
def held(mirror: Mirror, stage: str, program: str) -> Iterator[None]:
    """Hold a partition; the caller holds the local lock. Raises Held, StorageFailure."""
    folder = f"{stage}.lock"
    with mirror.told("lock", mirror.folder / folder / program):
        lease = _taken(mirror, folder, program)
    if lease is None:
        raise Held(f"stage {stage!r} of {program!r} is being written by another process")
    mine: list[_Lease] = _own.__dict__.setdefault("leases", [])
    mine.append(lease)
    with _guard:
        _known[id(lease)] = lease
        _start()
    try:
        yield
    finally:
        mine.remove(lease)
        with _guard:
            del _known[id(lease)]
        with lease.lock, suppress(Exception):  # what cannot be removed is dead in a minute
            lease.lost = True
            mirror.erase(lease.remote)


def confirm() -> None:
    """Raise Held where this thread holds a partition that was taken from it.

    A process that was stopped for long, or cut off, was taken for dead. Raises StorageFailure.
    """
    for lease in _own.__dict__.get("leases", ()):
        if _now() - lease.beaten > PATIENCE / 2:
            with lease.mirror.told("lock", lease.mirror.folder / lease.folder / lease.program):
                lease.beat()
        if lease.lost:
            raise Held(
                f"{lease.folder.removesuffix('.lock')!r} of {lease.program!r} was taken over by "
                "another process, since this one gave no sign of life; run again"
            )


def _taken(mirror: Mirror, folder: str, program: str) -> _Lease | None:
    """Put a marker where there is no other; None where there is."""
    here = machine(mirror.folder)
    for attempt in range(_TRIES):
        for name in _markers(mirror, folder, program):
            remote = f"{mirror.base}/{folder}/{name}"
            if not name.startswith(f"{program}.{here}-") and _alive(mirror, remote):
                return None
            mirror.erase(remote)
        token = secrets.token_hex(8)
        lease = _Lease(mirror, folder, program, f"{program}.{here}-{token}", _now())
        lease.write()
        if _markers(mirror, folder, program) == [lease.name]:
            return lease
        mirror.erase(lease.remote)
        # Both of two that meet give way; chance decides who is first the next time.
        time.sleep(secrets.randbelow(1000) / 1000 * LOOK * (attempt + 1))
    return None


def _markers(mirror: Mirror, folder: str, program: str) -> list[str]:
    """Names of all markers of a partition."""
    names = mirror.names(folder)
    return [name for name in names if name.rpartition(".")[0] == program and "-" in name]


def _alive(mirror: Mirror, remote: str) -> bool:
    """Whether a marker is written again within a minute."""
    first = _content(mirror, remote)
    if first is None:
        return False
    # Looks are counted, not time: one that was late says no more than another.
    for _ in range(round(PATIENCE / LOOK)):
        time.sleep(LOOK)
        again = _content(mirror, remote)
        if again != first:
            return again is not None
    return False


def _content(mirror: Mirror, remote: str) -> bytes | None:
    try:
        return bytes(mirror.fs.cat_file(remote))
    except FileNotFoundError:
        return None


def machine(folder: Path) -> str:
    """What stands for this machine and data folder, 16 hexadecimal digits.

    A copy of the folder, or the same folder seen from elsewhere, is another one.
    """
    file = folder / ".machine"
    with suppress(FileExistsError):
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as new:
            new.write(secrets.token_hex(16))
    told = file.stat()
    known = f"{socket.gethostname()} {told.st_dev} {told.st_ino} {file.read_text(encoding='utf-8')}"
    return blake2b(known.encode(), digest_size=8).hexdigest()


def _start() -> None:
    """Start the thread that gives signs of life, unless it runs (in a fork it does not)."""
    if not (_beating and _beating[0].is_alive()):
        thread = threading.Thread(target=_beat, args=(_known,), name="signs of life", daemon=True)
        _beating[:] = [thread]
        _beating[0].start()


def _beat(known: dict[int, _Lease]) -> None:
    while True:
        time.sleep(BEAT)
        with _guard:
            every = list(known.values())
            if not every:
                _beating[:] = [t for t in _beating if t is not threading.current_thread()]
                return
        for lease in every:
            # Whoever writes next finds out (``confirm``): a store may be away for a while.
            with suppress(Exception):
                lease.beat()


def _now() -> float:
    """Seconds of a clock that nobody sets and that goes on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
