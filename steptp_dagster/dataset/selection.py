"""From candidates to the rows of ``filtered_dataset``: records, balance, splits, reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from steptp_dagster.dataset.balance import Balanced, balance, counted_strategy
from steptp_dagster.dataset.candidates import Selection, Show, Tables, as_leir, select
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.distribution import distribution
from steptp_dagster.dataset.leakage import leakage, members, workloads
from steptp_dagster.dataset.making import make_all
from steptp_dagster.dataset.records import WEIGHTS, Record
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.splits import assign


@dataclass(frozen=True, slots=True)
class Filtered:
    """Rows of ``filtered_dataset`` (without ``unit``) and of the reports that go with it."""

    rows: tuple[Row, ...]
    exclusions: tuple[Row, ...]
    balance: tuple[Row, ...]
    leakage: tuple[Row, ...]


def filtered(tables: Tables, profile: Profile, show: Show = as_leir) -> Filtered:
    """The records that the profile keeps, by record id."""
    selection = select(tables, show)
    made = make_all(selection, profile.records, profile.seed)
    balanced = balance(made, profile.balance, profile.seed)
    known, near = workloads(selection, tables), profile.splits.near
    split_of = assign(members(known, near), profile.splits, profile.seed)
    rows = tuple(_row(r, split_of[r.first.origin.program], profile) for r in balanced.kept)
    gone = _excluded(selection, made, balanced)
    return Filtered(
        rows,
        tuple({"step_id": s, "reason": gone[s]} for s in sorted(gone)),
        distribution(made, balanced, profile.balance),
        leakage(known, split_of, near),
    )


def _excluded(selection: Selection, made: Sequence[Record], balanced: Balanced) -> dict[str, str]:
    """Why steps are no single-answer record; ``not-asked`` where the profile wants none."""
    shown = {r.first.step_id: balanced.dropped.get(r.record_id) for r in made if r.task == "single"}
    gone = {c.step_id: shown.get(c.step_id, "not-asked") for c in selection.candidates}
    return {**selection.excluded, **{step: why for step, why in gone.items() if why is not None}}


def _row(record: Record, split: str, profile: Profile) -> Row:
    plan = profile.balance
    strategy = counted_strategy(record, plan)
    counted = next(s for s in reversed(record.steps) if s.strategy == strategy)
    return {
        "record_id": record.record_id,
        "task": record.task,
        "step_ids": [step.step_id for step in record.steps],
        "trajectory_id": record.trajectory_id,
        "negative_id": record.negative_id,
        "source_id": record.first.origin.source_id,
        "program": record.first.origin.program,
        "family": record.first.origin.family,
        "dtype": record.first.origin.dtype,
        "strategies": list(record.strategies),
        "strategy": strategy,
        "strategy_level": counted.strategy_level,
        "equality": record.equality,
        "split": split,
        "difficulty": plan.class_of(strategy).name,
        "size": plan.size_of(record.tokens),
        "structural_hash": record.first.structural_hash,
        "messages": [{"role": m.role, "content": m.content} for m in record.messages],
        "weights": list(WEIGHTS),
        "prompt_tokens": record.prompt_tokens,
        "reasoning_tokens": record.reasoning_tokens,
        "answer_tokens": record.answer_tokens,
    }
