"""Judges for tests of the verifier's pool: they fail on chosen pairs as broken programs might."""

import ctypes
import os
import resource
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import shared, worker
from steptp_dagster.verify.record import Verdict

Pair = tuple[SignedProgram, SignedProgram]

#: Extents of the first loop of a candidate that make ``failing`` fail, and how.
CRASH, HANG, EXHAUST, RAISE, SEGFAULT, SPIN, PRINT = 101, 102, 103, 104, 105, 106, 107


def failing(pairs: list[Pair], seed: int, target: str) -> list[Verdict]:
    """Crashes, hangs, exhausts memory or raises on marked candidates; else judges."""
    for _, candidate in pairs:
        match candidate.program.nests[0].loops[0].extent:
            case 101:
                os.kill(os.getpid(), signal.SIGKILL)
            case 102:
                time.sleep(600)
            case 103:
                bytearray(1 << 40)
            case 104:
                raise RuntimeError("marked")
            case 105:
                ctypes.string_at(0)
            case 106:
                ctypes.CDLL(None).pthread_mutex_lock(_locked())  # in native code, for ever
            case 107:
                os.write(1, b"PASSED accepted\n")
                os.write(2, b"PASSED accepted\n")
            case _:
                pass
    return worker.judge(pairs, seed, target)


def _locked() -> "ctypes.Array[ctypes.c_char]":
    """A lock of the C library that this thread holds, so that taking it again never ends."""
    lock = ctypes.create_string_buffer(64)
    ctypes.CDLL(None).pthread_mutex_lock(lock)
    return lock


def dying_once(pairs: list[Pair], seed: int, target: str) -> list[Verdict]:
    """Dies of its first batch of a single pair, like a process that the system chose to kill."""
    marker = shared._folder[0] / "died.once"
    if len(pairs) == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return worker.judge(pairs, seed, target)


def measuring(pairs: list[Pair], seed: int, target: str) -> list[Verdict]:
    """Judges, then tells in ``versions`` whether torch is loaded, and the memory in use."""
    verdicts = worker.judge(pairs, seed, target)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    facts = (
        ("torch", "absent" if sys.modules.get("torch") is None else "loaded"),
        ("resident MiB", str(pages * resource.getpagesize() >> 20)),
    )
    return [replace(verdict, versions=facts) for verdict in verdicts]


def telling(pairs: list[Pair], seed: int, target: str) -> list[Verdict]:
    """``failing`` that first leaves a file with the number of the process."""
    (Path(os.environ["STEPTP_TEST_MARKER"]) / f"worker-{os.getpid()}").touch()
    return failing(pairs, seed, target)


def own_id(_: object) -> int:
    """The number of the process that this is called in, after a while."""
    time.sleep(0.05)
    return os.getpid()


def nap(seconds: float) -> None:
    """Work that takes time, but no processor."""
    time.sleep(seconds)


def meet(folder: str) -> int:
    """Wait for a second process to come here; the id of this one."""
    (Path(folder) / str(os.getpid())).touch()
    while len(os.listdir(folder)) < 2:
        time.sleep(0.01)
    return os.getpid()
