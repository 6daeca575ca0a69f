"""Running the zoo: is every wrong pair rejected and every right pair accepted?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steptp_dagster.verify import reasons
from steptp_dagster.verify.batch import verify_batch
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.zoo.pairs import Pair
from steptp_dagster.verify.zoo.published import accepts
from steptp_dagster.verify.zoo.right import RIGHT
from steptp_dagster.verify.zoo.wrong import WRONG

#: Reasons found before execution: the published rule has no counterpart to compare with.
_STATIC = frozenset(
    {reasons.INVALID, reasons.SIGNATURE_CHANGED, reasons.OVER_LIMITS, reasons.FIRST_TOUCH}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One pair's outcome. ``published``: the published rule's answer, None where it was not run."""

    pair: Pair
    right: bool
    verdict: Verdict
    published: bool | None

    @property
    def correct(self) -> bool:
        """Whether the verdict is what it must be."""
        return self.verdict.accepted == self.right


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes, right pairs last."""

    entries: tuple[Entry, ...]

    @property
    def wrong(self) -> tuple[Entry, ...]:
        """The known-wrong pairs."""
        return tuple(e for e in self.entries if not e.right)

    @property
    def kinds(self) -> int:
        """How many kinds of mistake there are."""
        return len({e.pair.kind for e in self.wrong})

    @property
    def failures(self) -> tuple[Entry, ...]:
        """Wrong pairs that were accepted and right ones that were rejected."""
        return tuple(e for e in self.entries if not e.correct)

    @property
    def passed(self) -> bool:
        """Whether there is no failure."""
        return not self.failures

    def summary(self) -> dict[str, int]:
        """Counts for a table or a check's metadata."""
        wrong, executed = self.wrong, [e for e in self.wrong if e.published is not None]
        right = [e for e in self.entries if e.right]
        return {
            "wrong": len(wrong),
            "kinds": self.kinds,
            "rejected": sum(not e.verdict.accepted for e in wrong),
            "executable": len(executed),
            "accepted_by_published_rule": sum(e.published is True for e in executed),
            "right": len(right),
            "accepted": sum(e.verdict.accepted for e in right),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per pair."""
        return [
            {
                "expected": "accept" if e.right else "reject",
                "kind": e.pair.kind,
                "name": e.pair.name,
                "verdict": "accept" if e.verdict.accepted else "reject",
                "equality": e.verdict.equality,
                "reason": e.verdict.reason or "",
                "rule": e.verdict.static[0].kind if e.verdict.static else "",
                "difference": _largest(e.verdict),
                "published_rule": _word(e.published),
                "correct": e.correct,
            }
            for e in self.entries
        ]

    def to_text(self) -> str:
        """The rows as an aligned table, with the counts below."""
        columns = ("expected", "verdict", "kind", "name", "reason", "rule", "published_rule")
        table = [columns, *(tuple(str(row[c]) for c in columns) for row in self.rows())]
        widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        counts = self.summary()
        lines.append(
            f"{counts['rejected']} of {counts['wrong']} wrong pairs rejected "
            f"({counts['kinds']} kinds of mistake), "
            f"{counts['accepted']} of {counts['right']} right pairs accepted; of the "
            f"{counts['executable']} wrong pairs that are valid programs the published rule "
            f"accepts {counts['accepted_by_published_rule']}"
        )
        return "\n".join(lines)


def run(seed: int = 0) -> Report:
    """Judge all pairs of the zoo in this process."""
    return Report((*_judged(WRONG, seed, right=False), *_judged(RIGHT, seed, right=True)))


def _judged(pairs: Iterable[Pair], seed: int, *, right: bool) -> list[Entry]:
    listed = list(pairs)
    programs = [pair.programs() for pair in listed]
    entries = []
    for pair, both, verdict in zip(
        listed, programs, verify_batch(programs, seed=seed), strict=True
    ):
        runnable = verdict.reason not in _STATIC
        published = accepts(*both, seed) if runnable else None
        entries.append(Entry(pair, right, verdict, published))
    return entries


def _largest(verdict: Verdict) -> float | None:
    found = [f.difference for f in verdict.families if f.difference is not None]
    return max(found, default=None)


def _word(answer: bool | None) -> str:
    return "not run" if answer is None else "accept" if answer else "reject"
