"""Verdicts on CUDA targets: built anywhere, and executed where there is such a GPU.

Without a GPU a verdict says that both programs compile, and what their kernels take; it is then
neither an acceptance nor a rejection (``built``). With one, both run there, at shapes far above
the budget of the llvm target, and are compared as on any target.
"""

import resource
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import Unlowerable
from steptp_dagster.lowering.cuda import device
from steptp_dagster.lowering.cuda.cubins import CompiledKernel, compile_kernels
from steptp_dagster.lowering.cuda.driver import Driver, DriverError, Loaded
from steptp_dagster.lowering.cuda.lower import lower
from steptp_dagster.lowering.cuda.nvrtc import CudaBuildError, NvrtcMissing
from steptp_dagster.lowering.cuda.program import CudaProgram
from steptp_dagster.lowering.identity import Identity, identity_of
from steptp_dagster.lowering.precision import Precision, in_precision
from steptp_dagster.verify import reasons
from steptp_dagster.verify.budget import too_large
from steptp_dagster.verify.engine import LLVM, Runner
from steptp_dagster.verify.gpu import without
from steptp_dagster.verify.record import KernelFigures, Verdict, rejection
from steptp_dagster.verify.verdict import numeric

#: What one run on a GPU may execute and store.
MOST_EQUATIONS: Final = 5_000_000_000
MOST_BYTES: Final = 2 * 2**30
_LOWERED: Final = 64
_lowered: OrderedDict[Identity, CudaProgram] = OrderedDict()


def judge(original: SignedProgram, candidate: SignedProgram, seed: int, target: str) -> Verdict:
    """Build both programs, and run them if a GPU of the target is here; both are valid."""
    architecture = target.removeprefix("cuda:")
    pair = (("original", original), ("candidate", candidate))
    built: list[tuple[KernelFigures, ...]] = []
    for name, program in pair:
        try:
            lowered = _lower(program)
            (compiled,) = compile_kernels([lowered], architecture)
        except Unlowerable as fault:
            return rejection(fault.reason, f"the {name}: {fault}")
        except NvrtcMissing as missing:
            return rejection(reasons.NO_COMPILER, str(missing))
        if isinstance(compiled, CudaBuildError):
            return rejection(reasons.BUILD_ERROR, f"the {name}: {compiled}")
        built.append(_figures(lowered, compiled))
    driver = present(architecture)
    message = without(architecture)
    if driver is not None:
        sizes = ((name, too_large(p, MOST_EQUATIONS, MOST_BYTES)) for name, p in pair)
        message = next((f"the {name} {excess}" for name, excess in sizes if excess), "")
    if driver is None or message:
        verdict = Verdict(False, "built", False, reasons.NOT_EXECUTED, message, evidence="built")
    else:
        verdict = _executed(original, candidate, seed, CudaEngine(target, driver))
    return replace(verdict, original_kernels=built[0], kernels=built[1])


def present(architecture: str) -> Driver | None:
    """The GPU. A limit on address space is lifted where there is one: no driver starts under it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    driver = device.present(architecture)
    if driver is None:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    return driver


def compile_together(pairs: Sequence[tuple[SignedProgram, SignedProgram]], target: str) -> None:
    """Fill the kernel cache. What cannot be compiled is left to ``judge`` to explain."""
    sound: list[CudaProgram] = []
    for program in dict.fromkeys(p for pair in pairs for p in pair):
        if check(program) or check_limits(program):
            continue
        try:
            sound.append(_lower(program))
        except Unlowerable:
            continue
    try:
        compile_kernels(sound, target.removeprefix("cuda:"))
    except NvrtcMissing:
        return


def _executed(
    original: SignedProgram, candidate: SignedProgram, seed: int, engine: "CudaEngine"
) -> Verdict:
    try:
        return numeric(original, candidate, seed, engine)
    except DriverError as error:
        if not error.out_of_memory:
            device.give_up(engine.driver)
        reason = reasons.OUT_OF_MEMORY if error.out_of_memory else reasons.CRASHED
        return rejection(reason, f"on the GPU: {error}", evidence="executed")
    except CudaBuildError as error:
        return rejection(reasons.BUILD_ERROR, str(error))
    finally:
        engine.close()


@dataclass(slots=True)
class CudaEngine:
    """The GPU of this machine as an ``Engine``; to be closed."""

    target: str
    driver: Driver
    _loaded: list[Loaded] = field(default_factory=list, init=False)

    def compile(self, programs: Sequence[SignedProgram], precision: Precision) -> Sequence[Runner]:
        """See ``Engine``. Raises CudaBuildError too.

        A program that a GPU cannot hold in binary64 (its shared tensors take twice the memory) is
        run on the llvm target instead, if it is small enough.
        """
        return [self._runner(program, precision) for program in programs]

    def close(self) -> None:
        """Forget all programs on the GPU."""
        with suppress(DriverError):
            for loaded in self._loaded:
                loaded.close()
        self._loaded.clear()

    def _runner(self, program: SignedProgram, precision: Precision) -> Runner:
        as_run = in_precision(program, precision)
        try:
            lowered = _lower(as_run)
        except Unlowerable:
            if precision == "working" or too_large(program):
                raise
            return LLVM.compile([program], precision)[0]
        (compiled,) = compile_kernels([lowered], self.target.removeprefix("cuda:"))
        if isinstance(compiled, CudaBuildError):
            raise compiled
        codes = device.kernel_codes(lowered, compiled)
        loaded = Loaded(self.driver, codes, device.launches(lowered))
        self._loaded.append(loaded)
        return device.DeviceKernel(as_run, precision, lowered, loaded)


def _lower(signed: SignedProgram) -> CudaProgram:
    key = identity_of(signed)
    if key not in _lowered:
        _lowered[key] = lower(signed)
        while len(_lowered) > _LOWERED:
            _lowered.popitem(last=False)
    _lowered.move_to_end(key)
    return _lowered[key]


def _figures(program: CudaProgram, compiled: Sequence[CompiledKernel]) -> tuple[KernelFigures, ...]:
    return tuple(
        KernelFigures(
            nest=kernel.nest,
            grid=kernel.geometry.grid,
            block=kernel.geometry.block,
            registers=machine.usage.registers,
            stack_bytes=machine.usage.stack_bytes,
            spill_stores=machine.usage.spill_stores,
            spill_loads=machine.usage.spill_loads,
            shared_bytes=machine.usage.shared_bytes,
            barriers=machine.usage.barriers,
            occupancy=machine.usage.occupancy,
        )
        for kernel, machine in zip(program.kernels, compiled, strict=True)
    )
