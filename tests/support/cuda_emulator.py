"""CUDA programs on the CPU: their own text, compiled by g++, with one fibre for each thread.

The threads of a block take turns, each running to its next barrier. Barriers that not all threads
reach are an error, and so is a result that depends on whose turn is first, so a missing barrier
shows as a difference between the orders. Blocks run one after the other, first or last first.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering.arena import Arena
from steptp_dagster.lowering.cuda.lower import lower
from steptp_dagster.lowering.cuda.program import CudaKernel, CudaProgram, HostLoop, HostStep
from steptp_dagster.lowering.cuda.prologue import PROLOGUE
from steptp_dagster.lowering.kernel import Array, sources
from steptp_dagster.lowering.precision import Precision, in_precision

COMPILER = shutil.which("g++")

HEADER = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ucontext.h>
#include <vector>
#define alignas(n)
#define __global__ static
#define __shared__ static
#define __launch_bounds__(n)
#define LEIR_FN static inline
#define CUDART_INF_F HUGE_VALF
#define CUDART_INF HUGE_VAL
struct Dim { int x, y, z; };
static Dim threadIdx, blockIdx;
struct half {
  _Float16 value;
  half() {}
  explicit half(float x) : value((_Float16)x) {}
  explicit half(double x) : value((_Float16)x) {}
  template <typename T> explicit half(T x) : half((double)x) {}
  explicit operator float() const { return (float)value; }
};
struct Fibre { ucontext_t context; std::vector<char> stack; Dim thread; bool done; };
static ucontext_t scheduler;
static Fibre* current;
static void (*kernel_body)();
static void __syncthreads() { swapcontext(&current->context, &scheduler); }
static void run_thread() { kernel_body(); current->done = true; }
static int launch(void (*body)(), const int* grid, const int* block, int backwards) {
  kernel_body = body;
  int count = block[0] * block[1] * block[2], blocks = grid[0] * grid[1] * grid[2];
  for (int b = 0; b < blocks; ++b) {
    int n = backwards ? blocks - 1 - b : b;
    blockIdx = {n % grid[0], n / grid[0] % grid[1], n / grid[0] / grid[1]};
    std::vector<Fibre> fibres(count);
    for (int t = 0; t < count; ++t) {
      Fibre& f = fibres[t];
      f.stack.resize(1 << 16);
      f.thread = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
      f.done = false;
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = &scheduler;
      makecontext(&f.context, run_thread, 0);
    }
    for (;;) {
      int done = 0;
      for (int t = 0; t < count; ++t) {
        current = &fibres[backwards ? count - 1 - t : t];
        threadIdx = current->thread;
        if (!current->done) swapcontext(&scheduler, &current->context);
        done += current->done;
      }
      if (done == count) break;
      if (done) return 1;
    }
  }
  return 0;
}
"""


class Emulated:
    """A lowered program that runs on the CPU."""

    def __init__(self, program: CudaProgram, signed: SignedProgram, launch: "Launcher") -> None:
        self.program, self.signed, self._launch = program, signed, launch

    def run(self, inputs: Mapping[str, Array], *, backwards: bool = False) -> dict[str, Array]:
        """Outputs by name. Raises AssertionError where not all threads reach a barrier."""
        arena = Arena(self.program.layout)
        for name, value in sources(self.signed.signature, inputs).items():
            arena.write(name, value)
        places = [place.name for place in self.program.layout.places]
        address = dict(zip(places, arena.addresses, strict=True))
        self._steps(self.program.schedule, address, {}, backwards)
        return {v.name: arena.read(v.name) for v in self.signed.signature.outputs}

    def _steps(
        self,
        steps: Sequence[HostStep],
        address: Mapping[str, int],
        indices: dict[str, int],
        backwards: bool,
    ) -> None:
        for step in steps:
            if isinstance(step, HostLoop):
                for value in range(step.start, step.start + step.extent):
                    self._steps(step.body, address, {**indices, step.index: value}, backwards)
                continue
            kernel = step.kernel
            pointers = [address[name] for name in kernel.tensors]
            counts = [indices[name] for name in kernel.indices]
            divergent = self._launch(kernel, pointers, counts, backwards)
            assert not divergent, f"{kernel.name}: not all threads reach a barrier"


