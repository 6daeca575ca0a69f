"""The verdict: does a candidate compute what its original computes?

First statically, then in two numerical parts on named, seeded input families:

* *mathematics* (T1): both programs in binary64 on well-scaled data. Two programs that compute the
  same function differ by rounding (1e-15 or so, normalised), two that do not by 1e-8 and more.
* *stability* (T2): both in working precision, adversarial data included. The candidate's error
  against binary64 may be a few times the original's, and it may not overflow where that does not.

``docs/verification.md`` has the measurements behind the thresholds.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import Unlowerable
from steptp_dagster.lowering.arena import KernelFault
from steptp_dagster.verify import reasons
from steptp_dagster.verify.branches import untaken
from steptp_dagster.verify.budget import too_large
from steptp_dagster.verify.compare import (
    Array,
    difference,
    error,
    fits,
    is_float,
    same_bits,
    same_values,
)
from steptp_dagster.verify.engine import LLVM, Engine, Runner
from steptp_dagster.verify.literals import at_literals
from steptp_dagster.verify.original import Case, Original, evaluate, thresholds
from steptp_dagster.verify.record import (
    TARGETS,
    Equality,
    FamilyEvidence,
    InvalidOriginal,
    Verdict,
    rejection,
)
from steptp_dagster.verify.versions import versions

#: Greatest normalised difference of two binary64 evaluations of one function (T1).
MATHEMATICS: Final = 1e-11
#: A candidate's error may be this many times the original's, plus this many epsilons (T2).
ERROR_FACTOR: Final = 8.0
ERROR_SLACK: Final = 16.0
#: Fewer well-scaled families than this are no evidence.
FEWEST_FAMILIES: Final = 10

__all__ = ["TARGETS", "FamilyEvidence", "InvalidOriginal", "Verdict", "rejection", "verify"]


def verify(
    original: SignedProgram, candidate: SignedProgram, *, seed: int = 0, target: str = "llvm"
) -> Verdict:
    """Judge a candidate in this process (``pool.Verifier`` does it in isolated ones).

    Raises InvalidOriginal if the original is not valid LEIR, ValueError for an unknown target.
    """
    if target not in TARGETS:
        raise ValueError(f"unknown target {target!r}; one of {', '.join(TARGETS)}")
    broken = check(original)
    if broken:
        raise InvalidOriginal(broken)
    verdict = static(original, candidate)
    if verdict is None and target.startswith("cuda:"):
        from steptp_dagster.verify.cuda import judge

        verdict = judge(original, candidate, seed, target)
    verdict = verdict or _sized(original, candidate) or numeric(original, candidate, seed)
    return replace(verdict, target=target, seeds=(seed,), versions=versions(target))


def static(original: SignedProgram, candidate: SignedProgram) -> Verdict | None:
    """The rejection that neither compiles nor runs anything, or None."""
    if candidate.signature != original.signature:
        return rejection(reasons.SIGNATURE_CHANGED, "the signatures differ")
    broken = check(candidate)
    if broken:
        return rejection(reasons.INVALID, broken[0].message, broken)
    over = check_limits(candidate)
    if over:
        return rejection(reasons.OVER_LIMITS, over[0].message, over)
    return None


def _sized(original: SignedProgram, candidate: SignedProgram) -> Verdict | None:
    """The rejection of programs that are too large to run here, or None."""
    for name, program in (("original", original), ("candidate", candidate)):
        excess = too_large(program)
        if excess:
            return rejection(reasons.TOO_LARGE, f"the {name} {excess}")
    return None


def numeric(
    original: SignedProgram, candidate: SignedProgram, seed: int, engine: Engine = LLVM
) -> Verdict:
    """Run both programs on all families and compare (T1, T2); both are valid and small enough."""
    try:
        reference = evaluate(original, seed, thresholds(original, candidate), engine)
        working = engine.compile([candidate], "working")[0]
        double = engine.compile([candidate], "float64")[0]
        families = tuple(_evidence(case, original, working, double) for case in reference.cases)
        literal = at_literals(original, candidate, seed, double, engine, MATHEMATICS)
        families += tuple(evidence for _, evidence in literal)
        if all(f.failure is None for f in families):
            data = [case.inputs for case in reference.cases], [inputs for inputs, _ in literal]
            never = untaken(original, candidate, *data, engine)
            if never is not None:
                refused = rejection(reasons.UNTAKEN_BRANCH, never, evidence="executed")
                return replace(refused, families=families, margins=reference.margins)
    except KernelFault as fault:
        return rejection(fault.reason, str(fault), evidence="executed")
    except Unlowerable as fault:
        return rejection(fault.reason, str(fault))
    return _judged(reference, families)


def _judged(reference: Original, families: tuple[FamilyEvidence, ...]) -> Verdict:
    reason, message = _reason(reference, families)
    exact = all(f.exact for f in families)
    equality: Equality = "rejected" if reason else "exact" if exact else "reassociated"
    return Verdict(
        accepted=reason is None,
        equality=equality,
        bitwise=all(f.bitwise for f in families) and reason is None,
        reason=reason,
        message=message,
        families=families,
        dropped_families=reference.dropped,
        margins=reference.margins,
        evidence="executed",
    )


def _reason(reference: Original, families: tuple[FamilyEvidence, ...]) -> tuple[str | None, str]:
    for reason in reasons.REASONS:
        for evidence in families:
            if evidence.failure == reason:
                return reason, f"on the family {evidence.family}"
    if reference.plain_families < FEWEST_FAMILIES:
        found = reference.plain_families
        return reasons.TOO_FEW_FAMILIES, f"{found} of at least {FEWEST_FAMILIES}"
    return None, ""


def _evidence(
    case: Case, original: SignedProgram, working: Runner, double: Runner
) -> FamilyEvidence:
    outputs = [(v.name, v.dtype) for v in original.signature.outputs]
    floats = [(name, dtype) for name, dtype in outputs if is_float(dtype)]
    computed = working.run(case.inputs)
    pairs = [(case.working[name], computed[name]) for name, _ in outputs]
    whole_equal = all(
        same_values(case.working[name], computed[name])
        for name, dtype in outputs
        if not is_float(dtype)
    )
    apart: float | None = None
    if not case.family.adversarial:
        again = double.run(case.inputs)
        apart = max(
            (difference(case.reference[n], again[n], case.data_scale) for n, _ in floats),
            default=0.0,
        )
        whole_equal = whole_equal and all(
            same_values(case.reference[name], again[name])
            for name, dtype in outputs
            if not is_float(dtype)
        )
    measured = [_measured(case, name, dtype, computed[name]) for name, dtype in floats]
    failure = None
    if not whole_equal:
        failure = reasons.INTEGERS_DIFFER
    elif apart is not None and case.judges_values and not apart <= MATHEMATICS:
        failure = reasons.MATHEMATICS
    elif any(m.infinities_lost for m in measured):
        failure = reasons.INFINITY_LOST
    elif any(m.new_non_finite for m in measured):
        failure = reasons.NEW_NON_FINITE
    elif case.judges_values and not all(m.stable for m in measured):
        failure = reasons.UNSTABLE
    worst = max(measured, key=lambda m: m.candidate_error - m.original_error, default=None)
    judged = worst if case.judges_values else None
    return FamilyEvidence(
        family=case.name,
        difference=apart,
        original_error=judged.original_error if judged else None,
        candidate_error=judged.candidate_error if judged else None,
        original_non_finite=sum(m.original_non_finite for m in measured),
        candidate_non_finite=sum(m.candidate_non_finite for m in measured),
        new_non_finite=sum(m.new_non_finite for m in measured),
        exact=all(same_values(p, q) for p, q in pairs),
        bitwise=all(same_bits(p, q) for p, q in pairs),
        failure=failure,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """T2 on one output: errors in epsilons, and elements that are not finite but should be."""

    original_error: float
    candidate_error: float
    original_non_finite: int
    candidate_non_finite: int
    new_non_finite: int
    infinities_lost: int
    stable: bool


def _measured(case: Case, name: str, dtype: str, computed: Array) -> _Measured:
    reference, own = case.reference[name], case.working[name]
    should_fit = fits(reference, dtype)
    lost_before = should_fit & ~np.isfinite(own.astype(np.float64))
    lost = should_fit & ~np.isfinite(computed.astype(np.float64))
    counted = should_fit & ~lost_before & ~lost
    before = case.errors[name]
    after = error(reference, computed, dtype, counted, case.data_scale)
    return _Measured(
        original_error=before,
        candidate_error=after,
        original_non_finite=int(np.sum(lost_before)),
        candidate_non_finite=int(np.sum(lost)),
        new_non_finite=int(np.sum(lost & ~lost_before)),
        infinities_lost=int(np.sum(np.isinf(reference) & (own == reference) & (computed != own))),
        stable=after <= _allowed(before, dtype),
    )


def _allowed(original_error: float, dtype: str) -> float:
    """The largest error that a candidate may have.

    A binary64 output has no wider reference: the original's own result is it, and its error is
    unknown. There the bound of T1 applies.
    """
    allowed = ERROR_FACTOR * original_error + ERROR_SLACK
    return max(allowed, MATHEMATICS / 2.0**-52) if dtype == "f64" else allowed
