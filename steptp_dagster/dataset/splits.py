"""Splits that cut no family: programs that share a family or a structure stay together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steptp_dagster.dataset.config import SplitPlan
from steptp_dagster.dataset.ids import rank
from steptp_dagster.dataset.schemas import SPLITS


@dataclass(frozen=True, slots=True)
class Member:
    """What ties one workload to others: its family and the structures of its LEIR programs."""

    program: str
    family: str
    structures: frozenset[str]


def components(members: Sequence[Member]) -> tuple[tuple[str, ...], ...]:
    """Programs grouped by shared family or structure, transitively; sorted inside and out."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for member in members:
        ties = [f"family {member.family}", *(f"structure {s}" for s in sorted(member.structures))]
        for tie in ties:
            parent[root(tie)] = root(f"program {member.program}")
    groups: dict[str, set[str]] = {}
    for member in members:
        groups.setdefault(root(f"program {member.program}"), set()).add(member.program)
    return tuple(sorted(tuple(sorted(group)) for group in groups.values()))


def assign(members: Sequence[Member], plan: SplitPlan, seed: int) -> dict[str, str]:
    """The split of each program.

    Components are taken in an order that only their content and the seed decide; each goes to the
    split that lacks most of its share (counted in programs), but the last ones go to splits that
    are still empty. So a split with a positive share is empty only where components are too few.
    """
    groups = components(members)
    total = sum(len(group) for group in groups)
    shares = {"train": plan.train, "validation": plan.validation, "test": plan.test}
    lacking = {name: shares[name] * total for name in SPLITS}
    chosen: dict[str, str] = {}
    # The largest first, so that one big component cannot overfill a small split at the end.
    ordered = sorted(groups, key=lambda g: (-len(g), rank(seed, "split", list(g))))
    for position, group in enumerate(ordered):
        empty = [s for s in SPLITS if shares[s] > 0 and s not in chosen.values()]
        choices = empty if len(ordered) - position <= len(empty) else SPLITS
        split = max(choices, key=lambda name: (lacking[name], -SPLITS.index(name)))
        lacking[split] -= len(group)
        chosen.update(dict.fromkeys(group, split))
    return chosen


def leaks(rows: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """Ties (a family, a structure) that stand in more than one split, from (tie, split) pairs."""
    seen: dict[str, set[str]] = {}
    for tie, split in rows:
        seen.setdefault(tie, set()).add(split)
    return {tie: tuple(sorted(found)) for tie, found in sorted(seen.items()) if len(found) > 1}
