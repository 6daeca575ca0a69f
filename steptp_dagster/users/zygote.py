"""A process that has PyTorch loaded and makes, for every request, a copy of itself that does it.

Loading takes seconds and is done once; a copy takes milliseconds, knows nothing of the copies
before it, and whatever users' code does to it is gone with it. Started by ``isolation`` with the
name of a module that has ``TASKS`` and ``warm_up()``; requests come on standard input, replies go
to standard output, the end of the input ends it.
"""

import importlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, Final

import tqdm

from steptp_dagster.users import child
from steptp_dagster.users.frames import Inbox, packed, write_all
from steptp_dagster.users.processes import MARK, end_marked, marked

#: How long a process may take to write down where it stands, in seconds.
_LAST_WORDS: Final = 0.3
#: How often it is looked whether a process is still there, in seconds.
_POLL: Final = 0.05
#: How often the processes that came from users' code are counted, in seconds, and how many may be
#: there (a shell can start them without Python's knowledge).
_COUNT: Final = 0.3
_CROWD: Final = 64
_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def main() -> None:
    """Load the module of tasks, say that it is ready, then serve requests until the input ends."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what libraries print while they load is no reply
    tqdm.tqdm.monitor_interval = 0  # a thread of PyTorch's progress bars; copies have none
    tasks = importlib.import_module(sys.argv[1])
    tasks.warm_up()
    write_all(replies, packed({"ready": True}))
    inbox = Inbox(requests)
    while not inbox.closed:
        inbox.wait(None)
        while (request := inbox.message()) is not None:
            write_all(replies, packed(serve(request, inbox, replies, tasks.TASKS)))


def serve(
    request: Mapping[str, Any], inbox: Inbox, replies: int, tasks: Mapping[str, child.Task]
) -> dict[str, Any]:
    """The reply to one request: what the copy sends, or how it ended without a reply.

    ``inbox`` is watched: where its sender is gone, the copy is ended, and so is the zygote.
    """
    with tempfile.TemporaryFile() as faults:
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            for descriptor in (reader, inbox.fd, replies):
                os.close(descriptor)
            child.run(request, tasks, writer, faults)
        os.close(writer)
        try:
            return _outcome(request, process, Inbox(reader), inbox, faults)
        finally:
            os.close(reader)
            _end(process)


def _outcome(
    request: Mapping[str, Any], process: int, result: Inbox, inbox: Inbox, faults: IO[bytes]
) -> dict[str, Any]:
    deadline = time.monotonic() + request["timeout_s"]
    count = time.monotonic() + _COUNT
    status: int | None = None
    while True:
        # What a dead process has written is there by now: the pipe is read after the death.
        result.wait(0 if status is not None else _POLL)
        try:
            if (reply := result.message()) is not None:
                return reply
        except (ValueError, RecursionError):
            return {"died": {"code": None, "signal": None, "where": ""}}
        if status is not None and (result.closed or not result.waiting()):
            return {"died": _death(status, _place(faults, request["path"]))}
        if time.monotonic() > deadline:
            return {"timed_out": {"where": _asked(process, faults, request["path"])}}
        if time.monotonic() > count:
            count = time.monotonic() + _COUNT
            if len(marked(os.environ.get(MARK, ""))) > _CROWD:
                return {"crowd": {"where": _asked(process, faults, request["path"])}}
        inbox.wait(0)
        if inbox.closed:
            sys.exit(0)  # whose finally clauses end the copy
        if status is None:
            found, code = os.waitpid(process, os.WNOHANG)
            status = code if found else None
            if status is None and result.closed:
                time.sleep(_POLL)


def _death(status: int, where: str) -> dict[str, Any]:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return {"code": None, "signal": signal.Signals(-code).name, "where": where}
    return {"code": code, "signal": None, "where": where}


def _asked(process: int, faults: IO[bytes], path: str) -> str:
    """Ask a process where it stands; the line of the user's file, or nothing."""
    with suppress(ProcessLookupError):
        os.kill(process, child.WHERE)
    until = time.monotonic() + _LAST_WORDS
    while time.monotonic() < until and not _place(faults, path):
        time.sleep(0.01)
    return _place(faults, path)


def _place(faults: IO[bytes], path: str) -> str:
    """The innermost line of the user's file in the stacks that were written down."""
    with suppress(OSError, ValueError):
        size = os.fstat(faults.fileno()).st_size
        text = os.pread(faults.fileno(), min(size, 2**20), 0).decode("utf-8", "replace")
        # Paths are written as they were compiled; the main thread comes last.
        lines = [m["line"] for m in _FRAME.finditer(text) if m["file"] == path]
        return lines[0] if lines else ""
    return ""


def _end(process: int) -> None:
    """End a copy with everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    end_marked(os.environ.get(MARK, ""))
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()