class Launcher:
    """Calls the compiled kernels of one program."""

    def __init__(self, library: ctypes.CDLL, prefix: str) -> None:
        self._library, self._prefix = library, prefix

    def __call__(
        self, kernel: CudaKernel, pointers: Sequence[int], counts: Sequence[int], backwards: bool
    ) -> int:
        function = getattr(self._library, f"{self._prefix}_{kernel.name}")
        return int(
            function(
                (ctypes.c_void_p * max(1, len(pointers)))(*pointers),
                (ctypes.c_int64 * max(1, len(counts)))(*counts),
                (ctypes.c_int * 3)(*kernel.geometry.grid),
                (ctypes.c_int * 3)(*kernel.geometry.block),
                ctypes.c_int(backwards),
            )
        )


def emulate(
    programs: Sequence[SignedProgram], folder: Path, precision: Precision = "working"
) -> list[Emulated]:
    """Lower and compile programs in one go. Raises Unlowerable, CalledProcessError."""
    as_run = [in_precision(program, precision) for program in programs]
    lowered = [lower(program) for program in as_run]
    text = HEADER + PROLOGUE
    for number, program in enumerate(lowered):
        body = as_function(program.source.removeprefix(PROLOGUE))
        text += f"namespace p{number} {{\n{body}\n}}\n"
        text += "".join(_wrapper(f"p{number}", kernel, body) for kernel in program.kernels)
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(text, encoding="utf-8")
    compile_library(source, library)
    loaded = ctypes.CDLL(str(library))
    return [
        Emulated(program, signed, Launcher(loaded, f"p{number}"))
        for number, (program, signed) in enumerate(zip(lowered, as_run, strict=True))
    ]


def compile_library(source: Path, library: Path) -> None:
    """A C++ file as a shared library, with IEEE arithmetic. Raises CalledProcessError."""
    options = ["-O1", "-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
    subprocess.run([str(COMPILER), *options, "-o", str(library), str(source)], check=True)


def as_function(text: str) -> str:
    """Kernels as plain functions of the unit."""
    return text.replace('extern "C" __global__', "__global__")


def parameter_types(kernel: CudaKernel, body: str) -> list[str]:
    """The C types of a kernel's parameters."""
    signature = body[body.index(f" {kernel.name}(") :].split("(", 1)[1].split(")", 1)[0]
    return [
        p.rsplit(" ", 1)[0].replace("__restrict__", "") for p in signature.split(",") if p.strip()
    ]


def _wrapper(prefix: str, kernel: CudaKernel, body: str) -> str:
    """A C function that launches one kernel with its arguments in two tables."""
    types = parameter_types(kernel, body)
    pointers = len(kernel.tensors)
    arguments = [
        f"({t})pointers_{prefix}[{i}]" if i < pointers else f"counts_{prefix}[{i - pointers}]"
        for i, t in enumerate(types)
    ]
    name = f"{prefix}_{kernel.name}"
    tables = f"static void** pointers_{name}; static int64_t* counts_{name};\n"
    call = ", ".join(a.replace(f"_{prefix}[", f"_{name}[") for a in arguments)
    return (
        f"{tables}static void body_{name}() {{ {prefix}::{kernel.name}({call}); }}\n"
        f'extern "C" int {name}(void** p, int64_t* c, const int* grid, const int* block, int back)'
        f" {{ pointers_{name} = p; counts_{name} = c;"
        f" return launch(body_{name}, grid, block, back); }}\n"
    )


def close(a: Array, b: Array, tolerance: float) -> bool:
    """Equal up to a tolerance relative to the largest finite magnitude; same NaN and infinities."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    finite = np.isfinite(x) & np.isfinite(y)
    if not np.all(same | finite):
        return False
    scale = max(1.0, float(np.max(np.abs(x[finite]), initial=0.0)))
    return bool(np.all(np.abs(x[finite] - y[finite]) <= tolerance * scale))
