"""Judges for tests of the verifier's pool: they fail on chosen pairs as broken programs might."""

import os
import signal
import time
from pathlib import Path

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import worker
from steptp_dagster.verify.record import Verdict

Pair = tuple[SignedProgram, SignedProgram]

#: Extents of the first loop of a candidate that make ``failing`` fail, and how.
CRASH, HANG, EXHAUST, RAISE = 101, 102, 103, 104


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
            case _:
                pass
    return worker.judge(pairs, seed, target)


def nap(seconds: float) -> None:
    """Work that takes time, but no processor."""
    time.sleep(seconds)


def meet(folder: str) -> int:
    """Wait for a second process to come here; the id of this one."""
    (Path(folder) / str(os.getpid())).touch()
    while len(os.listdir(folder)) < 2:
        time.sleep(0.01)
    return os.getpid()
