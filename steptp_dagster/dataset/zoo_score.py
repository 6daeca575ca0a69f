"""The whole zoo: pairs by hand, mutants of right programs, right rewrites by strategies.

Work is cut by base program, so that it can be done side by side; results come in the order of the
programs whatever their number of processes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.progress import Progress
from steptp_dagster.verify.mutation.bases import by_hand
from steptp_dagster.verify.mutation.generate import Base, Mutant, mutants
from steptp_dagster.verify.mutation.score import Result, Score, judge

#: The part of the right rewrites that must be accepted.
RIGHT_SHARE: Final = 0.95
#: Most mutants of a translation, and of the result of a step; programs by hand give all.
_OF_TRANSLATION: Final = 24
_OF_STEP: Final = 6
#: Mutants that a sample is drawn from, for each that is wanted.
_FOR_EACH: Final = 3


@dataclass(frozen=True, slots=True)
class Right:
    """What the verdict said of a right rewrite; ``group`` is the strategy's level."""

    group: str
    name: str
    accepted: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """What came of one base program."""

    results: tuple[Result, ...]
    right: tuple[Right, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The mutation score and the right rewrites, over all base programs."""

    score: Score
    right: tuple[Right, ...]

    @property
    def right_share(self) -> float:
        """The part of the right rewrites that was accepted; 1 for none."""
        accepted = sum(r.accepted for r in self.right)
        return accepted / len(self.right) if self.right else 1.0

    @property
    def passed(self) -> bool:
        """No mutant that truly differs is accepted, and enough right rewrites are."""
        return not self.score.missed and self.right_share >= RIGHT_SHARE

    def to_json(self) -> dict[str, Any]:
        """Counts, and each single case that somebody should look at."""
        total = self.score.total
        return {
            "mutants": total.mutants,
            "different": total.different,
            "rejected": total.different - total.missed,
            "mutation_score": self.score.share,
            "published_rule_accepts": total.published_accepts,
            "executable": total.executable,
            "kinds": [line.row() for line in self.score.lines()],
            "missed": [_told(r) for r in self.score.missed],
            "rejected_without_witness": [
                _told(r) for r in self.score.results if not r.different and not r.accepted
            ],
            "right": len(self.right),
            "right_accepted": sum(r.accepted for r in self.right),
            "right_by_level": [
                {
                    "level": group,
                    "pairs": sum(r.group == group for r in self.right),
                    "accepted": sum(r.group == group and r.accepted for r in self.right),
                }
                for group in sorted({r.group for r in self.right})
            ],
            "right_rejected": [
                {"name": r.name, "reason": r.reason} for r in self.right if not r.accepted
            ],
        }


def sample(seed: int, count: int, progress: "Progress[Part]") -> Outcome:
    """``count`` mutants of the programs by hand, spread over kinds and programs by ``seed``."""
    chosen = sampled(seed, count)
    bases = dict.fromkeys(mutant.base for mutant in chosen)
    parts = (Part(tuple(judge([m for m in chosen if m.base == b], seed))) for b in bases)
    return _joined(progress("mutants", len(bases), parts))


def sampled(seed: int, count: int) -> list[Mutant]:
    """The mutants of ``sample``: kinds take turns, and within a kind a rank decides.

    Programs are spoilt in an order of their own until there are a few times as many as wanted.
    """
    by_kind: dict[str, list[Mutant]] = {}
    for base in sorted(by_hand(), key=lambda base: _digest(seed, base.name)):
        if sum(map(len, by_kind.values())) >= _FOR_EACH * count:
            break
        for mutant in mutants(base, seed, 1):
            by_kind.setdefault(mutant.kind, []).append(mutant)
    ranked = [sorted(each, key=partial(_rank, seed)) for each in by_kind.values()]
    turns = range(max(map(len, ranked), default=0))
    return [each[i] for i in turns for each in ranked if i < len(each)][:count]


def whole(seed: int, workers: Workers, progress: "Progress[Part]") -> Outcome:
    """All mutants and right rewrites: of programs by hand, of the library, of steps from both."""
    from steptp_dagster.dataset.zoo_programs import LIBRARY

    units = [(seed, name) for name in (*(base.name for base in by_hand()), *LIBRARY)]
    return _joined(progress("zoo of mutants", len(units), workers.map(work, units)))


def work(unit: tuple[int, str]) -> Part:
    """Everything of one base program, by seed and name; runs in a worker process."""
    from steptp_dagster.dataset.zoo_programs import library, right_steps, spoilt
    from steptp_dagster.verify.batch import verify_batch

    seed, name = unit
    base = next((b for b in by_hand() if b.name == name), None)
    most = None if base is not None else _OF_TRANSLATION
    base = base if base is not None else library(name, seed)
    if base is None:
        return Part(())
    chosen = _first(base, seed, most)
    if base.form is not base.original:
        return Part(tuple(judge(chosen, seed)))
    steps = list(right_steps(base, seed))
    for result in spoilt(steps):
        chosen += _first(result, seed, _OF_STEP)
    verdicts = verify_batch([(s.before, s.after) for s in steps], seed=seed)
    right = tuple(
        Right(step.level, step.name, verdict.accepted, verdict.reason)
        for step, verdict in zip(steps, verdicts, strict=True)
    )
    return Part(tuple(judge(chosen, seed)), right)


def _first(base: Base, seed: int, most: int | None) -> list[Mutant]:
    """Mutants of one base: all, or as many, of as many kinds as there are."""
    found = list(mutants(base, seed, 1))
    if most is not None:
        found = list(islice(sorted(found, key=partial(_rank, seed)), most))
    return found


def _rank(seed: int, mutant: Mutant) -> str:
    return _digest(seed, mutant.base, mutant.kind, mutant.place)


def _digest(seed: int, *names: str) -> str:
    text = "\0".join((str(seed), *names))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _joined(parts: Iterator[Part]) -> Outcome:
    done: Sequence[Part] = list(parts)
    results = tuple(r for part in done for r in part.results)
    return Outcome(Score(results), tuple(r for part in done for r in part.right))


def _told(result: Result) -> dict[str, Any]:
    return {
        "base": result.base,
        "kind": result.kind,
        "place": result.place,
        "seen": result.seen,
        "reason": result.reason,
    }
