"""The verdict: does a candidate compute what its original computes?

First statically, then in two numerical parts on named, seeded input families:

* *mathematics* (T1): both programs in binary64 on well-scaled data. Two programs that compute the
  same function differ by rounding (1e-15 or so, normalised), two that do not by 1e-8 and more.
* *stability* (T2): both in working precision, adversarial data included. The candidate's error
  against binary64 may be a few times the original's, and it may not overflow where that does not.

``docs/verification.md`` has the measurements behind the thresholds.
"""

from dataclasses import replace
from typing import Final

from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import Unlowerable
from steptp_dagster.lowering.arena import KernelFault
from steptp_dagster.verify import reasons
from steptp_dagster.verify.branches import own_questions, untaken
from steptp_dagster.verify.budget import too_large
from steptp_dagster.verify.engine import LLVM, Engine
from steptp_dagster.verify.evidence import ERROR_FACTOR, MATHEMATICS, gather
from steptp_dagster.verify.literals import at_literals, at_own_numbers
from steptp_dagster.verify.luck import without_luck
from steptp_dagster.verify.original import (
    Original,
    evaluate,
    masked_without_value,
    thresholds,
)
from steptp_dagster.verify.record import (
    TARGETS,
    Equality,
    FamilyEvidence,
    InvalidOriginal,
    Verdict,
    rejection,
)
from steptp_dagster.verify.steering import steered
from steptp_dagster.verify.versions import versions

#: Fewer well-scaled families than this are no evidence.
FEWEST_FAMILIES: Final = 10

__all__ = [
    "MATHEMATICS",
    "TARGETS",
    "FamilyEvidence",
    "InvalidOriginal",
    "Verdict",
    "rejection",
    "verify",
]


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
        families = gather(reference, working, double)
        literal = at_literals(original, candidate, seed, double, engine, MATHEMATICS)
        at_roots = steered(original, candidate, seed)
        literal += at_own_numbers(original, double, at_roots, MATHEMATICS)
        if _fails_only(reasons.UNSTABLE, (*families, *(evidence for _, evidence in literal))):
            unstable = [f.family for f in families if f.failure]
            unlucky = without_luck(reference, seed, unstable, ERROR_FACTOR)
            families = gather(unlucky, working, double)
        families += tuple(evidence for _, evidence in literal)
        if all(f.failure is None for f in families) and own_questions(original, candidate):
            excess = too_large(candidate)
            if excess:
                message = f"its own conditions are tried on llvm, where the candidate {excess}"
                return rejection(reasons.TOO_LARGE, message, evidence="executed")
            working_data = [case.inputs for case in reference.cases]
            working_data += masked_without_value(reference, seed)
            doubles = [inputs for inputs, _ in literal]
            never = untaken(original, candidate, working_data, doubles, LLVM)
            if never is not None:
                refused = rejection(reasons.UNTAKEN_BRANCH, never, evidence="executed")
                return replace(refused, families=families, margins=reference.margins)
    except KernelFault as fault:
        return rejection(fault.reason, str(fault), evidence="executed")
    except Unlowerable as fault:
        return rejection(fault.reason, str(fault))
    return _judged(reference, families)


def _fails_only(reason: str, families: tuple[FamilyEvidence, ...]) -> bool:
    return {f.failure for f in families} - {None} == {reason}


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
