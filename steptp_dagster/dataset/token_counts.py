"""Tokens of one program in each language that it can be written in.

=================== ========================================================================
``leir``            the paper's spelling, without header lines
``compact``         the compact spelling (``leir.compact``)
``tir_blocks``      TVM's script with blocks, as its schedules take and print it
``tir_loops``       TVM's script of plain loops, the shortest TIR there is
``tir_exact``       TVM's script of what verification runs, rounding spelled out
``tvm_file``        the whole CUDA file that TVM makes of the script with blocks
``tvm_kernels``     the kernels in that file alone
``cuda_file``       the whole CUDA file of ``lowering.cuda``
``cuda_kernels``    the kernels in that file alone
=================== ========================================================================

The last seven cost a hundred times the first two, so they are counted for a sample: all translated
sources, and of the results of steps the ``RESULTS`` whose ids come first (ids are digests).
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.tokens import count
from steptp_dagster.leir.compact import compact
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import equations

#: Results of steps that are counted in all languages.
RESULTS: Final = 40
LEIR_FORMS: Final = ("leir", "compact")
OTHER_FORMS: Final = (
    "tir_blocks",
    "tir_loops",
    "tir_exact",
    "tvm_file",
    "tvm_kernels",
    "cuda_file",
    "cuda_kernels",
)
#: TVM unrolls loops while it compiles: from so many copies of an equation on it is not asked.
MOST_COPIES: Final = 256
_KERNEL: Final = 'extern "C" __global__'


class TooManyCopies(ValueError):
    """TVM would unroll the program to a text that nobody wants to count."""


def sample(sources: Collection[str], results: Collection[str]) -> frozenset[str]:
    """The ids of the programs that are counted in all languages."""
    others = sorted(set(results) - set(sources))
    return frozenset(sources) | frozenset(others[:RESULTS])


def row(leir_id: str, signature: str, text: str, *, all_languages: bool) -> Row:
    """A row of ``token_counts`` (without ``unit``)."""
    signed = read(f"{signature}{text}").signed
    found: dict[str, int | None] = {"leir": count(text), "compact": count(compact(signed.program))}
    refusals: list[str] = []
    if all_languages:
        for make in (_scripts, _by_tvm, _by_us):
            found |= _counted(make, signed, refusals)
    return {
        "leir_id": leir_id,
        "sampled": all_languages,
        **{form: found.get(form) for form in (*LEIR_FORMS, *OTHER_FORMS)},
        "refusals": refusals,
    }


def _counted(
    make: Callable[[SignedProgram], Mapping[str, str]], signed: SignedProgram, refusals: list[str]
) -> dict[str, int | None]:
    """Counts of the texts that ``make`` gives; where it refuses, why."""
    try:
        return {form: count(text) for form, text in make(signed).items()}
    except (RuntimeError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        # TVM's errors are of all these kinds; their texts name places of the machine.
        refusals.append(f"{make.__name__.removeprefix('_')}: {type(error).__name__}")
        return {}


def _scripts(signed: SignedProgram) -> dict[str, str]:
    """TVM's scripts."""
    from steptp_dagster.lowering.lower import lower
    from steptp_dagster.lowering.plain import blocks_function, loops_function, script

    return {
        "tir_blocks": script(blocks_function(signed)),
        "tir_loops": script(loops_function(signed)),
        "tir_exact": "\n".join(str(part.script()) for part in lower(signed).function.body),
    }


def _by_tvm(signed: SignedProgram) -> dict[str, str]:
    """What TVM's code generator makes."""
    from steptp_dagster.lowering.plain import cuda_source

    copies = 0
    for located in equations(signed.program):
        here = 1
        for loop in located.loops:
            here *= loop.extent if loop.kind in "UV" else 1
        copies += here
    if copies > MOST_COPIES:
        raise TooManyCopies
    with _quiet():
        whole = cuda_source(signed)
    _, *pieces = whole.split(_KERNEL)
    # Declarations in front of the definitions have no body.
    kernels = [f"{_KERNEL}{piece}" for piece in pieces if "{" in piece]
    return {"tvm_file": whole, "tvm_kernels": "".join(kernels)}


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing on standard error: TVM warns of powers there, from C++."""
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _by_us(signed: SignedProgram) -> dict[str, str]:
    """What ``lowering.cuda`` makes."""
    from steptp_dagster.lowering.cuda.lower import lower

    program = lower(signed)
    return {"cuda_file": program.source, "cuda_kernels": "".join(program.texts)}
