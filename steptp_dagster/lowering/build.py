"""Compiling batches of programs nest by nest, with caches, and running one program."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering.abi import FlatFunction, OptLevel
from steptp_dagster.lowering.identity import Identity, identity_of
from steptp_dagster.lowering.kernel import Array, Call, Kernel
from steptp_dagster.lowering.library import Library
from steptp_dagster.lowering.lower import Facts, facts_of, lower_nests
from steptp_dagster.lowering.nests import NestKey, NestUse, executed, nest_uses, uses_in
from steptp_dagster.lowering.precision import Precision, signature_in

#: Compiled nests that are kept: those of a few dozen originals and of the latest candidates.
_NESTS: Final = 512
#: Programs that are kept, in each precision: those of one batch of pairs and more.
_PROGRAMS: Final = 128

_Wanted = tuple[Identity, Precision, OptLevel | None]

_library = Library(_NESTS)
_programs: OrderedDict[_Wanted, Kernel] = OrderedDict()


def executed_equations(signed: SignedProgram) -> int:
    """How many equation instances one run executes, guards counted as true."""
    return sum(executed(nest) for nest in signed.program.nests)


def compile_programs(
    programs: Sequence[SignedProgram],
    precision: Precision = "working",
    level: OptLevel | None = None,
) -> list[Kernel]:
    """Kernels for valid programs, in order; what a former call compiled is reused.

    Raises Unlowerable for a program outside what the lowering covers (``lowering.lower``).
    ``level`` forces a level of optimisation, which changes no bit.
    """
    return compile_wanted([(program, precision) for program in programs], level)


def compile_wanted(
    wanted: Sequence[tuple[SignedProgram, Precision]], level: OptLevel | None = None
) -> list[Kernel]:
    """As ``compile_programs``, with a precision for each program.

    A nest that no program had before is compiled; all of them together, in one module, which is
    several times faster than one by one.
    """
    keys: list[_Wanted] = [(identity_of(s), precision, level) for s, precision in wanted]
    found: dict[_Wanted, Kernel] = {}
    plans: dict[_Wanted, tuple[Facts, list[NestUse]]] = {}
    missing: dict[NestKey, FlatFunction] = {}
    known: dict[Identity, tuple[Facts, list[NestUse]]] = {}
    for key in keys:
        if key in found or key in plans:
            continue
        if key in _programs:
            _programs.move_to_end(key)
            found[key] = _programs[key]
            continue
        identity, precision, _ = key
        if identity not in known:
            facts = facts_of(identity.signed)
            known[identity] = facts, list(nest_uses(facts, level))
        facts, uses = known[identity]
        plans[key] = facts, uses_in(uses, precision)
        for position, use in enumerate(plans[key][1]):
            if use.key not in missing and use.key not in _library:
                missing[use.key] = lower_nests(facts, [position], use.names, precision)
    _library.add(missing)
    for key, (facts, uses) in plans.items():
        found[key] = _programs[key] = _kernel(facts, uses, key[1])
    _library.shrink()
    while len(_programs) > _PROGRAMS:
        _programs.popitem(last=False)
    return [found[key] for key in keys]


def run(
    signed: SignedProgram, inputs: Mapping[str, Array], precision: Precision = "working"
) -> dict[str, Array]:
    """Outputs by name of one valid program; see ``Kernel.run`` for inputs and errors."""
    return compile_programs([signed], precision)[0].run(inputs)


def _kernel(facts: Facts, uses: Sequence[NestUse], precision: Precision) -> Kernel:
    places = {name: i for i, name in enumerate(facts.tensors)}
    calls = tuple(Call(_library[u.key], tuple(places[n] for n in u.names)) for u in uses)
    signature = signature_in(facts.signed.signature, precision)
    return Kernel(signature, precision, facts.layout(precision), calls)
