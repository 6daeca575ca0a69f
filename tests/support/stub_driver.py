"""A stand-in for ``libcuda.so.1`` that runs kernels on the CPU, and "cubins" for it.

So the whole host path runs without a GPU: loading, memory, launches, events, errors, verdicts.
"""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from steptp_dagster.lowering.cuda.cubins import CompiledKernel
from steptp_dagster.lowering.cuda.nvrtc import CudaBuildError, Usage
from steptp_dagster.lowering.cuda.program import CudaKernel, CudaProgram
from steptp_dagster.lowering.cuda.prologue import PROLOGUE
from tests.support.cuda_emulator import HEADER, as_function, compile_library, parameter_types

SOURCE = Path(__file__).with_name("stub_driver.cpp")


def build_driver(folder: Path) -> Path:
    """Compile the stub; its path."""
    library = folder / "libstub_cuda.so"
    compile_library(SOURCE, library)
    return library


class StubCompiler:
    """``cubins.compile_kernels`` for the stub; a text is compiled once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, count()
        self._known: dict[str, tuple[CompiledKernel, ...]] = {}

    def __call__(
        self, programs: Sequence[CudaProgram], architecture: str, *, contract: bool = False
    ) -> list[tuple[CompiledKernel, ...] | CudaBuildError]:
        assert architecture.startswith("sm_")
        missing = {p.source: p for p in programs if p.source not in self._known}
        if missing:
            self._compile(list(missing.values()))
        return [self._known[program.source] for program in programs]

    def _compile(self, programs: Sequence[CudaProgram]) -> None:
        number = next(self._number)
        source, library = (self._folder / f"module{number}.{end}" for end in ("cpp", "so"))
        text = HEADER + PROLOGUE
        for i, program in enumerate(programs):
            text += f"namespace p{i} {{\n" + "".join(map(as_function, program.texts)) + "}\n"
            for kernel, own in zip(program.kernels, program.texts, strict=True):
                text += _entry(f"p{i}", kernel, own)
        source.write_text(text, encoding="utf-8")
        compile_library(source, library)
        code = b"STUB" + str(library).encode() + b"\0"
        for i, program in enumerate(programs):
            self._known[program.source] = tuple(
                CompiledKernel(code, f"p{i}_{kernel.name}", Usage(kernel.name, *[0] * 6, 0.0))
                for kernel in program.kernels
            )


def _entry(space: str, kernel: CudaKernel, text: str) -> str:
    """A C function that takes what ``cuLaunchKernel`` gives: addresses of the arguments."""
    name = f"{space}_{kernel.name}"
    arguments = ", ".join(
        f"*({kind}*)arguments_{name}[{i}]" for i, kind in enumerate(parameter_types(kernel, text))
    )
    return (
        f"static void** arguments_{name};\n"
        f"static void body_{name}() {{ {space}::{kernel.name}({arguments}); }}\n"
        f'extern "C" int {name}(void** arguments, const int* grid, const int* block)'
        f" {{ arguments_{name} = arguments; return launch(body_{name}, grid, block, 0); }}\n"
    )
