"""Lowered CUDA programs on the GPU of this machine, with the checks of ``lowering.Kernel``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering.arena import Arena
from steptp_dagster.lowering.cuda.cubins import CompiledKernel
from steptp_dagster.lowering.cuda.driver import (
    Driver,
    KernelCode,
    Loaded,
    NoGpu,
    Repeat,
    Step,
)
from steptp_dagster.lowering.cuda.program import CudaProgram, HostStep, Launch
from steptp_dagster.lowering.kernel import Array, sources
from steptp_dagster.lowering.precision import Precision

_drivers: dict[str, Driver | NoGpu] = {}


def present(architecture: str) -> Driver | None:
    """The GPU of this machine, if it runs cubins of that architecture; looked for once."""
    if "" not in _drivers:
        try:
            _drivers[""] = Driver()
        except NoGpu as missing:
            _drivers[""] = missing
    found = _drivers[""]
    return found if isinstance(found, Driver) and found.runs(architecture) else None


def give_up(driver: Driver) -> None:
    """Start anew with a GPU that a fault has spoilt: the next ``present`` opens it again."""
    driver.reset()
    _drivers.clear()


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """A program that can run on the GPU.

    ``signed`` is the program as lowered: in ``float64`` precision its float tensors are ``f64``.
    """

    signed: SignedProgram
    precision: Precision
    program: CudaProgram
    loaded: Loaded

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name, as ``lowering.Kernel.run``: poisoned memory, sources and guards checked.

        Raises InputError, KernelFault, and DriverError for what goes wrong on the GPU.
        """
        found = sources(self.signed.signature, inputs)
        arena = self._arena(found)
        self.loaded.run(arena.memory)
        arena.check(found)
        return {v.name: arena.read(v.name) for v in self.signed.signature.outputs}

    def run_many(self, inputs: Mapping[str, Array], count: int) -> dict[str, Array]:
        """As ``run``, ``count`` times: inputs and outputs have an axis of runs in front."""
        each = [self.run({name: v[i] for name, v in inputs.items()}) for i in range(count)]
        names = [v.name for v in self.signed.signature.outputs]
        return {name: np.stack([outputs[name] for outputs in each]) for name in names}

    def times(self, inputs: Mapping[str, Array], repeats: int = 20) -> list[float]:
        """Milliseconds of each run, after warm-up."""
        return self.loaded.times(
            self._arena(sources(self.signed.signature, inputs)).memory, repeats
        )

    def _arena(self, found: Mapping[str, Array]) -> Arena:
        arena = Arena(self.program.layout)
        for name, value in found.items():
            arena.write(name, value)
        return arena


def kernel_codes(
    program: CudaProgram, compiled: Sequence[CompiledKernel]
) -> tuple[KernelCode, ...]:
    """The kernels of a program, ready to launch."""
    offsets = {place.name: place.offset for place in program.layout.places}
    return tuple(
        KernelCode(
            code=machine.code,
            entry=machine.entry,
            offsets=tuple(offsets[name] for name in kernel.tensors),
            indices=kernel.indices,
            grid=kernel.geometry.grid,
            block=kernel.geometry.block,
        )
        for kernel, machine in zip(program.kernels, compiled, strict=True)
    )


def launches(program: CudaProgram) -> tuple[Step, ...]:
    """The program's schedule, kernels by number."""
    numbers = {kernel.name: number for number, kernel in enumerate(program.kernels)}

    def step(host: HostStep) -> Step:
        if isinstance(host, Launch):
            return numbers[host.kernel.name]
        return Repeat(host.index, host.start, host.extent, tuple(map(step, host.body)))

    return tuple(map(step, program.schedule))
