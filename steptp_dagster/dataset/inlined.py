"""Programs with formulas in one piece, as people write them: intermediates inlined.

A translation has one equation for each operator of PyTorch. Rules of algebra look at a formula as a
whole, so a source may also be taken in the form in which ``compute_inline`` leaves it. Every
inlining is a step like any other; the result is compared with PyTorch like any translation.
"""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.graph.compute_inline import ComputeInline
from steptp_dagster.strategies.step import Step, take

#: Most steps, and most characters of the result for one of the program.
_STEPS: Final = 40
_GROWTH: Final = 2.0


def inlined(program: SignedProgram, seed: int) -> SignedProgram | None:
    """The program after as many inlinings as keep it short, or None where there is none.

    Sites are taken in text order; there is nothing to choose, so the ``seed`` does not matter.
    """
    del seed
    longest = _GROWTH * len(to_text(program.program))
    result = program
    for _ in range(_STEPS):
        after = next((s for s in _results(result) if len(to_text(s.program)) <= longest), None)
        if after is None:
            break
        result = after
    return None if result == program else result


def _results(program: SignedProgram) -> Iterator[SignedProgram]:
    chosen = ComputeInline()
    for site in chosen.survey(program).sites:
        step = take(chosen, program, site)
        if isinstance(step, Step):
            yield step.after
