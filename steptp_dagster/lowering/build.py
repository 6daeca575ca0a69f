"""Compiling batches of programs, with a cache, and running one program."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import copysign
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import equations
from steptp_dagster.lowering.abi import OptLevel, compile_functions
from steptp_dagster.lowering.kernel import Array, Kernel
from steptp_dagster.lowering.lower import Lowered, lower
from steptp_dagster.lowering.precision import Precision, in_precision

#: From this many executed equations on, optimised code repays the time that it takes to make.
_OPTIMISE_FROM: Final = 200_000
_CACHED: Final = 512

#: A program with the places of negative zeros in its constants, which ``==`` does not tell apart.
Identity = tuple[SignedProgram, tuple[tuple[int, ...], ...]]

_cache: OrderedDict[tuple[Identity, Precision], Kernel] = OrderedDict()


def identity_of(signed: SignedProgram) -> Identity:
    """A key that is equal exactly for programs that compute the same in every bit."""
    zeros = tuple(
        tuple(i for i, v in enumerate(variable.values) if v == 0 and copysign(1.0, v) < 0.0)
        for variable in signed.signature.sources
        if variable.values is not None
    )
    return signed, zeros


def executed_equations(signed: SignedProgram) -> int:
    """How many equation instances one run executes, guards counted as true."""
    total = 0
    for located in equations(signed.program):
        instances = 1
        for loop in located.loops:
            instances *= loop.extent
        total += instances
    return total


def compile_programs(
    programs: Sequence[SignedProgram], precision: Precision = "working"
) -> list[Kernel]:
    """Kernels for valid programs, in order; programs that a former call compiled are reused.

    All new programs are compiled together, which is several times faster than one by one. Raises
    Unlowerable for a program outside what the lowering covers (``lowering.lower``).
    """
    fresh: dict[tuple[Identity, Precision], tuple[SignedProgram, Lowered]] = {}
    found: dict[tuple[Identity, Precision], Kernel] = {}
    keys = [(identity_of(program), precision) for program in programs]
    for program, key in zip(programs, keys, strict=True):
        if key in found or key in fresh:
            continue
        if key in _cache:
            _cache.move_to_end(key)
            found[key] = _cache[key]
        else:
            as_run = in_precision(program, precision)
            fresh[key] = (as_run, lower(as_run))
    for level in (0, 1):
        chosen = [k for k in fresh if _level(k[0][0]) == level]
        names = {f"program{i}": k for i, k in enumerate(chosen)}
        compiled = compile_functions({n: fresh[k][1].function for n, k in names.items()}, level)
        for name, key in names.items():
            as_run, lowered = fresh[key]
            found[key] = Kernel(as_run, precision, lowered.layout, compiled[name])
            _cache[key] = found[key]
    while len(_cache) > _CACHED:
        _cache.popitem(last=False)
    return [found[key] for key in keys]


def run(
    signed: SignedProgram, inputs: Mapping[str, Array], precision: Precision = "working"
) -> dict[str, Array]:
    """Outputs by name of one valid program; see ``Kernel.run`` for inputs and errors."""
    return compile_programs([signed], precision)[0].run(inputs)


def _level(signed: SignedProgram) -> OptLevel:
    return 1 if executed_equations(signed) >= _OPTIMISE_FROM else 0
