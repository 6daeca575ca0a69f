"""Judging pairs of programs: what the stages of verdicts, trajectories and negatives share."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from json import loads
from typing import TYPE_CHECKING, Final

import polars as pl

from steptp_dagster.dataset.acceptance import DECISIVE
from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.incremental import Unit
from steptp_dagster.dataset.schemas import LEIR_PROGRAMS, Row
from steptp_dagster.dataset.siblings import on_siblings
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.small_chains import SmallPair
from steptp_dagster.dataset.store import Store
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import reasons

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import Verdict

#: Reasons of a rejection before the candidate was compiled, and while it ran.
NOT_BUILT: Final = frozenset(
    {
        reasons.INVALID_ORIGINAL,
        reasons.SIGNATURE_CHANGED,
        reasons.INVALID,
        reasons.OVER_LIMITS,
        reasons.TOO_LARGE,
        reasons.FIRST_TOUCH,
        reasons.LAUNCH_LIMITS,
        reasons.SHARED_MEMORY,
        reasons.SCOPE_ACROSS_KERNELS,
        reasons.BUILD_ERROR,
        reasons.NO_COMPILER,
    }
)
NOT_RUN: Final = frozenset(
    {
        reasons.INPUT_OVERWRITTEN,
        reasons.OUT_OF_BOUNDS,
        reasons.CRASHED,
        reasons.TIMED_OUT,
        reasons.OUT_OF_MEMORY,
    }
)
#: Which rows of verdicts the next build makes again (``Stage.again``): those not settled.
AGAIN: Final = pl.col("reason").is_in(sorted(reasons.OF_THE_MACHINE))

#: Gives the pairs of siblings that stand for a pair, or says why there are none.
Smaller = Callable[[], tuple[SmallPair, ...] | str]


@dataclass(frozen=True, slots=True)
class Pair:
    """What a unit asks: two programs, a target, and what may stand for them.

    Without ``smaller`` a pair that is too large to run stays so.
    """

    unit: Unit
    before: SignedProgram
    after: SignedProgram
    target: str = DECISIVE
    smaller: Smaller | None = None


class Programs(Mapping[str, SignedProgram]):
    """LEIR programs by id, from their rows; each is parsed when it is first asked for."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self.rows = rows
        self._parsed: dict[str, SignedProgram] = {}

    def __getitem__(self, name: str) -> SignedProgram:
        """The program. Raises KeyError."""
        if name not in self._parsed:
            row = self.rows[name]
            self._parsed[name] = signed_of(row["signature"], row["text"])
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rows)


def known_programs(store: Store, program: str) -> Programs:
    """All LEIR programs of a workload: its sources and their siblings, and results of steps."""
    folders = ("leir_programs", "step_programs")
    frames = [store.read(LEIR_PROGRAMS, program, folder) for folder in folders]
    return Programs({row["leir_id"]: row for rows in frames for row in rows.to_dicts()})


def judge(pairs: Iterable[Pair], verifier: "Verifier") -> Iterator[tuple[Unit, "Verdict", float]]:
    """The verdict of every pair, with the seconds that it took.

    Target by target, in order; those that siblings stand for come last.
    """
    waiting: list[tuple[Unit, Verdict, Smaller]] = []
    before = time.perf_counter()
    for target, together in groupby(pairs, key=lambda pair: pair.target):
        other = {} if target == DECISIVE else {"target": target}
        tasks = ((pair, pair.before, pair.after) for pair in together)
        for pair, verdict in verifier.verify_many(tasks, **other):
            if verdict.reason == reasons.TOO_LARGE and pair.smaller is not None:
                waiting.append((pair.unit, verdict, pair.smaller))
                continue
            now = time.perf_counter()
            yield pair.unit, verdict, now - before
            before = time.perf_counter()
    for unit, verdict, smaller in waiting:
        told = _on_siblings(verdict, smaller, verifier)
        now = time.perf_counter()
        yield unit, told, now - before
        before = time.perf_counter()


def _on_siblings(verdict: "Verdict", smaller: Smaller, verifier: "Verifier") -> "Verdict":
    """The verdict on a pair that passed everything static and is too large to run."""
    found = smaller()
    if isinstance(found, str):
        return replace(verdict, message=f"{verdict.message}; {found}")
    small = verifier.verify_many((p.name, p.before, p.after) for p in found)
    return on_siblings([v for _, v in small], [(p.name, p.told) for p in found])


def judged(verdict: "Verdict") -> Row:
    """The columns of a verdict: target, passes, label, reason and evidence."""
    told = verdict.to_json()
    built = verdict.reason not in NOT_BUILT
    run = verdict.equality != "built"
    numeric = {key: told[key] for key in ("families", "dropped_families", "message")}
    return {
        "target": verdict.target,
        "build_pass": built,
        "exec_pass": built and verdict.reason not in NOT_RUN if run else None,
        "equal_pass": verdict.accepted if run else None,
        "bitwise": verdict.bitwise if run else None,
        "equality": verdict.equality,
        "evidence": "executed" if verdict.reason in NOT_RUN else verdict.evidence,
        "sibling": canonical_json({name: loads(text) for name, text in verdict.sibling}),
        "kernels": told["kernels"],
        "parent_kernels": told["original_kernels"],
        "reason": verdict.reason,
        "static": canonical_json(told["static"]),
        "numeric": canonical_json(numeric),
        "margins": canonical_json(told["margins"]),
        "seeds": canonical_json(told["seeds"]),
        "toolchain": canonical_json(told["versions"]),
    }
