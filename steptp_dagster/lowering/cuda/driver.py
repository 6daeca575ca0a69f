"""Running machine code on a GPU through the CUDA driver alone (``libcuda.so.1``, by ctypes).

This file uses nothing but NumPy and the standard library, so that it also works copied beside
prebuilt cubins on a machine that has neither this library nor TVM.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Final, Union

import numpy as np

LIBRARY: Final = "libcuda.so.1"
#: Numbers of ``CUdevice_attribute``: compute capability, major and minor.
_MAJOR: Final = 75
_MINOR: Final = 76
#: ``CUDA_ERROR_OUT_OF_MEMORY``.
_OUT_OF_MEMORY: Final = 2
_BUFFER: Final = 256

#: Functions of the driver with their argument types; all return an error number.
_FUNCTIONS: Final[dict[str, list[Any]]] = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [c_void_p],
    "cuDeviceGet": [c_void_p, c_int],
    "cuDeviceGetName": [c_void_p, c_int, c_int],
    "cuDeviceGetAttribute": [c_void_p, c_int, c_int],
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuDevicePrimaryCtxReset_v2": [c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSynchronize": [],
    "cuModuleLoadData": [c_void_p, c_void_p],
    "cuModuleUnload": [c_void_p],
    "cuModuleGetFunction": [c_void_p, c_void_p, c_char_p],
    "cuMemAlloc_v2": [c_void_p, c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuLaunchKernel": [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p],
    "cuEventCreate": [c_void_p, c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [c_void_p, c_void_p, c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuGetErrorName": [c_int, c_void_p],
    "cuGetErrorString": [c_int, c_void_p],
}

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class NoGpu(RuntimeError):
    """No driver, or no GPU that it knows; the message says which."""


class DriverError(RuntimeError):
    """The driver refused a call; ``out_of_memory`` says whether for want of GPU memory."""

    def __init__(self, message: str, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One kernel ready to launch.

    ``code`` is the cubin that has it as ``entry``. It takes one pointer for each of ``offsets``
    (bytes from the start of the program's memory), then the host's loop ``indices`` as int64.
    """

    code: bytes
    entry: str
    offsets: tuple[int, ...]
    indices: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The host goes through ``steps`` for the values start .. start + extent - 1 of an index."""

    index: str
    start: int
    extent: int
    steps: "tuple[Step, ...]"


#: A launch of the kernel of that number, or a loop of launches.
Step = Union[int, Repeat]  # noqa: UP007 - the alias is recursive


class Driver:
    """One GPU. Calls come from one thread; raises NoGpu where there is none."""

    def __init__(self, library: str = LIBRARY, device: int = 0) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise NoGpu(f"no CUDA driver: {error}") from error
        for called, arguments in _FUNCTIONS.items():
            function = getattr(self._library, called)
            function.argtypes, function.restype = arguments, c_int
        handle, context, version = c_int(), c_void_p(), c_int()
        try:
            self._call("cuInit", 0)
            self._call("cuDeviceGet", byref(handle), device)
        except DriverError as error:
            raise NoGpu(f"no GPU: {error}") from error
        self._device = handle.value
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuDriverGetVersion", byref(version))
        self.version = version.value
        text = ctypes.create_string_buffer(_BUFFER)
        self._call("cuDeviceGetName", text, _BUFFER, self._device)
        self.name = text.value.decode(errors="replace")
        self.capability = (self._attribute(_MAJOR), self._attribute(_MINOR))

    def runs(self, architecture: str) -> bool:
        """Whether cubins for ``sm_80`` and the like run here: same major, minor no larger."""
        major, minor = divmod(int(architecture.removeprefix("sm_")), 10)
        return major == self.capability[0] and minor <= self.capability[1]

    def reset(self) -> None:
        """Give up everything on the GPU, also after a fault that spoilt it."""
        self._library.cuDevicePrimaryCtxReset_v2(self._device)

    def module(self, code: bytes) -> c_void_p:
        """Load a cubin."""
        module = c_void_p()
        self._call("cuModuleLoadData", byref(module), code)
        return module

    def unload(self, module: c_void_p) -> None:
        """Forget a cubin."""
        self._call("cuModuleUnload", module)

    def function(self, module: c_void_p, name: str) -> c_void_p:
        """A kernel of a loaded cubin."""
        function = c_void_p()
        self._call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    @contextmanager
    def memory(self, size: int) -> Iterator[int]:
        """So many bytes of GPU memory: its address, for as long as the block runs."""
        pointer = c_uint64()
        self._call("cuMemAlloc_v2", byref(pointer), size)
        try:
            yield pointer.value
        finally:
            self._library.cuMemFree_v2(pointer)

    def write(self, address: int, data: Bytes) -> None:
        """Copy contiguous bytes to the GPU."""
        self._call("cuMemcpyHtoD_v2", address, data.ctypes.data, data.nbytes)

    def read(self, address: int, data: Bytes) -> None:
        """Copy bytes from the GPU into a contiguous array."""
        self._call("cuMemcpyDtoH_v2", data.ctypes.data, address, data.nbytes)

    def launch(
        self,
        function: c_void_p,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[c_uint64 | c_int64],
    ) -> None:
        """Start a kernel; it may still run when this returns."""
        table = (c_void_p * max(1, len(arguments)))(*[ctypes.addressof(a) for a in arguments])
        self._call("cuLaunchKernel", function, *grid, *block, 0, None, table, None)

    def synchronize(self) -> None:
        """Wait for everything that was started; raises what went wrong on the GPU."""
        self._call("cuCtxSynchronize")

    @contextmanager
    def event(self) -> Iterator[c_void_p]:
        """A mark in the stream of work."""
        event = c_void_p()
        self._call("cuEventCreate", byref(event), 0)
        try:
            yield event
        finally:
            self._library.cuEventDestroy_v2(event)

    def record(self, event: c_void_p) -> None:
        """Set a mark behind what was started."""
        self._call("cuEventRecord", event, None)

    def elapsed(self, first: c_void_p, last: c_void_p) -> float:
        """Milliseconds between two marks, once the GPU has reached the second."""
        milliseconds = c_float()
        self._call("cuEventSynchronize", last)
        self._call("cuEventElapsedTime", byref(milliseconds), first, last)
        return milliseconds.value

    def _attribute(self, number: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), number, self._device)
        return value.value

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            words = []
            for describe in ("cuGetErrorName", "cuGetErrorString"):
                text = c_char_p()
                getattr(self._library, describe)(status, byref(text))
                words.append((text.value or b"unknown").decode(errors="replace"))
            raise DriverError(f"{name}: {': '.join(words)}", status == _OUT_OF_MEMORY)


class Loaded:
    """A program's kernels on the GPU, and the order in which they are launched."""

    def __init__(
        self, driver: Driver, kernels: Sequence[KernelCode], schedule: Sequence[Step]
    ) -> None:
        self._driver, self._kernels, self._schedule = driver, tuple(kernels), tuple(schedule)
        self._modules: dict[bytes, c_void_p] = {}
        for kernel in kernels:
            if kernel.code not in self._modules:
                self._modules[kernel.code] = driver.module(kernel.code)
        self._functions = [driver.function(self._modules[k.code], k.entry) for k in kernels]

    def run(self, memory: Bytes) -> None:
        """Copy the program's memory to the GPU, run the program there, copy the memory back."""
        with self._driver.memory(memory.nbytes) as base:
            self._driver.write(base, memory)
            self._steps(self._schedule, base, {})
            self._driver.synchronize()
            self._driver.read(base, memory)

    def times(self, memory: Bytes, repeats: int = 20, warm_up: int = 3) -> list[float]:
        """Milliseconds of each of ``repeats`` runs, by events, after some that do not count."""
        taken = []
        with (
            self._driver.memory(memory.nbytes) as base,
            self._driver.event() as first,
            self._driver.event() as last,
        ):
            self._driver.write(base, memory)
            for number in range(warm_up + repeats):
                self._driver.record(first)
                self._steps(self._schedule, base, {})
                self._driver.record(last)
                elapsed = self._driver.elapsed(first, last)
                if number >= warm_up:
                    taken.append(elapsed)
        return taken

    def close(self) -> None:
        """Forget the kernels."""
        for module in self._modules.values():
            self._driver.unload(module)
        self._modules.clear()

    def _steps(self, steps: Sequence[Step], base: int, indices: dict[str, int]) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                for value in range(step.start, step.start + step.extent):
                    self._steps(step.steps, base, {**indices, step.index: value})
                continue
            kernel = self._kernels[step]
            arguments: list[c_uint64 | c_int64] = [c_uint64(base + o) for o in kernel.offsets]
            arguments += [c_int64(indices[name]) for name in kernel.indices]
            self._driver.launch(self._functions[step], kernel.grid, kernel.block, arguments)
