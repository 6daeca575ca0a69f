"""Balance: no duplicates, nothing too long, no workload or strategy that drowns the others.

Which records stay below a cap is decided by a hash of the record and the profile's seed: never
by order of arrival, so adding programs or strategies disturbs the choice as little as possible.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from steptp_dagster.dataset.config import BalancePlan, Difficulty
from steptp_dagster.dataset.ids import rank
from steptp_dagster.dataset.records import Record


@dataclass(frozen=True, slots=True)
class Balanced:
    """Records kept, by record id, and the named reason for each that was left out."""

    kept: tuple[Record, ...]
    dropped: Mapping[str, str]


def balance(records: Iterable[Record], plan: BalancePlan, seed: int) -> Balanced:
    """Apply the rules in order: ``too-long``, ``duplicate``, ``program-cap``, ``strategy-cap``."""
    ranked = sorted(records, key=lambda r: rank(seed, "balance", r.record_id))
    dropped: dict[str, str] = {}

    def keep(reason: str, chosen: Sequence[Record], among: Sequence[Record]) -> Sequence[Record]:
        left = {r.record_id for r in chosen}
        dropped.update({r.record_id: reason for r in among if r.record_id not in left})
        return chosen

    short = keep("too-long", [r for r in ranked if r.tokens <= plan.tokens], ranked)
    single = keep("duplicate", _first(short, _shape, 1), short)
    capped = keep("program-cap", _first(single, _owner, plan.per_program_strategy), single)
    cap = share_cap(Counter(r.candidate.strategy for r in capped), plan.per_strategy_share)
    final = keep("strategy-cap", _first(capped, lambda r: r.candidate.strategy, cap), capped)
    return Balanced(tuple(sorted(final, key=lambda r: r.record_id)), dict(sorted(dropped.items())))


def _shape(record: Record) -> Hashable:
    """What makes two records say the same: strategy, and both programs up to renaming."""
    c = record.candidate
    return (c.strategy, c.structural_hash, c.result_structural_hash)


def _owner(record: Record) -> Hashable:
    return (record.candidate.program, record.candidate.strategy)


def _first(
    records: Sequence[Record], key: Callable[[Record], Hashable], limit: int
) -> list[Record]:
    """The first ``limit`` records of each key, in order."""
    seen: defaultdict[Hashable, int] = defaultdict(int)
    kept = []
    for record in records:
        seen[key(record)] += 1
        if seen[key(record)] <= limit:
            kept.append(record)
    return kept


def share_cap(counts: Mapping[str, int], share: float) -> int:
    """The largest cap on each count that keeps the largest within ``share`` of the rest.

    With too few names for the share (one name cannot be half of a whole) the most even cap: the
    smallest count.

    >>> share_cap({"a": 100, "b": 10, "c": 10}, 0.5)
    20
    """
    if not counts:
        return 0
    for cap in range(max(counts.values()), min(counts.values()), -1):
        if cap <= share * sum(min(cap, n) for n in counts.values()):
            return cap
    return min(counts.values()) if len(counts) > 1 else max(counts.values())


def difficulty(tokens: int, classes: Sequence[Difficulty]) -> str:
    """The first class whose bound is not below ``tokens``."""
    return next(c.name for c in classes if c.tokens is None or tokens <= c.tokens)
