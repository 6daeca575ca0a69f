"""Which steps may become records: joins of the tables, and a named reason for every other step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Candidate:
    """A verified, grounded step with all that a record says of it."""

    step_id: str
    source_id: str
    program: str
    family: str
    dtype: str
    strategy: str
    strategy_level: str
    equality: str
    site: tuple[int, ...]
    parameters: str
    signature: str
    text: str
    structural_hash: str
    result_text: str
    result_structural_hash: str
    reasoning_text: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The frames that the selection reads."""

    source_programs: pl.DataFrame
    translations: pl.DataFrame
    leir_programs: pl.DataFrame
    transformed_steps: pl.DataFrame
    gpu_verification: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Selection:
    """Candidates by step id order, and why each other step is none."""

    candidates: tuple[Candidate, ...]
    excluded: Mapping[str, str]


def select(tables: Tables) -> Selection:
    """Steps whose verdict accepts them and every step before them, on every target tried.

    Reasons of exclusion: ``not-verified``, ``rejected``, ``source-screened``, ``ungrounded``,
    ``earlier-step-excluded``.
    """
    steps = tables.transformed_steps.sort("step_depth", "step_id").to_dicts()
    verdicts = tables.gpu_verification.group_by("step_id").agg(
        pl.col("equal_pass").all(), pl.col("equality").sort().last()
    )
    verdict_of = {row["step_id"]: row for row in verdicts.to_dicts()}
    sources = {row["source_id"]: row for row in tables.source_programs.to_dicts()}
    screened = {r["source_id"] for r in tables.translations.to_dicts() if r["screens"]}
    programs = {row["leir_id"]: row for row in tables.leir_programs.to_dicts()}
    excluded: dict[str, str] = {}
    chosen: list[Candidate] = []
    for step in steps:
        verdict = verdict_of.get(step["step_id"])
        reason = None
        if verdict is None:
            reason = "not-verified"
        elif not verdict["equal_pass"]:
            reason = "rejected"
        elif step["source_id"] in screened:
            reason = "source-screened"
        elif step["mismatches"]:
            reason = "ungrounded"
        elif step["parent_step_id"] is not None and step["parent_step_id"] in excluded:
            reason = "earlier-step-excluded"
        if reason is not None or verdict is None:
            excluded[step["step_id"]] = reason or "not-verified"
            continue
        source = sources[step["source_id"]]
        before, after = programs[step["parent_leir_id"]], programs[step["result_leir_id"]]
        chosen.append(
            Candidate(
                step_id=step["step_id"],
                source_id=step["source_id"],
                program=source["program"],
                family=source["family"],
                dtype=source["dtype"],
                strategy=step["strategy"],
                strategy_level=step["strategy_level"],
                equality=verdict["equality"],
                site=tuple(json.loads(step["site"])),
                parameters=step["parameters"],
                signature=before["signature"],
                text=before["text"],
                structural_hash=before["structural_hash"],
                result_text=after["text"],
                result_structural_hash=after["structural_hash"],
                reasoning_text=step["reasoning_text"],
            )
        )
    return Selection(tuple(sorted(chosen, key=lambda c: c.step_id)), excluded)
