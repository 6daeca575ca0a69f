"""From candidates to the rows of ``filtered_dataset``: records, balance, splits."""

from collections.abc import Sequence
from dataclasses import dataclass

from steptp_dagster.dataset.balance import Balanced, balance, difficulty
from steptp_dagster.dataset.candidates import Selection, Tables, select
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import record_id
from steptp_dagster.dataset.records import PROMPT_VERSION, TASK, WEIGHTS, Record, make
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.splits import Member, assign


@dataclass(frozen=True, slots=True)
class Filtered:
    """Rows of ``filtered_dataset`` (without ``unit``) and of ``exclusions``."""

    rows: tuple[Row, ...]
    exclusions: tuple[Row, ...]


def filtered(tables: Tables, profile: Profile) -> Filtered:
    """The records that the profile keeps, by record id."""
    selection = select(tables)
    balanced = balance(map(make, selection.candidates), profile.balance, profile.seed)
    split_of = assign(members(selection), profile.splits, profile.seed)
    rows = tuple(_row(r, split_of[r.candidate.program], profile) for r in balanced.kept)
    gone = _excluded(selection, balanced)
    return Filtered(rows, tuple({"step_id": s, "reason": gone[s]} for s in sorted(gone)))


def members(selection: Selection) -> Sequence[Member]:
    """The workloads with all structures that their candidates show, before or after."""
    structures: dict[tuple[str, str], set[str]] = {}
    for c in selection.candidates:
        found = structures.setdefault((c.program, c.family), set())
        found.update((c.structural_hash, c.result_structural_hash))
    return [Member(p, f, frozenset(s)) for (p, f), s in sorted(structures.items())]


def _excluded(selection: Selection, balanced: Balanced) -> dict[str, str]:
    steps = {record_id([c.step_id], TASK, PROMPT_VERSION): c.step_id for c in selection.candidates}
    left = {steps[record]: reason for record, reason in balanced.dropped.items()}
    return {**selection.excluded, **left}


def _row(record: Record, split: str, profile: Profile) -> Row:
    c = record.candidate
    return {
        "record_id": record.record_id,
        "step_ids": [c.step_id],
        "source_id": c.source_id,
        "program": c.program,
        "family": c.family,
        "dtype": c.dtype,
        "strategy": c.strategy,
        "strategy_level": c.strategy_level,
        "equality": c.equality,
        "task": TASK,
        "split": split,
        "difficulty": difficulty(record.tokens, profile.balance.difficulties),
        "structural_hash": c.structural_hash,
        "messages": [{"role": m.role, "content": m.content} for m in record.messages],
        "weights": list(WEIGHTS),
        "prompt_tokens": record.prompt_tokens,
        "reasoning_tokens": record.reasoning_tokens,
        "answer_tokens": record.answer_tokens,
    }
