"""Users' code in processes of its own, seen from outside: a request goes in, plain data comes out.

What users' code does (an endless loop, a crash, an exit, much memory, many processes) ends its own
process only. The processes run with the rights of the caller: they keep accidents away, not malice.
"""

import atexit
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from steptp_dagster.users.files import UserFile
from steptp_dagster.users.frames import Inbox, packed, write_all
from steptp_dagster.users.processes import MARK, end_marked
from steptp_dagster.users.refusal import UserRefusal

#: Longest that loading may take, in seconds.
_LOADING: Final = 300.0
#: Above the request's own limit, before the zygote itself counts as stuck; in seconds.
_GRACE: Final = 30.0
#: Memory for a first try, in MiB: what needs more is first tried without allocating tensors.
_MODEST: Final = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request: seconds, and MiB of memory on top of what PyTorch takes."""

    timeout_s: float = 60.0
    memory_mb: int = 4096


Reply = Mapping[str, Any]


class IsolationFailed(RuntimeError):
    """Processes for users' code cannot be had on this machine."""


class Isolation:
    """One zygote, started when it is needed, and again where it is gone.

    ``tasks`` is the name of the module with what can be asked (``zygote``).
    """

    def __init__(self, tasks: str) -> None:
        self._tasks = tasks
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = ""
        self._inbox: Inbox | None = None

    def ask(
        self,
        file: UserFile | None,
        task: str,
        limits: Limits,
        *,
        echo: bool = False,
        **arguments: object,
    ) -> Reply | UserRefusal:
        """The reply to a request about a file (None: about no user's code), or why there is none.

        With ``echo`` what the user's code prints goes to standard error, else nowhere. Tensors that
        do not fit into memory are not allocated, where the code allows that: the reply's ``fake``
        is ``inputs`` or ``all`` then, else empty.
        """
        modest = min(_MODEST, limits.memory_mb)
        attempts = [("", modest), ("inputs", modest), ("all", limits.memory_mb)]
        if file is None:
            attempts = [("", limits.memory_mb)]
        elif limits.memory_mb > _MODEST:
            attempts.append(("", limits.memory_mb))
        refusal: UserRefusal | None = None
        for number, (fake, memory) in enumerate(attempts, 1):
            request = {
                "task": task,
                "path": str(file.path) if file else "",
                "label": file.name if file else "",
                "timeout_s": limits.timeout_s,
                "memory_mb": memory,
                "echo": echo,
                "fake": fake,
                "last": number == len(attempts),
                **arguments,
            }
            reply = self._exchange(request, limits.timeout_s)
            if "done" in reply and isinstance(reply["done"], dict):
                return {**reply["done"], "fake": fake}
            found = _refusal(reply, file, limits)
            # What a file does wrong without tensors is no fault of it.
            if not fake:
                refusal = found
            if not fake and found.reason != "out-of-memory":
                break
        assert refusal is not None
        return refusal

    def close(self) -> None:
        """End the zygote with all that came from it."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end_marked(self._mark)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process = self._inbox = None

    def _exchange(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            inbox = self._started()
            assert self._process is not None and self._process.stdin is not None
            write_all(self._process.stdin.fileno(), packed(request))
            reply = self._next(inbox, seconds + _GRACE)
        except OSError:
            reply = None
        except BaseException:
            # An interrupt leaves a reply behind that must not answer the next request.
            self.close()
            raise
        if reply is None:
            self.close()
            return {"died": {"code": None, "signal": None, "where": ""}}
        return reply

    def _next(self, inbox: Inbox, seconds: float) -> dict[str, Any] | None:
        """The next message, or None where it does not come."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if (message := inbox.message()) is not None:
                return message
            if inbox.closed:
                return None
            inbox.wait(left)
        return None

    def _started(self) -> Inbox:
        if self._inbox is not None and self._process is not None and self._process.poll() is None:
            return self._inbox
        self.close()
        self._mark = secrets.token_hex(8)
        own = {
            MARK: self._mark,
            "OMP_NUM_THREADS": "1",
            "TVM_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONWARNINGS": "ignore",
        }
        # -P: the folder that this runs in may hold a random.py of the user.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "steptp_dagster.users.zygote", self._tasks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **own},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._inbox = Inbox(self._process.stdout.fileno())
        if self._next(self._inbox, _LOADING) is None:
            self.close()
            raise IsolationFailed(
                f"no process for users' programs could be started: {sys.executable} -m "
                "steptp_dagster.users.zygote does not get ready"
            )
        return self._inbox


@cache
def shared(tasks: str) -> Isolation:
    """The isolation of this process for a module of tasks, ended with the process."""
    made = Isolation(tasks)
    atexit.register(made.close)
    return made


def _refusal(reply: Mapping[str, Any], file: UserFile | None, limits: Limits) -> UserRefusal:
    name = file.name if file else ""
    told = reply.get("refused")
    if isinstance(told, dict):
        return UserRefusal(str(told["reason"]), str(told["message"]), str(told["location"]))
    if "memory" in reply:
        message = f"needs more than {limits.memory_mb} MiB of memory"
        return UserRefusal("out-of-memory", message, name)
    if isinstance(late := reply.get("timed_out"), dict):
        message = f"was not done after {limits.timeout_s:g} s"
        return UserRefusal("timed-out", message, _at(name, late["where"]))
    if isinstance(crowd := reply.get("crowd"), dict):
        message = "started processes without end"
        return UserRefusal("too-many-processes", message, _at(name, crowd["where"]))
    if isinstance(died := reply.get("died"), dict):
        where = _at(name, died["where"])
        if died["signal"]:
            return UserRefusal("crashed", f"ended the process by {died['signal']}", where)
        if died["code"] is not None:
            message = f"ended the process with exit code {died['code']}"
            return UserRefusal("exited", message, where)
        return UserRefusal("crashed", "ended the process without a word", where)
    return UserRefusal("crashed", f"failed: {reply.get('failed', 'no reply')}", name)


def _at(name: str, line: str) -> str:
    return f"{name}:{line}" if line else name
