"""How faithful a translation is: many kinds of data, two evaluators, two precisions.

In float64 the compiled LEIR and the reference interpreter must give what PyTorch gives. In working
precision no two evaluations agree; there PyTorch must err by as much as the float64 evaluation of
the LEIR predicts (``Rounding``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from steptp_dagster.dataset.perturbation import perturbed
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.lowering import compile_programs
from steptp_dagster.verify.compare import EPSILON, Array, error, fits, is_float
from steptp_dagster.verify.domain import takes_masks
from steptp_dagster.verify.families import DOMAINS, FAMILIES, Family, inputs, thresholds_family
from steptp_dagster.verify.original import USELESS, thresholds

if TYPE_CHECKING:
    from steptp_dagster.translate.reference import Reference

Evaluator = Literal["tvm", "interpreter"]
#: Arrays by LEIR name.
Data = Mapping[str, Array]
#: Families of the compiled program, beside the given inputs and thresholds; the interpreter, which
#: is slow, takes those of ``INTERPRETED``.
COMPILED: Final = ("normal", "ties", "sparse", "negative", "near-ties", "offset", "masked")
INTERPRETED: Final = ("normal", "ties", "sparse", "masked")
#: The example inputs with the module's own parameters.
GIVEN: Final = "given"
#: An error may be this many times what is predicted, plus this many epsilons.
FACTOR: Final = 8.0
SLACK: Final = 16.0

#: Precisions with a wider one to measure them by.
NARROW: Final = ("f16", "bf16", "f32")

_SEED: Final = 0
_DRAWS: Final = 1
#: All data times one plus this: smooth results hardly move.
_NUDGE: Final = 2.0**-48
_BY_NAME: Final = {family.name: family for family in FAMILIES}


@dataclass(frozen=True, slots=True)
class Comparison:
    """PyTorch and LEIR, both in float64, on one family of data.

    ``difference`` is the largest normalised one (``translate.fidelity``), ``inf`` where not even
    shapes, NaNs, infinities or integers agree. ``usable``: the data proves something; it does not
    where the module raises, has no value, or gives nothing but rounding noise.
    """

    family: str
    evaluator: Evaluator
    difference: float
    usable: bool


@dataclass(frozen=True, slots=True)
class Rounding:
    """Errors in working precision on one family, in epsilons, against LEIR in float64.

    ``pytorch`` and ``leir`` are the largest normalised errors (``verify.compare.error``) of the
    two, ``predicted`` the largest change of the float64 result when every float that the LEIR
    reads is moved by up to one epsilon (``perturbation``). ``overflow``: the LEIR has no finite
    value somewhere that PyTorch has one.
    """

    family: str
    pytorch: float
    leir: float
    predicted: float
    overflow: bool = False

    @property
    def agrees(self) -> bool:
        """Whether each error is within ``FACTOR`` times the other and the predicted one.

        ``SLACK`` epsilons are allowed to both, since the rounding of one may be exact by luck.
        """
        below = self.pytorch <= FACTOR * (self.leir + self.predicted) + SLACK
        above = self.leir <= FACTOR * (self.pytorch + self.predicted) + SLACK
        return below and above and not self.overflow


@dataclass(frozen=True, slots=True)
class Case:
    """Data of one family by LEIR name, and what PyTorch makes of it in float64.

    ``family`` is None for the given data; ``expected`` is None where the module raises.
    """

    name: str
    family: Family | None
    data: dict[str, Array]
    expected: dict[str, Array] | None


def cases(reference: "Reference", names: tuple[str, ...] = COMPILED) -> tuple[Case, ...]:
    """The given data, then the named families that the program can take, then its thresholds.

    A finite family on which the module raises or has no value somewhere is used again with
    positive parameters, then with positive data, as originals are (``verify.original``).
    """
    signed = reference.translation.signed
    families = [
        f for f in map(_BY_NAME.__getitem__, names) if not f.infinite or takes_masks(signed)
    ]
    if literals := thresholds(signed):
        families.append(thresholds_family(literals))
    given = reference.given()
    found = [Case(GIVEN, None, given, _expected(reference, given))]
    for family in families:
        for domain in DOMAINS:
            data = inputs(signed.signature, family, _SEED, domain)
            name = f"{family.name}/{domain}" if domain else family.name
            found.append(Case(name, family, data, _expected(reference, data)))
            if family.infinite or _defined(found[-1].expected):
                break
    return tuple(found)


def comparisons(
    reference: "Reference", evaluator: Evaluator, tried: tuple[Case, ...]
) -> tuple[Comparison, ...]:
    """PyTorch and LEIR in float64 on every case."""
    from steptp_dagster.translate.fidelity import compared

    run = _evaluator(reference.translation.signed, evaluator)
    found = []
    for case in tried:
        if case.expected is None:
            found.append(Comparison(case.name, evaluator, 0.0, usable=False))
            continue
        apart = compared(run(case.data), case.expected)
        usable = any(not _nowhere(values) for values in case.expected.values())
        if usable and not apart.faithful:
            usable = not _is_noise(reference, case, case.expected)
        found.append(Comparison(case.name, evaluator, apart.max_normalised_error, usable=usable))
    return tuple(found)


def _evaluator(signed: SignedProgram, evaluator: Evaluator) -> Callable[[Data], Data]:
    from steptp_dagster.translate.fidelity import by_interpreter

    if evaluator == "interpreter":
        return lambda data: by_interpreter(signed, data)
    return compile_programs([signed], "float64")[0].run


def roundings(reference: "Reference", tried: tuple[Case, ...]) -> tuple[Rounding, ...]:
    """Errors in working precision on the finite cases, where PyTorch computes in it at all.

    Empty for float64 programs, which have no wider reference.
    """
    from steptp_dagster.translate.reference import ModuleFailed

    signed = reference.translation.signed
    floats = [v for v in signed.signature.outputs if v.dtype in NARROW]
    if not floats:
        return ()
    double = compile_programs([signed], "float64")[0]
    working = compile_programs([signed], "working")[0]
    shaken = compile_programs([perturbed(signed, float(d)) for d in range(_DRAWS)], "float64")
    found = []
    for case in tried:
        if case.family is not None and case.family.infinite:
            continue
        try:
            theirs = reference.run(case.data, double=False)
        except ModuleFailed:
            continue
        exact, ours = double.run(case.data), working.run(case.data)
        moved = [kernel.run(case.data) for kernel in shaken]
        parts = [_rounding(case.name, v, exact, theirs, ours, moved) for v in floats]
        found.append(
            Rounding(
                case.name,
                max(p.pytorch for p in parts),
                max(p.leir for p in parts),
                max(p.predicted for p in parts),
                any(p.overflow for p in parts),
            )
        )
    return tuple(found)


def _rounding(
    name: str, variable: Variable, exact: Data, theirs: Data, ours: Data, moved: Sequence[Data]
) -> Rounding:
    """The errors of one output."""
    key, dtype = variable.name, variable.dtype
    results = [theirs[key], ours[key].astype(np.float64), *(m[key] for m in moved)]
    inside = fits(exact[key], dtype) & np.isfinite(results[0])
    counted = np.logical_and.reduce([inside, *(np.isfinite(r) for r in results)])
    errors = [error(exact[key], result, dtype, counted, 1.0) for result in results]
    overflow = not bool(np.isfinite(results[1][inside]).all())
    return Rounding(name, errors[0], errors[1], max(errors[2:]), overflow)


def _expected(reference: "Reference", data: Data) -> dict[str, Array] | None:
    from steptp_dagster.translate.reference import ModuleFailed

    try:
        return reference.run(data, double=True)
    except ModuleFailed:
        return None


def _defined(results: Data | None) -> bool:
    """Whether the module gave a value everywhere."""
    return results is not None and not any(
        r.dtype.kind == "f" and bool(np.isnan(r).any()) for r in results.values()
    )


def _nowhere(values: Array) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).all())


def _is_noise(reference: "Reference", case: Case, expected: Data) -> bool:
    """Whether PyTorch's own float64 results are what is left of rounding after cancellation.

    They move when all data is scaled by almost nothing. Where data is of few values a comparison
    with a literal may tip over, which is no noise: there the working precision must have no
    correct digit either.
    """
    from steptp_dagster.translate.fidelity import compared

    signature = reference.translation.signed.signature
    scaled = dict(case.data)
    for variable in signature.sources:
        if variable.role != "const" and is_float(variable.dtype) and variable.low is None:
            scaled[variable.name] = case.data[variable.name].astype(np.float64) * (1.0 + _NUDGE)
    if compared(reference.run(scaled, double=True), expected).faithful:
        return False
    if case.family is None or not case.family.discrete:
        return True
    working = reference.run(case.data, double=False)
    errors = [
        error(values, working[name], "f64", np.isfinite(values) & np.isfinite(working[name]), 1.0)
        for name, values in expected.items()
        if values.dtype.kind == "f"
    ]
    return bool(errors) and max(errors) * EPSILON["f64"] > USELESS
