"""What a candidate shows on every family of its original: all families are run at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from steptp_dagster.verify import reasons, rows
from steptp_dagster.verify.compare import Array, fits, is_float
from steptp_dagster.verify.engine import Runner
from steptp_dagster.verify.original import Original
from steptp_dagster.verify.record import FamilyEvidence

#: Greatest normalised difference of two binary64 evaluations of one function (T1).
MATHEMATICS: Final = 1e-11
#: A candidate's error may be this many times the original's, plus this many epsilons (T2).
ERROR_FACTOR: Final = 8.0
ERROR_SLACK: Final = 16.0


@dataclass(frozen=True, slots=True)
class _Measured:
    """T2 on one output, for all cases: errors in epsilons, elements that are not finite.

    Lists, since numbers are taken out of them one by one.
    """

    original_error: list[float]
    candidate_error: list[float]
    original_non_finite: list[int]
    candidate_non_finite: list[int]
    new_non_finite: list[int]
    infinities_lost: list[int]
    stable: list[bool]


def gather(original: Original, working: Runner, double: Runner) -> tuple[FamilyEvidence, ...]:
    """Run a candidate on all cases of its original. Raises KernelFault."""
    count = len(original.cases)
    if not count:
        return ()
    outputs = [(v.name, v.dtype) for v in original.signed.signature.outputs]
    floats = [(name, dtype) for name, dtype in outputs if is_float(dtype)]
    whole = [name for name, dtype in outputs if not is_float(dtype)]
    computed = working.run_many(original.inputs, count)
    compared = {name: rows.same(original.working[name], computed[name]) for name, _ in outputs}
    exact = np.logical_and.reduce([values for values, _ in compared.values()])
    bitwise = np.logical_and.reduce([bits for _, bits in compared.values()])
    whole_equal = np.ones(count, bool)
    for name in whole:
        whole_equal &= compared[name][0]
    apart, whole_again = _mathematics(original, double, [n for n, _ in floats], whole)
    whole_equal &= whole_again
    measured = [_measured(original, name, dtype, computed[name]) for name, dtype in floats]
    figures = zip(
        apart.tolist(), whole_equal.tolist(), exact.tolist(), bitwise.tolist(), strict=True
    )
    return tuple(_of_case(original, i, measured, *each) for i, each in enumerate(figures))


def _mathematics(
    original: Original, double: Runner, floats: list[str], whole: list[str]
) -> tuple[Array, Array]:
    """T1's difference on the well-scaled cases, and whether all integers are equal there."""
    plain = original.plain
    apart, equal = np.zeros(len(plain)), np.ones(len(plain), bool)
    if not plain.any():
        return apart, equal
    again: Mapping[str, Array] = double.run_many(original.plain_inputs, int(plain.sum()))
    for name in floats:
        reference = original.reference[name][plain]
        found = rows.differences(reference, again[name], original.scales[plain])
        apart[plain] = np.maximum(apart[plain], found)
    for name in whole:
        equal[plain] &= rows.same(original.reference[name][plain], again[name])[0]
    return apart, equal


def _measured(original: Original, name: str, dtype: str, computed: Array) -> _Measured:
    reference, own = original.reference[name], original.working[name]
    should_fit = fits(reference, dtype)
    lost_before = should_fit & ~np.isfinite(own.astype(np.float64))
    lost = should_fit & ~np.isfinite(computed.astype(np.float64))
    counted = should_fit & ~lost_before & ~lost
    before = np.array([case.errors[name] for case in original.cases])
    after = rows.errors(reference, computed, dtype, counted, original.scales)
    infinite = np.isinf(reference) & (own == reference) & (computed != own)
    return _Measured(
        original_error=before.tolist(),
        candidate_error=after.tolist(),
        original_non_finite=rows.count(lost_before).tolist(),
        candidate_non_finite=rows.count(lost).tolist(),
        new_non_finite=rows.count(lost & ~lost_before).tolist(),
        infinities_lost=rows.count(infinite).tolist(),
        stable=(after <= _allowed(before, dtype)).tolist(),
    )


def _allowed(original_error: Array, dtype: str) -> Array:
    """The largest errors that a candidate may have.

    A binary64 output has no wider reference: the original's own result is it, and its error is
    unknown. There the bound of T1 applies.
    """
    allowed = ERROR_FACTOR * original_error + ERROR_SLACK
    return np.maximum(allowed, MATHEMATICS / 2.0**-52) if dtype == "f64" else allowed


def _of_case(
    original: Original,
    i: int,
    measured: list[_Measured],
    apart: float,
    whole_equal: bool,
    exact: bool,
    bitwise: bool,
) -> FamilyEvidence:
    case = original.cases[i]
    difference = None if case.family.adversarial else apart
    failure = None
    if not whole_equal:
        failure = reasons.INTEGERS_DIFFER
    elif difference is not None and case.judges_values and not difference <= MATHEMATICS:
        failure = reasons.MATHEMATICS
    elif any(m.infinities_lost[i] for m in measured):
        failure = reasons.INFINITY_LOST
    elif any(m.new_non_finite[i] for m in measured):
        failure = reasons.NEW_NON_FINITE
    elif case.judges_values and not all(m.stable[i] for m in measured):
        failure = reasons.UNSTABLE
    worst = max(measured, key=lambda m: m.candidate_error[i] - m.original_error[i], default=None)
    judged = worst if case.judges_values else None
    return FamilyEvidence(
        family=case.name,
        difference=difference,
        original_error=judged.original_error[i] if judged else None,
        candidate_error=judged.candidate_error[i] if judged else None,
        original_non_finite=sum(m.original_non_finite[i] for m in measured),
        candidate_non_finite=sum(m.candidate_non_finite[i] for m in measured),
        new_non_finite=sum(m.new_non_finite[i] for m in measured),
        exact=exact,
        bitwise=bitwise,
        failure=failure,
    )
