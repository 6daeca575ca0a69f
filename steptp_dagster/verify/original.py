"""What an original program computes on every input family: the side that candidates share.

The families respect the domain of the original alone. Where it has no value (NaN, or a pole,
``domain``) on some data of a family, the family is used again with positive parameters, then with
positive data; a variant on which it has no value at all is dropped.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from steptp_dagster.leir.ast import Compare, Expr, Int, Real, Unary
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, equations, expressions, iter_expr
from steptp_dagster.lowering.build import Identity, identity_of
from steptp_dagster.verify.compare import EPSILON, Array, difference, error, fits, is_float
from steptp_dagster.verify.domain import Reference, takes_masks, without_overflow
from steptp_dagster.verify.engine import LLVM, Engine, Runner
from steptp_dagster.verify.families import (
    DOMAINS,
    FAMILIES,
    Domain,
    Family,
    inputs,
    thresholds_family,
)
from steptp_dagster.verify.margins import margins

_KEPT: Final = 4
#: Scaling all data by one plus this moves smooth results by hardly more, so that a change above
#: ``_ROUNDING`` is rounding of the binary64 evaluation itself, too near to T1's bound (1e-11).
_NUDGE: Final = 2.0**-48
_ROUNDING: Final = 2.5e-12
#: Data sets of a family that the original's own error is measured on.
_DRAWS: Final = 4
#: A normalised error above this leaves no correct digit worth comparing.
USELESS: Final = 0.25
_kept: OrderedDict[tuple[Identity, int, tuple[float, ...], str], "Original"] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of a family: inputs, and the original's outputs in both precisions by name.

    ``noise``: the outputs are what is left of rounding errors after everything cancelled, such as
    ``x - mean(x)`` of constant data or the divergence of two equal distributions; two programs
    that compute the same function differ there.
    ``errors``: by float output, the original's largest error in epsilons over a few draws, since
    the error of one draw may be small by luck (a single rounding that happened to be exact).
    ``data_scale`` is the largest magnitude of the float inputs and parameters.
    """

    family: Family
    domain: Domain
    inputs: dict[str, Array]
    reference: dict[str, Array]
    working: dict[str, Array]
    errors: dict[str, float]
    noise: bool
    data_scale: float

    @property
    def judges_values(self) -> bool:
        """Whether float values can be compared here, not just finiteness."""
        return not (self.family.only_finiteness or self.noise)

    @property
    def name(self) -> str:
        """The family's name, with the domain where it was restricted."""
        return f"{self.family.name}/{self.domain}" if self.domain else self.family.name


@dataclass(frozen=True, slots=True)
class Original:
    """An original with its results.

    ``dropped`` names the families it has no value on; ``margins`` says how far trivial answers
    are from its outputs (``margins.margins``).
    """

    signed: SignedProgram
    cases: tuple[Case, ...]
    dropped: tuple[str, ...]
    margins: tuple[tuple[str, float], ...]

    @property
    def plain_families(self) -> int:
        """How many well-scaled families it can be judged on."""
        return len(
            {c.family.name for c in self.cases if c.judges_values and not c.family.adversarial}
        )


def thresholds(*programs: SignedProgram) -> tuple[float, ...]:
    """The literals that data is compared with, in ascending order."""
    found = {
        value
        for program in programs
        for located in equations(program.program)
        for expr in expressions(located.equation)
        for node in iter_expr(expr)
        if isinstance(node, Compare) and any(True for _ in accesses_in(node))
        for operand in node.operands
        for value in _literal(operand)
    }
    return tuple(sorted(found))


def evaluate(
    signed: SignedProgram,
    seed: int,
    compared: tuple[float, ...] = (),
    engine: Engine = LLVM,
) -> Original:
    """Run a valid original on all families; ``compared`` are the thresholds to test at.

    The last few results are kept, since candidates of one original come one after the other.
    Raises what compiling and running raise (``lowering``).
    """
    key = (identity_of(signed), seed, compared, engine.target)
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    working = engine.compile([signed], "working")[0]
    double = Reference(signed, engine.compile([signed], "float64")[0], engine)
    masks = takes_masks(signed)
    families = [family for family in FAMILIES if masks or not family.infinite]
    families += [thresholds_family(compared)] if compared else []
    cases: list[Case] = []
    dropped: list[str] = []
    for family in families:
        found = _cases(signed, family, seed, working, double)
        cases += found
        if not found:
            dropped.append(family.name)
    result = Original(signed, tuple(cases), tuple(dropped), margins(signed.signature, cases))
    _kept[key] = result
    while len(_kept) > _KEPT:
        _kept.popitem(last=False)
    return result


