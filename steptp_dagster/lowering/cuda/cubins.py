"""Machine code of kernels, many at a time, each text compiled once.

A step changes one or two kernels of a program, and NVRTC reads the prologue again for every text
it compiles: so all kernels that are not known yet go to it in one text. What is known is kept by
the kernel's text, its own name aside, and on disk where a folder is given (``kept``).
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from steptp_dagster.lowering.cuda import kept
from steptp_dagster.lowering.cuda.nvrtc import CudaBuildError, Usage, build_text
from steptp_dagster.lowering.cuda.program import CudaProgram
from steptp_dagster.lowering.cuda.prologue import PROLOGUE

_NAME: Final = re.compile(r"\bkernel_\d+\b")
_CACHED: Final = 4096
#: Kernels in one text: more at once save nothing, and an error costs all of them a second try.
_TOGETHER: Final = 32


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """One kernel: the cubin that it is in, its name there, and what it takes."""

    code: bytes
    entry: str
    usage: Usage


#: A kernel, or the compiler's words on why there is none.
_Outcome = CompiledKernel | str
_Key = tuple[str, str, bool]
_cache: OrderedDict[_Key, _Outcome] = OrderedDict()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A kernel under the name that its text gives it."""

    entry: str
    text: str
    threads: int


def compile_kernels(
    programs: Sequence[CudaProgram], architecture: str, *, contract: bool = False
) -> list[tuple[CompiledKernel, ...] | CudaBuildError]:
    """The kernels of each program in its order, or the error of the first that has none.

    ``contract`` allows fused multiply-add, for timing. Raises NvrtcMissing, and KeyError for an
    unknown architecture.
    """
    wanted = [_wanted(program) for program in programs]
    found: dict[str, _Outcome] = {}
    fresh: dict[str, _Wanted] = {}
    for kernel in (k for kernels in wanted for k in kernels):
        key = (kernel.entry, architecture, contract)
        if key in _cache:
            _cache.move_to_end(key)
            found[kernel.entry] = _cache[key]
        elif known := kept.found(kernel.entry, architecture, contract=contract):
            code, usage = known
            found[kernel.entry] = _cache[key] = CompiledKernel(code, kernel.entry, usage)
        else:
            fresh[kernel.entry] = kernel
    missing = list(fresh.values())
    for first in range(0, len(missing), _TOGETHER):
        for entry, outcome in _compiled(
            missing[first : first + _TOGETHER], architecture, contract
        ).items():
            found[entry] = _cache[entry, architecture, contract] = outcome
    while len(_cache) > _CACHED:
        _cache.popitem(last=False)
    return [
        _program(program, [found[k.entry] for k in kernels])
        for program, kernels in zip(programs, wanted, strict=True)
    ]


def _wanted(program: CudaProgram) -> list[_Wanted]:
    kernels = []
    for kernel, text in zip(program.kernels, program.texts, strict=True):
        plain = _NAME.sub("kernel", text)
        entry = f"k_{blake2b(plain.encode(), digest_size=12).hexdigest()}"
        kernels.append(_Wanted(entry, _NAME.sub(entry, text), kernel.geometry.threads))
    return kernels


def _compiled(kernels: Sequence[_Wanted], architecture: str, contract: bool) -> dict[str, _Outcome]:
    """All kernels in one text; one by one where that fails, to know whose fault it is."""
    source = PROLOGUE + "".join(k.text for k in kernels)
    threads = {k.entry: k.threads for k in kernels}
    try:
        cubin = build_text(source, threads, architecture, contract=contract)
    except CudaBuildError as error:
        if len(kernels) == 1:
            return {kernels[0].entry: str(error)}
        return {
            entry: outcome
            for kernel in kernels
            for entry, outcome in _compiled([kernel], architecture, contract).items()
        }
    kept.keep(cubin.code, {u.kernel: u for u in cubin.usage}, architecture, contract=contract)
    return {u.kernel: CompiledKernel(cubin.code, u.kernel, u) for u in cubin.usage}


def _program(
    program: CudaProgram, outcomes: Sequence[_Outcome]
) -> tuple[CompiledKernel, ...] | CudaBuildError:
    kernels = []
    for kernel, outcome in zip(program.kernels, outcomes, strict=True):
        if isinstance(outcome, str):
            return CudaBuildError(f"{kernel.name} of nest {kernel.nest}: {outcome}")
        kernels.append(replace(outcome, usage=replace(outcome.usage, kernel=kernel.name)))
    return tuple(kernels)
