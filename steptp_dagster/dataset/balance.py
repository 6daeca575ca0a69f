"""Balance: no duplicates, nothing too long, no strategy, family or workload that drowns others.

The policy is data (``policy.BalancePlan``). Whether a record stays depends on how many others come
before it, in an order that only content and seed decide; so more data may push a record out, but
never brings one back that was out, and never touches records that share no cap with it.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from steptp_dagster.dataset.ids import rank
from steptp_dagster.dataset.policy import BalancePlan
from steptp_dagster.dataset.records import Record

#: Reasons for which a record is dropped, in the order in which they are looked for.
REASONS: Final[dict[str, str]] = {
    "too-long": "more tokens than the policy allows",
    "duplicate": "another record says the same, up to renaming and the order of operands",
    "program-strategy-cap": "enough records of this strategy from this workload",
    "strategy-cap": "enough records of this strategy",
    "class-cap": "enough records of this difficulty class",
    "program-cap": "enough records of this workload",
    "family-cap": "enough records of this family of workloads",
}


@dataclass(frozen=True, slots=True)
class Balanced:
    """Records kept, by record id, and the named reason for each that was left out."""

    kept: tuple[Record, ...]
    dropped: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cap:
    """One bound: its reason, what it counts together, the most of it (None: no bound)."""

    reason: str
    group: Callable[[Record], Hashable]
    most: Callable[[Record], int | None]


def balance(records: Iterable[Record], plan: BalancePlan, seed: int) -> Balanced:
    """Apply the policy; every cap looks at all records that are not too long.

    Caps count records that say different things (``Record.key``), so that it makes no difference
    which of several duplicates stays.
    """
    ordered = sorted(records, key=lambda r: r.record_id)
    dropped = {r.record_id: "too-long" for r in ordered if r.tokens > plan.tokens}
    fitting = [r for r in ordered if r.record_id not in dropped]
    places = {r.record_id: priority(r, plan, seed) for r in fitting}
    firsts: dict[Hashable, str] = {}
    for record in sorted(fitting, key=lambda r: places[r.record_id]):
        firsts.setdefault(record.key, record.record_id)
    dropped |= {r.record_id: "duplicate" for r in fitting if firsts[r.key] != r.record_id}
    if plan.enabled:
        single = [r for r in fitting if r.record_id not in dropped]
        safe = _safe(fitting, single, plan, places)
        for cap in caps(plan):
            for name in _beyond(fitting, single, cap, places):
                if name not in safe:
                    dropped.setdefault(name, cap.reason)
    kept = tuple(r for r in ordered if r.record_id not in dropped)
    return Balanced(kept, dict(sorted(dropped.items())))


def counted_strategy(record: Record, plan: BalancePlan) -> str:
    """The strategy that a record counts for: of its hardest class, of equals the last."""
    return plan.hardest(record.strategies)


def priority(record: Record, plan: BalancePlan, seed: int) -> tuple[float, str]:
    """Where a record stands among those of a cap; lower comes first.

    Exponential variates divided by weights, made of a hash: the first of them are a weighted
    sample without replacement (Efraimidis and Spirakis 2006), whatever else is there.
    """
    key = rank(seed, "balance", record.record_id)
    uniform = (int(key[:13], 16) + 1) / 2**52
    strategy, origin = counted_strategy(record, plan), record.first.origin
    weight = plan.class_of(strategy).weight
    for rules, name in (
        (plan.strategies, strategy),
        (plan.families, origin.family),
        (plan.programs, origin.program),
    ):
        weight *= rules[name].weight if name in rules else 1.0
    return -log(uniform) / weight, key


def caps(plan: BalancePlan) -> tuple[Cap, ...]:
    """The bounds of a policy."""

    def strategy(record: Record) -> str:
        return counted_strategy(record, plan)

    def strategy_most(record: Record) -> int | None:
        own = plan.strategies.get(strategy(record))
        named = own.cap if own else None
        return plan.class_of(strategy(record)).strategy_cap if named is None else named

    def program_most(record: Record) -> int | None:
        own = plan.programs.get(record.first.origin.program)
        return own.cap if own and own.cap is not None else plan.program_cap

    def family_most(record: Record) -> int | None:
        own = plan.families.get(record.first.origin.family)
        return own.cap if own and own.cap is not None else plan.family_cap

    return (
        Cap(
            "program-strategy-cap",
            lambda r: (r.task, r.first.origin.program, strategy(r)),
            lambda _: plan.program_strategy_cap,
        ),
        Cap("strategy-cap", lambda r: (r.task, strategy(r)), strategy_most),
        Cap(
            "class-cap",
            lambda r: (r.task, plan.class_of(strategy(r)).name),
            lambda r: plan.class_of(strategy(r)).cap,
        ),
        Cap("program-cap", lambda r: (r.task, r.first.origin.program), program_most),
        Cap("family-cap", lambda r: (r.task, r.first.origin.family), family_most),
    )


def _safe(
    fitting: Sequence[Record],
    single: Sequence[Record],
    plan: BalancePlan,
    places: Mapping[str, tuple[float, str]],
) -> frozenset[str]:
    """Records that no cap holds: of classes that keep all, and the first of every strategy."""
    hard = {r.record_id for r in single if plan.class_of(counted_strategy(r, plan)).keep_all}
    if not plan.minimum:
        return frozenset(hard)
    first = Cap("", lambda r: (r.task, counted_strategy(r, plan)), lambda _: plan.minimum)
    beyond = _beyond(fitting, single, first, places)
    return frozenset(hard | {r.record_id for r in single} - beyond)


def _beyond(
    fitting: Sequence[Record],
    single: Sequence[Record],
    cap: Cap,
    places: Mapping[str, tuple[float, str]],
) -> set[str]:
    """Records that have at least as many others before them as the cap allows altogether.

    Others are records of the cap's group with other keys, duplicates counted once, at the first
    place that one of them has.
    """
    groups: dict[Hashable, dict[Hashable, tuple[float, str]]] = {}
    for record in fitting:
        if cap.most(record) is not None:
            members = groups.setdefault(cap.group(record), {})
            place = places[record.record_id]
            members[record.key] = min(place, members.get(record.key, place))
    ranked = {name: sorted(members.values()) for name, members in groups.items()}
    beyond = set()
    for record in single:
        most = cap.most(record)
        if most is None:
            continue
        name, place = cap.group(record), places[record.record_id]
        before = bisect_left(ranked[name], place)
        # Its own key may stand earlier, by a duplicate.
        before -= groups[name][record.key] < place
        if before >= most:
            beyond.add(record.record_id)
    return beyond
