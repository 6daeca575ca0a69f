"""Judging many pairs in one process: all programs are compiled together."""

from collections.abc import Sequence
from contextlib import suppress

from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import Unlowerable
from steptp_dagster.lowering.build import compile_wanted
from steptp_dagster.lowering.identity import identity_of
from steptp_dagster.lowering.lower import facts_of
from steptp_dagster.verify import reasons
from steptp_dagster.verify.budget import too_large
from steptp_dagster.verify.record import InvalidOriginal, Verdict, rejection
from steptp_dagster.verify.verdict import verify

Pair = tuple[SignedProgram, SignedProgram]


def verify_batch(pairs: Sequence[Pair], *, seed: int = 0, target: str = "llvm") -> list[Verdict]:
    """A verdict for each pair, in order; the same ones as ``verify`` gives one by one.

    A pair whose original is invalid gets a rejection with reason ``invalid-original``.
    """
    if target == "llvm":
        _compile_together(pairs)
    else:
        from steptp_dagster.verify.cuda import compile_together

        compile_together(pairs, target)
    verdicts = []
    for original, candidate in pairs:
        try:
            verdicts.append(verify(original, candidate, seed=seed, target=target))
        except InvalidOriginal as refused:
            verdicts.append(rejection(reasons.INVALID_ORIGINAL, str(refused), refused.violations))
    return verdicts


def _compile_together(pairs: Sequence[Pair]) -> None:
    """Fill the kernel cache. What cannot be compiled is left to ``verify`` to explain."""
    sound: list[SignedProgram] = []
    for identity in dict.fromkeys(identity_of(p) for pair in pairs for p in pair):
        program = identity.signed
        if check(program) or check_limits(program) or too_large(program):
            continue
        with suppress(Unlowerable):
            facts_of(program)
            sound.append(program)
    # Where TVM does not take our form, ``verify`` builds by its defaults (``engine``).
    with suppress(RuntimeError, AttributeError, TypeError, ValueError):
        compile_wanted([(program, p) for program in sound for p in ("working", "float64")])
