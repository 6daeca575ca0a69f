"""A failing pair made as small as it goes: the same mistake, with less around it.

Delta debugging on the syntax tree: a smaller pair (``reductions``) is kept if its original is valid
and its candidate is rejected for the same reason, and by the same rule where one is broken. Greedy,
in a fixed order, so that one pair always shrinks to the same one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import InvalidNode
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.reductions import REDUCTIONS, Pair, Reduction, size

#: How many pairs are judged at most.
BUDGET: Final = 400

#: Judges a pair; ``verdict.verify``, or a pool's.
Judge = Callable[[SignedProgram, SignedProgram], Verdict]


class NothingToShrink(ValueError):
    """The candidate is accepted: there is no failure to keep."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest pair found, its verdict, how many pairs were judged, whether all were tried."""

    original: SignedProgram
    candidate: SignedProgram
    verdict: Verdict
    judged: int
    finished: bool


def shrink(
    original: SignedProgram, candidate: SignedProgram, judge: Judge, *, budget: int = BUDGET
) -> Shrunk:
    """Make a failing pair smaller; at most ``budget`` pairs are judged.

    Raises NothingToShrink where the candidate is accepted.
    """
    verdict = judge(original, candidate)
    if verdict.accepted:
        raise NothingToShrink("the candidate is accepted: there is nothing to shrink")
    state = _State((original, candidate), verdict, judge, budget - 1)
    finished = state.run()
    return Shrunk(*state.pair, state.verdict, budget - state.left, finished)


@dataclass(slots=True)
class _State:
    """The smallest failing pair so far."""

    pair: Pair
    verdict: Verdict
    judge: Judge
    left: int

    def run(self) -> bool:
        """Reduce until nothing helps any more (True) or the budget is used up."""
        tried: set[tuple[str, str]] = set()
        shrinking = True
        while shrinking:
            shrinking = False
            for reduction in REDUCTIONS:
                while self.left > 0 and self.improved(reduction, tried):
                    shrinking = True
                if self.left <= 0:
                    return False
        return True

    def improved(self, reduction: Reduction, tried: set[tuple[str, str]]) -> bool:
        """Take the first smaller pair of one reduction that still fails the same way."""
        try:
            for pair in reduction(self.pair):
                if self.left <= 0:
                    return False
                if size(pair) < size(self.pair) and self.fails(pair, tried):
                    return True
        except InvalidNode:  # the reduction leaves no program; the others may still help
            return False
        return False

    def fails(self, pair: Pair, tried: set[tuple[str, str]]) -> bool:
        """Whether a pair fails as the first one did; if so it is kept."""
        key = to_text(pair[0].program), to_text(pair[1].program)
        if key in tried or pair[0].program == pair[1].program or check(pair[0]):
            return False
        tried.add(key)
        static = bool(check(pair[1]))
        if static != bool(self.verdict.static and self.verdict.reason == "invalid"):
            return False
        self.left -= 1
        verdict = self.judge(*pair)
        if not _same_cause(verdict, self.verdict):
            return False
        self.pair, self.verdict = pair, verdict
        return True


def _same_cause(smaller: Verdict, before: Verdict) -> bool:
    """The same reason; where rules are broken the first one too, and no other than before."""
    if smaller.reason != before.reason or bool(smaller.static) != bool(before.static):
        return False
    if not smaller.static:
        return True
    kinds = {violation.kind for violation in before.static}
    same = smaller.static[0].kind == before.static[0].kind
    return same and all(violation.kind in kinds for violation in smaller.static)
