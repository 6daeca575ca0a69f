"""Ending everything that came from users' code, by a mark in the environment that it inherits."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

#: In the environment of a zygote and of all processes that come from it.
MARK: Final = "STEPTP_USER_PROCESS"
#: How often the list of processes is gone through until none is left, and the pause, in seconds.
_ROUNDS: Final = 100
_PAUSE: Final = 0.01


def end_marked(value: str) -> None:
    """End all processes but this one whose mark has that value. Does nothing without ``/proc``."""
    for _ in range(_ROUNDS):
        found = marked(value)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not found:
            break
        time.sleep(_PAUSE)


def marked(value: str) -> list[int]:
    """Processes with the mark, without this one and without those that are dead already."""
    mark = f"{MARK}={value}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            number = int(folder.name)
            if number != os.getpid() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(number)
    return found
