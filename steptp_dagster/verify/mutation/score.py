"""The verdict tried on mutants, and the table that comes of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from steptp_dagster.verify import reasons
from steptp_dagster.verify.batch import verify_batch
from steptp_dagster.verify.mutation.generate import Mutant
from steptp_dagster.verify.mutation.witness import How, Judge
from steptp_dagster.verify.zoo.published import accepts

#: What found a mutant out: the static checks, the limits, T1 or T2 (``docs/verification.md``).
Stage = Literal["static", "limits", "T1", "T2"]
_STAGES: Final[dict[str, Stage]] = {
    reasons.SIGNATURE_CHANGED: "static",
    reasons.INVALID: "static",
    reasons.FIRST_TOUCH: "static",
    reasons.OVER_LIMITS: "limits",
    reasons.TOO_LARGE: "limits",
    reasons.INTEGERS_DIFFER: "T1",
    reasons.MATHEMATICS: "T1",
    reasons.INFINITY_LOST: "T2",
    reasons.NEW_NON_FINITE: "T2",
    reasons.UNSTABLE: "T2",
}


@dataclass(frozen=True, slots=True)
class Result:
    """One mutant's outcome.

    ``how`` is how it was seen to differ, None where nothing was seen; ``seen`` tells it in words.
    ``published`` is the published rule's answer, None where it has nothing to run.
    """

    base: str
    kind: str
    place: str
    how: How | None
    seen: str
    accepted: bool
    reason: str | None
    published: bool | None

    @property
    def different(self) -> bool:
        """Whether the mutant truly differs."""
        return self.how is not None

    @property
    def missed(self) -> bool:
        """Whether it truly differs and was accepted: a fault of the verdict."""
        return self.different and self.accepted

    @property
    def stage(self) -> Stage | None:
        """What rejected it; None where it was accepted, or by no part of the verdict."""
        return None if self.reason is None else _STAGES.get(self.reason)


@dataclass(frozen=True, slots=True)
class Line:
    """Counts of one kind of mistake, or of all."""

    kind: str
    mutants: int
    different: int
    static: int
    limits: int
    mathematics: int
    stability: int
    missed: int
    no_witness: int
    no_witness_rejected: int
    executable: int
    published_accepts: int

    def row(self) -> dict[str, Any]:
        """As a row for people, with short headings."""
        return {
            "kind": self.kind,
            "mutants": self.mutants,
            "different": self.different,
            "static": self.static,
            "limits": self.limits,
            "T1": self.mathematics,
            "T2": self.stability,
            "missed": self.missed,
            "no witness": self.no_witness,
            "of them rejected": self.no_witness_rejected,
            "executable": self.executable,
            "published rule accepts": self.published_accepts,
        }


@dataclass(frozen=True, slots=True)
class Score:
    """All results, in the order in which they were made."""

    results: tuple[Result, ...]

    @property
    def missed(self) -> tuple[Result, ...]:
        """Mutants that truly differ and were accepted."""
        return tuple(r for r in self.results if r.missed)

    @property
    def total(self) -> Line:
        """Counts over all kinds."""
        return _line("all", self.results)

    @property
    def share(self) -> float:
        """The mutation score: the part of the truly different mutants that was rejected."""
        total = self.total
        return 1.0 - total.missed / total.different if total.different else 1.0

    def lines(self) -> list[Line]:
        """Counts by kind in the order of the kinds, then of all."""
        kinds = dict.fromkeys(r.kind for r in self.results)
        lines = [_line(k, [r for r in self.results if r.kind == k]) for k in kinds]
        return [*sorted(lines, key=lambda line: line.kind), self.total]


def judge(mutants: Iterable[Mutant], seed: int = 0) -> list[Result]:
    """Witness and verdict of mutants, in their order; those of one original share its results."""
    listed = list(mutants)
    judges: dict[int, Judge] = {}
    found = []
    verdicts = verify_batch([(m.original, m.candidate) for m in listed], seed=seed)
    for mutant, verdict in zip(listed, verdicts, strict=True):
        key = id(mutant.original)
        if key not in judges:
            judges[key] = Judge(mutant.original, seed)
        witness = judges[key].witness(mutant.candidate)
        runs = verdict.accepted or bool(verdict.families)
        found.append(
            Result(
                base=mutant.base,
                kind=mutant.kind,
                place=mutant.place,
                how=witness.how if witness else None,
                seen=witness.message if witness else "",
                accepted=verdict.accepted,
                reason=verdict.reason,
                published=accepts(mutant.original, mutant.candidate, seed) if runs else None,
            )
        )
    return found


def _line(kind: str, results: Sequence[Result]) -> Line:
    different = [r for r in results if r.different]
    quiet = [r for r in results if not r.different]
    executed = [r for r in different if r.published is not None]
    stages = [r.stage for r in different]
    return Line(
        kind=kind,
        mutants=len(results),
        different=len(different),
        static=stages.count("static"),
        limits=stages.count("limits"),
        mathematics=stages.count("T1"),
        stability=stages.count("T2"),
        missed=sum(r.missed for r in different),
        no_witness=len(quiet),
        no_witness_rejected=sum(not r.accepted for r in quiet),
        executable=len(executed),
        published_accepts=sum(r.published is True for r in executed),
    )
