"""Which GPU is here, as the CUDA driver tells a process of its own.

A driver that was started once keeps memory and threads, so a process that only wants to know asks
another one: this file, run by its path. It needs the standard library alone.
"""

import ctypes
import re
import subprocess
import sys
from ctypes import byref, c_int
from functools import cache
from typing import Final

_LIBRARY: Final = "libcuda.so.1"
#: Numbers of ``CUdevice_attribute``: compute capability, major and minor.
_CAPABILITY: Final = (75, 76)
_SAID: Final = re.compile(r"compute capability (\d+)\.(\d+), driver \d+$")
_BUFFER: Final = 256
_PATIENCE_S: Final = 60


@cache
def gpu_here(library: str = _LIBRARY) -> str:
    """Name, compute capability and driver of the GPU that kernels run on here; empty for none."""
    asked = [sys.executable, "-I", __file__, library]
    try:
        answer = subprocess.run(asked, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else ""


def fits(gpu: str, architecture: str) -> bool:
    """Whether a GPU, as ``gpu_here`` tells it, runs cubins for ``sm_80`` and the like.

    Same major compute capability, minor no larger, as ``lowering.cuda.driver`` asks of the GPU.
    """
    found = _SAID.search(gpu)
    major, minor = divmod(int(architecture.removeprefix("sm_")), 10)
    return found is not None and int(found[1]) == major and int(found[2]) >= minor


def without(architecture: str) -> str:
    """What is said of a pair that was only built, since no GPU that fits was there."""
    return f"no GPU that runs {architecture} is here"


def _told(library: str) -> str:
    """Raises OSError without a driver, LookupError without a GPU."""
    driver = ctypes.CDLL(library)
    device, version = c_int(), c_int()
    name = ctypes.create_string_buffer(_BUFFER)

    def call(function: str, *arguments: object) -> None:
        if getattr(driver, function)(*arguments) != 0:
            raise LookupError(function)

    call("cuInit", 0)
    call("cuDeviceGet", byref(device), 0)
    call("cuDeviceGetName", name, _BUFFER, device)
    call("cuDriverGetVersion", byref(version))
    numbers = []
    for attribute in _CAPABILITY:
        number = c_int()
        call("cuDeviceGetAttribute", byref(number), attribute, device)
        numbers.append(str(number.value))
    kind = name.value.decode(errors="replace")
    return f"{kind}, compute capability {'.'.join(numbers)}, driver {version.value}"


if __name__ == "__main__":
    try:
        print(_told(sys.argv[1]))  # noqa: T201 - the answer
    except (OSError, LookupError, AttributeError) as error:
        sys.exit(str(error))
