"""CUDA text to cubins with NVRTC, on machines without GPU, driver or toolkit.

The packages come with the extra ``cuda`` (``pip install steptp-dagster[cuda]``). Verification
builds with ``-fmad=false``: a contraction rounds once where LEIR rounds twice.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from steptp_dagster.lowering.cuda.program import CudaProgram

_KERNEL: Final = re.compile(r"Compiling entry function '(\w+)' for '\w+'")
_SPILLS: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_BARRIERS: Final = re.compile(r"used (\d+) barriers")

#: Architecture -> registers, bytes of shared memory, warps and blocks of one multiprocessor
#: (CUDA C++ Programming Guide, technical specifications per compute capability).
MULTIPROCESSORS: Final[dict[str, tuple[int, int, int, int]]] = {
    "sm_80": (65536, 164 * 1024, 64, 32),
    "sm_90": (65536, 228 * 1024, 64, 32),
}
ARCHITECTURES: Final = tuple(MULTIPROCESSORS)
_WARP: Final = 32
#: Registers are given to warps in units of 256, shared memory to blocks in units of 128 bytes,
#: of which the system takes 1024.
_REGISTER_UNIT: Final = 256
_SHARED_UNIT: Final = 128
_SHARED_RESERVED: Final = 1024


class NvrtcMissing(RuntimeError):
    """NVRTC is not installed; the message says how to get it."""


class CudaBuildError(RuntimeError):
    """NVRTC refused a text; the message is the compiler's own."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one kernel takes: registers, bytes of stack and spills per thread, the rest per block.

    ``occupancy`` is the share of a multiprocessor's warps that can be resident at once.
    """

    kernel: str
    registers: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    shared_bytes: int
    barriers: int
    occupancy: float


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of all kernels of a program for one architecture, and what they take."""

    architecture: str
    code: bytes
    usage: tuple[Usage, ...]


def available() -> bool:
    """Whether NVRTC is installed."""
    return find_spec("cuda") is not None and find_spec("nvidia") is not None


def build(program: CudaProgram, architecture: str, *, contract: bool = False) -> Cubin:
    """Compile a lowered program; ``contract`` allows fused multiply-add, for timing.

    Raises NvrtcMissing, CudaBuildError, and KeyError for an unknown architecture.
    """
    threads = {kernel.name: kernel.geometry.threads for kernel in program.kernels}
    return build_text(program.source, threads, architecture, contract=contract)


def build_text(
    source: str, threads: Mapping[str, int], architecture: str, *, contract: bool = False
) -> Cubin:
    """Compile a CUDA text. Raises as ``build``.

    ``threads`` has the kernels whose usage is asked for, with their threads per block.
    """
    limits = MULTIPROCESSORS[architecture]
    options = [f"--gpu-architecture={architecture}", "-default-device", "--ptxas-options=-v", "-w"]
    options.append(f"-fmad={'true' if contract else 'false'}")
    code, log = _compiled(source, options)
    return Cubin(architecture, code, _usage(log, threads, limits))


@cache
def version() -> str:
    """The release of NVRTC. Raises NvrtcMissing."""
    major, minor = _checked(_library(), _library().nvrtcVersion())
    return f"{major}.{minor}"


def _compiled(source: str, options: list[str]) -> tuple[bytes, str]:
    nvrtc = _library()
    handle = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), b"steptp.cu", 0, [], []))
    try:
        encoded = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(encoded), encoded)
        log = b" " * _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(handle))
        _checked(nvrtc, nvrtc.nvrtcGetProgramLog(handle, log))
        told = log.decode(errors="replace").strip("\0 \n")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CudaBuildError(told or str(status))
        code = b" " * _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(handle))
        _checked(nvrtc, nvrtc.nvrtcGetCUBIN(handle, code))
        return code, told
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _library() -> Any:  # noqa: ANN401 - the bindings have no types
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        hint = "install it with pip install 'steptp-dagster[cuda]'"
        raise NvrtcMissing(f"NVRTC is not installed ({error}); {hint}") from error
    return nvrtc


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:  # noqa: ANN401 - as above
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CudaBuildError(f"NVRTC: {status}")
    return values[0] if len(values) == 1 else values


def _usage(
    log: str, threads: Mapping[str, int], limits: tuple[int, int, int, int]
) -> tuple[Usage, ...]:
    """The figures that ptxas prints, kernel by kernel."""
    pieces = _KERNEL.split(log)[1:]
    told = dict(zip(pieces[::2], pieces[1::2], strict=True))
    found = []
    for kernel, count in threads.items():
        text = told.get(kernel, "")
        used, spills = _USED.search(text), _SPILLS.search(text)
        if used is None:
            raise CudaBuildError(f"the compiler says nothing of {kernel}")
        stack, stores, loads = (int(n) for n in spills.groups()) if spills else (0, 0, 0)
        shared, barriers = _SHARED.search(text), _BARRIERS.search(text)
        size = int(shared[1]) if shared else 0
        found.append(
            Usage(
                kernel=kernel,
                registers=int(used[1]),
                stack_bytes=stack,
                spill_stores=stores,
                spill_loads=loads,
                shared_bytes=size,
                barriers=int(barriers[1]) if barriers else 0,
                occupancy=occupancy(count, int(used[1]), size, limits),
            )
        )
    return tuple(found)


def occupancy(
    threads: int, registers: int, shared_bytes: int, limits: tuple[int, int, int, int]
) -> float:
    """Resident warps over the most a multiprocessor holds, as CUDA's occupancy calculator counts.

    >>> occupancy(256, 32, 0, MULTIPROCESSORS["sm_80"])
    1.0
    >>> occupancy(256, 64, 0, MULTIPROCESSORS["sm_80"])
    0.5
    >>> occupancy(64, 32, 48 * 1024, MULTIPROCESSORS["sm_80"])
    0.09375
    """
    all_registers, all_shared, all_warps, all_blocks = limits
    warps = -(-threads // _WARP)
    by_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    by_block = -(-(shared_bytes + _SHARED_RESERVED) // _SHARED_UNIT) * _SHARED_UNIT
    resident_warps = all_registers // by_warp if by_warp else all_warps
    blocks = min(all_blocks, all_warps // warps, resident_warps // warps, all_shared // by_block)
    return blocks * warps / all_warps
