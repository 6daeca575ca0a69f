"""The report of the balance: how records are distributed before and after, and what went why."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log2

from steptp_dagster.dataset.balance import Balanced, counted_strategy
from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.policy import BalancePlan
from steptp_dagster.dataset.records import Record
from steptp_dagster.dataset.schemas import DIMENSIONS, TASKS, Row


def distribution(made: Sequence[Record], balanced: Balanced, plan: BalancePlan) -> tuple[Row, ...]:
    """Rows of the table ``balance``: each task and dimension as a whole, then by name."""
    rows: list[Row] = []
    for task in TASKS:
        records = [r for r in made if r.task == task]
        for dimension in DIMENSIONS if records else ():
            named: dict[str, list[str | None]] = {}
            for record in records:
                outcome = balanced.dropped.get(record.record_id)
                named.setdefault(_name(record, dimension, plan), []).append(outcome)
            whole = _row(task, dimension, None, [why for own in named.values() for why in own])
            parts = [_row(task, dimension, name, named[name]) for name in sorted(named)]
            whole["entropy_before"] = entropy(part["before"] for part in parts)
            whole["entropy_after"] = entropy(part["after"] for part in parts)
            rows += [whole, *parts]
    return tuple(rows)


def entropy(counts: Iterable[int]) -> float:
    """Shannon's entropy in bits of a distribution given by counts, to six digits.

    >>> entropy([1, 1, 1, 1, 0])
    2.0
    """
    found = [count for count in counts if count]
    total = sum(found)
    # Rounded: the last bits of logarithms differ between machines. The sum of 0.0 avoids -0.0.
    return round(0.0 - sum(n / total * log2(n / total) for n in found), 6)


def _row(task: str, dimension: str, name: str | None, outcomes: Sequence[str | None]) -> Row:
    reasons = Counter(why for why in outcomes if why is not None)
    return {
        "task": task,
        "dimension": dimension,
        "name": name,
        "before": len(outcomes),
        "after": len(outcomes) - reasons.total(),
        "dropped": canonical_json(dict(reasons)),
        "entropy_before": None,
        "entropy_after": None,
    }


def _name(record: Record, dimension: str, plan: BalancePlan) -> str:
    strategy, origin = counted_strategy(record, plan), record.first.origin
    values = {
        "class": plan.class_of(strategy).name,
        "strategy": strategy,
        "family": origin.family,
        "program": origin.program,
        "dtype": origin.dtype,
        "equality": record.equality,
    }
    return values[dimension]
