"""Originals that would make meaningless steps: found before any step is made from them."""

from collections.abc import Iterator

import numpy as np

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import accesses_in, equations, expressions
from steptp_dagster.lowering import Unlowerable, compile_programs
from steptp_dagster.lowering.arena import KernelFault
from steptp_dagster.verify.budget import too_large
from steptp_dagster.verify.compare import (
    EPSILON,
    Array,
    difference,
    is_float,
    same_values,
)
from steptp_dagster.verify.families import FAMILIES, inputs
from steptp_dagster.verify.idle import SAME, idle
from steptp_dagster.verify.original import USELESS, Case, Original, evaluate
from steptp_dagster.verify.verdict import FEWEST_FAMILIES


def screen(original: SignedProgram, *, seed: int = 0) -> tuple[str, ...]:
    """Why no steps should start from a program; empty for a sound one.

    ``invalid``, ``too-large``, ``first-touch-undecidable``, ``too-few-families``;
    ``unused:K`` (a tensor no output depends on), ``constant-output:D``, ``output-is:D=A`` (the
    output repeats an input), ``insensitive-to:A`` (no output depends on input or parameter A),
    ``no-effect:D=C`` (an operator whose result D could as well be C), ``constant:C`` (a result
    that is the same number for all data; both ``idle``),
    ``inaccurate:D`` (working precision keeps no digit, as in long sums of halves).
    """
    if check(original):
        return ("invalid",)
    if too_large(original):
        return ("too-large",)
    try:
        evaluated = evaluate(original, seed)
        found = [
            *_unused(original),
            *_constant(evaluated),
            *_repeated(evaluated),
            *_insensitive(original, evaluated, seed),
            *idle(original, evaluated.cases),
            *_inaccurate(evaluated),
        ]
    except (KernelFault, Unlowerable) as fault:
        return (fault.reason,)
    if evaluated.plain_families < FEWEST_FAMILIES:
        found.append("too-few-families")
    return tuple(found)


def _unused(original: SignedProgram) -> Iterator[str]:
    reads: dict[str, set[str]] = {}
    for located in equations(original.program):
        equation = located.equation
        read = reads.setdefault(equation.target.name, set())
        for expr in expressions(equation):
            read.update(a.name for a in accesses_in(expr))
    needed = {v.name for v in original.signature.outputs}
    open_names = sorted(needed)
    while open_names:
        fresh = reads.get(open_names.pop(), set()) - needed
        needed |= fresh
        open_names += sorted(fresh)
    yield from (f"unused:{name}" for name in sorted(set(reads) - needed))


def _plain(evaluated: Original) -> list[Case]:
    return [c for c in evaluated.cases if not c.family.adversarial]


def _constant(evaluated: Original) -> Iterator[str]:
    """Outputs whose elements never differ; a single one must be the same on all families."""
    for variable in evaluated.signed.signature.outputs:
        results = [c.reference[variable.name].astype(np.float64) for c in _plain(evaluated)]
        if not results:
            continue
        if results[0].size > 1:
            constant = all(_is_constant(r) for r in results)
        else:
            constant = all(_alike(results[0], r) for r in results)
        if constant:
            yield f"constant-output:{variable.name}"


def _is_constant(result: Array) -> bool:
    known = result[~np.isnan(result)]
    return known.size == 0 or _alike(known, np.full_like(known, known.flat[0]))


def _repeated(evaluated: Original) -> Iterator[str]:
    cases = _plain(evaluated)
    for variable in evaluated.signed.signature.outputs:
        for source in evaluated.signed.signature.sources:
            if source.role == "const" or source.shape != variable.shape or not cases:
                continue
            if all(_alike(c.inputs[source.name], c.reference[variable.name]) for c in cases):
                yield f"output-is:{variable.name}={source.name}"


def _insensitive(original: SignedProgram, evaluated: Original, seed: int) -> Iterator[str]:
    """Inputs whose values can be exchanged, in every plain family, with no effect but rounding."""
    kernel = compile_programs([original], "float64")[0]
    cases = _plain(evaluated)
    for source in original.signature.sources:
        if source.role == "const" or not cases:
            continue
        for case in cases:
            other = inputs(original.signature, FAMILIES[1], seed + 1, case.domain)[source.name]
            changed = kernel.run({**case.inputs, source.name: other})
            if not all(_kept(case.reference[n], changed[n]) for n in changed):
                break
        else:
            yield f"insensitive-to:{source.name}"


def _kept(reference: Array, changed: Array) -> bool:
    if reference.dtype.kind != "f":
        return same_values(reference, changed)
    return _alike(reference, changed) and _alike(changed, reference)


def _inaccurate(evaluated: Original) -> Iterator[str]:
    for variable in evaluated.signed.signature.outputs:
        if is_float(variable.dtype) and any(
            c.family.name == "normal"
            and c.errors[variable.name] * EPSILON[variable.dtype] > USELESS
            for c in _plain(evaluated)
        ):
            yield f"inaccurate:{variable.name}"


def _alike(left: Array, right: Array) -> bool:
    return difference(left.astype(np.float64), right.astype(np.float64)) <= SAME