def missing(outputs: dict[str, Array]) -> float:
    """The part of all output elements that is NaN, between 0 and 1."""
    total = sum(o.size for o in outputs.values())
    return sum(int(np.sum(np.isnan(o))) for o in outputs.values() if o.dtype.kind == "f") / total


def _cases(
    signed: SignedProgram, family: Family, seed: int, working: Runner, double: Reference
) -> list[Case]:
    found = []
    for domain in DOMAINS:
        data = inputs(signed.signature, family, seed, domain)
        reference = _reference(double, family, data)
        share = missing(reference)
        if family.adversarial and not family.infinite:
            reference = without_overflow(reference)
        if share < 1.0:
            results = working.run(data)
            errors = _errors(signed, data, reference, results)
            noisy = _rounds_visibly(signed, family, double, data, reference)
            for draw in range(1, _DRAWS if not family.only_finiteness else 1):
                more = inputs(signed.signature, family, seed, domain, draw)
                exact = _reference(double, family, more)
                other = _errors(signed, more, exact, working.run(more))
                errors = {name: max(e, other[name]) for name, e in errors.items()}
                noisy = noisy or _rounds_visibly(signed, family, double, more, exact)
            # Discrete data changes sides of a comparison when it is scaled, which is no noise.
            noise = noisy and (not family.discrete or _useless(signed, errors))
            scale = _scale(signed, data)
            found.append(Case(family, domain, data, reference, results, errors, noise, scale))
        if share == 0.0 or family.infinite:
            break
    return found


def _scale(signed: SignedProgram, data: dict[str, Array]) -> float:
    """The largest finite magnitude of all float data; 1 where there is none."""
    found = [
        float(np.max(np.abs(np.nan_to_num(data[v.name].astype(np.float64), posinf=0, neginf=0))))
        for v in signed.signature.sources
        if v.role != "const" and is_float(v.dtype)
    ]
    return max(found, default=0.0) or 1.0


def _reference(double: Reference, family: Family, data: dict[str, Array]) -> dict[str, Array]:
    """Adversarial data overflows more often than it meets poles; infinite data means infinities."""
    return double.kernel.run(data) if family.adversarial else double.run(data)


def _errors(
    signed: SignedProgram,
    data: dict[str, Array],
    reference: dict[str, Array],
    working: dict[str, Array],
) -> dict[str, float]:
    """The error of every float output where both results are finite, in epsilons."""
    found = {}
    scale = _scale(signed, data)
    for variable in signed.signature.outputs:
        if is_float(variable.dtype):
            exact, own = reference[variable.name], working[variable.name]
            counted = fits(exact, variable.dtype) & np.isfinite(own.astype(np.float64))
            found[variable.name] = error(exact, own, variable.dtype, counted, scale)
    return found


def _useless(signed: SignedProgram, errors: dict[str, float]) -> bool:
    """Whether an output has no correct digit in working precision."""
    by_name = signed.signature.by_name
    return any(e * EPSILON[by_name[name].dtype] > USELESS for name, e in errors.items())


def _rounds_visibly(
    signed: SignedProgram,
    family: Family,
    double: Reference,
    data: dict[str, Array],
    reference: dict[str, Array],
) -> bool:
    """Whether rounding alone could make two evaluations in binary64 differ as T1 measures it."""
    if family.adversarial:
        return False
    scaled = dict(data)
    for variable in signed.signature.sources:
        if variable.role != "const" and is_float(variable.dtype) and variable.low is None:
            scaled[variable.name] = data[variable.name].astype(np.float64) * (1.0 + _NUDGE)
    changed = double.kernel.run(scaled)
    return any(
        difference(reference[v.name], changed[v.name]) > _ROUNDING
        for v in signed.signature.outputs
        if is_float(v.dtype)
    )


def _literal(expr: Expr) -> list[float]:
    match expr:
        case Int() | Real():
            return [float(expr.value)]
        case Unary(operand=Int() | Real() as operand):
            return [-float(operand.value)]
        case _:
            return []
