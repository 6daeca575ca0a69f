"""Whole programs: made from their nests, and their outputs."""

from typing import Final

from benchmarks.oracle.cells import Array, array_of
from benchmarks.oracle.running import Compiled, Meaningless, NestCode, Outcome
from benchmarks.oracle.trees import accesses, all_equations, parts_of
from benchmarks.oracle.writer import Writer
from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.signature import SignedProgram

_codes: Final[dict[tuple[Nest, bool], NestCode]] = {}


def compiled(signed: SignedProgram, single: bool = False) -> Compiled:
    """A program as Python. Raises Meaningless."""
    names = _names(signed)
    if len(_codes) > 4000:
        _codes.clear()
    codes = []
    for nest in signed.program.nests:
        key = nest, single
        if key not in _codes:
            _codes[key] = Writer(nest, single).compiled()
        codes.append(_codes[key])
    return Compiled(signed, tuple(codes), names)


def _names(signed: SignedProgram) -> tuple[str, ...]:
    """All tensors; raises Meaningless for names, annotations and ranks that do not agree."""
    forms = {v.name: (len(v.shape), "g", v.dtype) for v in signed.signature.variables}
    written = {e.target.name for e in all_equations(signed.program.nests)}
    for equation in all_equations(signed.program.nests):
        known = signed.signature.by_name.get(equation.target.name)
        if known is not None and known.role != "output":
            raise Meaningless(f"input-written: {known.name}")
        for access in (a for p in parts_of(equation) for a in accesses(p)):
            name, form = access.name, (len(access.subscripts), access.scope, access.dtype)
            if name not in forms and name not in written:
                raise Meaningless(f"unknown-name: {name}")
            if forms.setdefault(name, form) != form:
                raise Meaningless(f"annotation-conflict: {name}")
    return tuple(sorted(forms))


def outputs(compiled: Compiled, outcome: Outcome) -> tuple[dict[str, Array], str | None]:
    """The outputs of a run, and what is wrong with them."""
    found = {}
    for variable in compiled.signed.signature.outputs:
        array, fault = array_of(outcome.cells[variable.name], variable.shape)
        found[variable.name] = array
        if fault:
            return found, f"output-incomplete: {variable.name}: {fault}"
    return found, None
