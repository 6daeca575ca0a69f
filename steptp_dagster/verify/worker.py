"""What runs inside a worker process of ``pool.Verifier``."""

import ctypes
import gc
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from steptp_dagster.verify.batch import Pair
    from steptp_dagster.verify.record import Verdict

_PARENT_DEATH_SIGNAL: Final = 1
#: Objects made between two searches for cyclic garbage, and how often older ones are looked at.
_GARBAGE: Final = (20_000, 20, 20)


def quieten_tvm() -> None:
    """Make TVM cheap to import and single-threaded; to be called before it is imported.

    TVM imports torch for tensor exchange if it can, which takes three times as long as the rest.
    """
    os.environ["TVM_NUM_THREADS"] = "1"
    if "torch" not in sys.modules:
        cast(dict[str, Any], sys.modules)["torch"] = None


def settle() -> None:
    """Leave what has been imported to itself, and look for cyclic garbage less often.

    A verdict makes many small objects, hardly any of them in cycles; walking over TVM's and NumPy's
    again and again takes a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


def start(
    memory_mb: int, shared_folder: str | None = None, cubin_folder: str | None = None
) -> None:
    """Prepare a fresh worker: a limit on the memory it may add, silence for crash reports.

    ``shared_folder`` is where the workers of one pool share results (``shared``), and
    ``cubin_folder`` where kernels for CUDA stay from one pool to the next (``cuda.kept``).
    """
    _die_with_parent()
    quieten_tvm()
    import steptp_dagster.verify.batch  # noqa: F401  (so that the limit counts from here)
    from steptp_dagster.verify import shared

    settle()
    if cubin_folder is not None:
        from steptp_dagster.lowering.cuda import kept

        kept.use(Path(cubin_folder))
    shared.use(None if shared_folder is None else Path(shared_folder))
    limit = _virtual_bytes() + memory_mb * 2**20
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    # The runtime prints a screenful per crash; the pool reports the exit code instead. And what
    # a program or TVM prints must not come between the results of a command.
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)


def judge(pairs: "Sequence[Pair]", seed: int, target: str) -> "list[Verdict]":
    """Verdicts for one batch."""
    from steptp_dagster.verify.batch import verify_batch

    return verify_batch(pairs, seed=seed, target=target)


def _die_with_parent() -> None:
    """Have the system kill this process when its parent dies: it may be in an endless loop then.

    The parent is the fork server. It ends when nobody holds the pipe any more that says that it is
    needed: the process that has the pool, and each worker (to start others, which ours do not).
    Only Linux can do this.
    """
    if sys.platform != "linux":
        return
    server: Any = forkserver._forkserver
    needed = getattr(server, "_forkserver_alive_fd", None)
    if isinstance(needed, int):
        with suppress(OSError):
            os.close(needed)
        server._forkserver_alive_fd = None
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)


def _virtual_bytes() -> int:
    """Address space in use, in bytes; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[0]) * resource.getpagesize()
