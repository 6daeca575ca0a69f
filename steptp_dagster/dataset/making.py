"""Records of all tasks from what was selected; a hash chooses what goes into a record together."""

from collections.abc import Iterable, Sequence

from steptp_dagster.dataset.candidates import Candidate, Selection
from steptp_dagster.dataset.config import RecordPlan
from steptp_dagster.dataset.ids import rank
from steptp_dagster.dataset.records import Record, multi, negative, single, trajectory


def make_all(selection: Selection, plan: RecordPlan, seed: int) -> tuple[Record, ...]:
    """The records of the tasks that the plan names, task by task."""
    made: list[Record] = []
    for task in plan.tasks:
        match task:
            case "single":
                made += (single(c, plan) for c in selection.candidates)
            case "multi":
                made += (multi(g, plan) for g in groups(selection.candidates, plan.answers, seed))
            case "trajectory":
                made += (trajectory(c, plan) for c in selection.chains)
            case "negative":
                made += (negative(w, plan) for w in selection.wrong)
    return tuple(made)


def groups(
    candidates: Iterable[Candidate], most: int, seed: int
) -> tuple[tuple[Candidate, ...], ...]:
    """For each program of each source up to ``most`` steps by different strategies, at least two.

    A hash of the step decides which are taken and their order.
    """
    by_program: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        name = (candidate.origin.source_id, candidate.parent_leir_id)
        by_program.setdefault(name, []).append(candidate)
    found = (_chosen(by_program[name], most, seed) for name in sorted(by_program))
    return tuple(group for group in found if len(group) > 1)


def _chosen(candidates: Sequence[Candidate], most: int, seed: int) -> tuple[Candidate, ...]:
    first: dict[str, Candidate] = {}
    for candidate in sorted(candidates, key=lambda c: rank(seed, "answer", c.step_id)):
        first.setdefault(candidate.strategy, candidate)
    return tuple(first.values())[:most]
