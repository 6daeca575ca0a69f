"""An original run on input families, many runs at a time: what ``original`` makes its cases of."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.verify import rows
from steptp_dagster.verify.compare import EPSILON, Array, fits, is_float
from steptp_dagster.verify.domain import Reference, without_overflow
from steptp_dagster.verify.engine import Runner
from steptp_dagster.verify.families import DOMAINS, Domain, Family, inputs

#: Scaling all data by one plus this moves smooth results by hardly more, so that a change above
#: ``_ROUNDING`` is rounding of the binary64 evaluation itself, too near to T1's bound (1e-11).
_NUDGE: Final = 2.0**-48
_ROUNDING: Final = 2.5e-12
#: Data sets of a family that the original's own error is measured on.
_DRAWS: Final = 4
#: A normalised error above this leaves no correct digit worth comparing.
USELESS: Final = 0.25
#: Bytes of arrays that are worked on together, and of the data of one signature that is kept.
_TOGETHER: Final = 32 * 2**20
_KEPT_BYTES: Final = 8 * 2**20
#: Signatures whose data is kept: an original and the results of its steps share theirs.
_KEPT: Final = 4

_Run = tuple[Family, Domain, int]
_drawn: OrderedDict[tuple[tuple[Variable, ...], int], dict[tuple[str, str, int], dict[str, Array]]]
_drawn = OrderedDict()


@dataclass(frozen=True, slots=True)
class Variant:
    """A family's name and domain, and what its results were found to be (``original.Case``)."""

    family: str
    domain: Domain
    errors: dict[str, float]
    noise: bool
    data_scale: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Variants of families in order, and by name the arrays of all of them, a row for each.

    ``dropped`` names the families on which the original has no value.
    """

    variants: tuple[Variant, ...]
    inputs: dict[str, Array]
    reference: dict[str, Array]
    working: dict[str, Array]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """One run: its arrays, the part of its reference that is NaN, errors, visible rounding."""

    inputs: dict[str, Array]
    reference: dict[str, Array]
    working: dict[str, Array]
    missing: float
    errors: dict[str, float]
    noisy: bool
    scale: float


def measure(
    signed: SignedProgram,
    families: Sequence[Family],
    seed: int,
    working: Runner,
    double: Reference,
) -> Measured:
    """Run the original on all families, in every domain that it takes to have values."""
    runs = _Runs(signed, seed, working, double)
    found: dict[tuple[int, int], tuple[Variant, _Seen]] = {}
    pending = list(range(len(families)))
    for level, domain in enumerate(DOMAINS):
        first = _first_with_values(runs, families, pending, domain)
        valued = [i for i in pending if first[i].missing < 1.0]
        more = [
            (i, (families[i], domain, draw))
            for i in valued
            if not families[i].only_finiteness
            for draw in range(1, _DRAWS)
        ]
        others: dict[int, list[_Seen]] = {i: [first[i]] for i in valued}
        for (i, _), seen in zip(more, runs.of([run for _, run in more]), strict=True):
            others[i].append(seen)
        for i in valued:
            found[i, level] = _variant(signed, families[i], domain, others[i]), first[i]
        pending = [i for i in pending if first[i].missing != 0.0 and not families[i].infinite]
    kept = [found[key] for key in sorted(found)]
    known = {i for i, _ in found}
    return Measured(
        tuple(variant for variant, _ in kept),
        inputs=_stacked([seen.inputs for _, seen in kept]),
        reference=_stacked([seen.reference for _, seen in kept]),
        working=_stacked([seen.working for _, seen in kept]),
        dropped=tuple(f.name for i, f in enumerate(families) if i not in known),
    )


def _first_with_values(
    runs: "_Runs", families: Sequence[Family], wanted: Sequence[int], domain: Domain
) -> dict[int, _Seen]:
    """The first draw of each family; of masks the first that leaves values, if one does.

    One mask in the wrong place (on the only weight that is zero) may leave none.
    """
    found = dict(zip(wanted, runs.of([(families[i], domain, 0) for i in wanted]), strict=True))
    for draw in range(1, _DRAWS):
        again = [i for i in wanted if families[i].infinite and found[i].missing == 1.0]
        found |= zip(again, runs.of([(families[i], domain, draw) for i in again]), strict=True)
    return found


def errors_of(
    signed: SignedProgram,
    family: Family,
    domain: Domain,
    seed: int,
    working: Runner,
    double: Reference,
) -> dict[str, float]:
    """The largest error of each float output over the draws of a family, as ``Variant.errors``."""
    seen = _Runs(signed, seed, working, double).of(
        [(family, domain, draw) for draw in range(_DRAWS)]
    )
    return {name: max(s.errors[name] for s in seen) for name in seen[0].errors}


def _stacked(arrays: Sequence[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.stack([one[name] for one in arrays]) for name in (arrays or [{}])[0]}


def _variant(
    signed: SignedProgram, family: Family, domain: Domain, seen: Sequence[_Seen]
) -> Variant:
    errors = {name: max(s.errors[name] for s in seen) for name in seen[0].errors}
    # Discrete data changes sides of a comparison when it is scaled, which is no noise.
    noise = any(s.noisy for s in seen) and (not family.discrete or _useless(signed, errors))
    return Variant(family.name, domain, errors, noise, seen[0].scale)


def _useless(signed: SignedProgram, errors: dict[str, float]) -> bool:
    """Whether an output has no correct digit in working precision."""
    by_name = signed.signature.by_name
    return any(e * EPSILON[by_name[name].dtype] > USELESS for name, e in errors.items())


@dataclass(frozen=True, slots=True)
class _Runs:
    signed: SignedProgram
    seed: int
    working: Runner
    double: Reference

    def of(self, wanted: Sequence[_Run]) -> list[_Seen]:
        """Run the original on the data of these families."""
        elements = sum(prod(v.shape) for v in self.signed.signature.variables)
        at_once = max(1, _TOGETHER // max(1, 32 * elements))
        return [
            seen
            for first in range(0, len(wanted), at_once)
            for seen in self._together(wanted[first : first + at_once])
        ]

    def _together(self, wanted: Sequence[_Run]) -> list[_Seen]:
        data = _stacked([drawn(self.signed, self.seed, run) for run in wanted])
        count = len(wanted)
        families = [family for family, _, _ in wanted]
        plain = np.array([not f.adversarial for f in families])
        finite = np.array([f.adversarial and not f.infinite for f in families])
        # Adversarial data overflows more often than it meets poles; infinite data means infinities.
        reference = self.double.run_many(data, count, plain)
        missing = _missing(reference, count)
        reference = without_overflow(reference, finite)
        working = self.working.run_many(data, count)
        scales = self._scales(data, count)
        errors = self._errors(reference, working, scales)
        noisy = np.zeros(count, bool)
        noisy[plain] = self._rounds_visibly(
            {n: v[plain] for n, v in data.items()}, {n: v[plain] for n, v in reference.items()}
        )

        def row(arrays: dict[str, Array], i: int) -> dict[str, Array]:
            return {name: np.asarray(values[i]) for name, values in arrays.items()}

        return [
            _Seen(
                row(data, i),
                row(reference, i),
                row(working, i),
                missing=float(missing[i]),
                errors={name: float(e[i]) for name, e in errors.items()},
                noisy=bool(noisy[i]),
                scale=float(scales[i]),
            )
            for i in range(count)
        ]

    def _scales(self, data: dict[str, Array], count: int) -> Array:
        """The largest finite magnitude of all float data of each run; 1 where there is none."""
        found = np.zeros(count)
        for v in self.signed.signature.sources:
            if v.role != "const" and is_float(v.dtype):
                values = rows.flat(data[v.name]).astype(np.float64)
                finite = np.where(np.isfinite(values), np.abs(values), 0.0)
                found = np.maximum(found, finite.max(axis=1, initial=0.0))
        return np.where(found == 0.0, 1.0, found)

    def _errors(
        self, reference: dict[str, Array], working: dict[str, Array], scales: Array
    ) -> dict[str, Array]:
        """The error of every float output where both results are finite, in epsilons."""
        found = {}
        for variable in self.signed.signature.outputs:
            if is_float(variable.dtype):
                exact, own = reference[variable.name], working[variable.name]
                counted = fits(exact, variable.dtype) & np.isfinite(own.astype(np.float64))
                found[variable.name] = rows.errors(exact, own, variable.dtype, counted, scales)
        return found

    def _rounds_visibly(self, data: dict[str, Array], reference: dict[str, Array]) -> Array:
        """Whether rounding alone could make two binary64 evaluations differ as T1 measures it."""
        count = len(next(iter(reference.values())))
        found = np.zeros(count, bool)
        if count == 0:
            return found
        scaled = dict(data)
        for variable in self.signed.signature.sources:
            if variable.role != "const" and is_float(variable.dtype) and variable.low is None:
                scaled[variable.name] = data[variable.name].astype(np.float64) * (1.0 + _NUDGE)
        changed = self.double.kernel.run_many(scaled, count)
        for v in self.signed.signature.outputs:
            if is_float(v.dtype):
                moved = rows.differences(reference[v.name], changed[v.name], np.zeros(count))
                found |= moved > _ROUNDING
        return found


def _missing(outputs: dict[str, Array], count: int) -> Array:
    """The part of all output elements of each run that is NaN, between 0 and 1."""
    found, total = np.zeros(count), 0
    for output in outputs.values():
        total += output[0].size
        if output.dtype.kind == "f":
            found += rows.count(np.isnan(output))
    return found / total


def drawn(signed: SignedProgram, seed: int, run: _Run) -> dict[str, Array]:
    """The data of one run, kept for programs of the same signature if it is small."""
    signature = signed.signature
    given = tuple(v for v in signature.sources if v.role != "const")
    family, domain, draw = run
    elements = sum(prod(v.shape) for v in given)
    # Thresholds are points of their own for every pair of programs.
    if 8 * elements * 128 > _KEPT_BYTES or family.name == "thresholds":
        return inputs(signature, family, seed, domain, draw)
    known = _drawn.setdefault((given, seed), {})
    _drawn.move_to_end((given, seed))
    while len(_drawn) > _KEPT:
        _drawn.popitem(last=False)
    key = (family.name, domain, draw)
    if key not in known:
        known[key] = inputs(signature, family, seed, domain, draw)
    return known[key]
