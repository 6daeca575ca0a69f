"""The process in which a user's code runs: made for one request by ``zygote``, ended after it.

It has a process group of its own, no standard input, limits on memory, on the size of files and
on starting processes, and leaves word where it stood when it died.
"""

import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from steptp_dagster.users.forms import OutOfMemory
from steptp_dagster.users.frames import packed, write_all
from steptp_dagster.users.refusal import Refused

#: Processes that a file may start, all its calls together; those may start none.
PROCESSES: Final = 16
#: Largest file that it may write, in bytes.
FILE_BYTES: Final = 256 * 2**20
#: Asks the process to write down where it stands.
WHERE: Final = signal.SIGUSR1
#: Exit code of a process that said all it had to say.
DONE: Final = 0


#: What a request may name: plain data in, plain data out.
Task = Callable[[Mapping[str, Any]], dict[str, Any]]


def run(
    request: Mapping[str, Any], tasks: Mapping[str, Task], result: int, faults: IO[bytes]
) -> NoReturn:
    """Do what is asked and send the reply; never returns.

    ``result`` is the descriptor for the reply, ``faults`` the file for stacks of a process that
    dies.
    """
    own = os.getpid()
    leave = os._exit
    try:
        _isolate(request, faults)
        reply = _reply(request, tasks)
        if os.getpid() == own:  # else a copy that the user's code made of this process
            write_all(result, packed(reply))
    except BaseException:  # noqa: BLE001 - nothing leaves a copy of the zygote
        leave(1)
    leave(DONE)


def _reply(request: Mapping[str, Any], tasks: Mapping[str, Task]) -> dict[str, Any]:
    try:
        return {"done": tasks[request["task"]](request)}
    except Refused as refused:
        r = refused.refusal
        return {"refused": {"reason": r.reason, "message": r.message, "location": r.location}}
    except (OutOfMemory, MemoryError):
        return {"memory": True}
    except Exception as error:  # noqa: BLE001 - users' objects raise anywhere
        return {"failed": f"{type(error).__name__}: {error}"[:400]}


def _isolate(request: Mapping[str, Any], faults: IO[bytes]) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if request["echo"] else nothing, 1)
    if not request["echo"]:
        os.dup2(nothing, 2)
    faulthandler.enable(faults)
    faulthandler.register(WHERE, faults, all_threads=True, chain=False)
    _guard(faults)
    sys.dont_write_bytecode = True
    if request["path"]:
        # Last: a user's random.py must not take the place of Python's.
        sys.path.append(str(Path(request["path"]).parent))
    _limit(resource.RLIMIT_AS, _virtual_bytes() + request["memory_mb"] * 2**20)
    _limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(what, (most, hard))


def _virtual_bytes() -> int:
    """Address space in use; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[0]) * resource.getpagesize()


def _guard(faults: IO[bytes]) -> None:
    """Bound the processes that are started; note the line of a sudden exit."""
    own = os.getpid()
    left = [PROCESSES]
    starts = ("os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen")

    def watch(event: str, _: object) -> None:
        if event not in starts:
            return
        left[0] -= 1
        if os.getpid() != own or left[0] < 0:
            raise RuntimeError(f"a program file may start no more than {PROCESSES} processes")

    sys.addaudithook(watch)
    leave: Callable[[int], NoReturn] = os._exit

    def noted(status: int) -> NoReturn:
        if os.getpid() == own:
            faulthandler.dump_traceback(faults, all_threads=False)
        leave(status)

    os._exit = noted
