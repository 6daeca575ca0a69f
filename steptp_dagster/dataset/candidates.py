"""Which steps may become records: joins of the tables, and a named reason for every other step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from steptp_dagster.dataset.acceptance import accepted_by_target
from steptp_dagster.dataset.schemas import Row


@dataclass(frozen=True, slots=True)
class Origin:
    """The source program that a candidate comes from."""

    source_id: str
    program: str
    family: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A verified, grounded step with all that a record says of it.

    ``text`` and ``result_text`` are the programs as records show them. ``exact`` says that the
    strategy promises equal values and the verdict found them equal.
    """

    step_id: str
    origin: Origin
    parent_step_id: str | None
    strategy: str
    strategy_level: str
    equality: str
    exact: bool
    site: tuple[int, ...]
    parameters: str
    parent_leir_id: str
    result_leir_id: str
    signature: str
    text: str
    structural_hash: str
    result_text: str
    result_structural_hash: str
    reasoning_text: str


@dataclass(frozen=True, slots=True)
class Chain:
    """A trajectory whose steps are candidates and whose ends were accepted as one pair."""

    trajectory_id: str
    steps: tuple[Candidate, ...]
    equality: str


@dataclass(frozen=True, slots=True)
class Wrong:
    """A candidate that was rejected, and the right step that it was made from."""

    negative_id: str
    step: Candidate
    kind: str
    change: str
    text: str
    structural_hash: str
    reason: str
    static: str
    numeric: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The frames that the selection reads."""

    source_programs: pl.DataFrame
    translations: pl.DataFrame
    leir_programs: pl.DataFrame
    transformed_steps: pl.DataFrame
    gpu_verification: pl.DataFrame
    trajectories: pl.DataFrame
    negatives: pl.DataFrame


class Show(Protocol):
    """How records show a program: its text, or None where it has none in their language."""

    def __call__(self, signature: str, leir: str) -> str | None:
        """The text of the program with this LEIR."""
        ...


def as_leir(signature: str, leir: str) -> str:
    """Programs shown as LEIR."""
    del signature
    return leir


@dataclass(frozen=True, slots=True)
class Selection:
    """Candidates by step id order, why each other step is none, chains, rejected candidates."""

    candidates: tuple[Candidate, ...]
    excluded: Mapping[str, str]
    chains: tuple[Chain, ...] = ()
    wrong: tuple[Wrong, ...] = ()


def select(tables: Tables, show: Show = as_leir) -> Selection:
    """Steps that ``acceptance`` counts as accepted, and every step before them.

    Reasons of exclusion: ``not-verified``, ``rejected``, ``source-screened``, ``ungrounded``,
    ``earlier-step-excluded``, ``not-shown`` (the language of the records lacks a program).
    """
    steps = tables.transformed_steps.sort("step_depth", "step_id").to_dicts()
    verdicts = accepted_by_target(tables.gpu_verification)
    verdict_of = {row["step_id"]: row for row in verdicts.to_dicts()}
    sources = {row["source_id"]: row for row in tables.source_programs.to_dicts()}
    screened = {r["source_id"] for r in tables.translations.to_dicts() if r["screens"]}
    programs = {row["leir_id"]: row for row in tables.leir_programs.to_dicts()}
    excluded: dict[str, str] = {}
    chosen: dict[str, Candidate] = {}
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
        before, after = programs[step["parent_leir_id"]], programs[step["result_leir_id"]]
        shown = show(before["signature"], before["text"]), show(after["signature"], after["text"])
        if shown[0] is None or shown[1] is None:
            excluded[step["step_id"]] = "not-shown"
            continue
        chosen[step["step_id"]] = Candidate(
            step_id=step["step_id"],
            origin=_origin(sources[step["source_id"]]),
            parent_step_id=step["parent_step_id"],
            strategy=step["strategy"],
            strategy_level=step["strategy_level"],
            equality=verdict["equality"],
            exact=step["numerics"] == "exact" and verdict["equality"] == "exact",
            site=tuple(json.loads(step["site"])),
            parameters=step["parameters"],
            parent_leir_id=step["parent_leir_id"],
            result_leir_id=step["result_leir_id"],
            signature=before["signature"],
            text=shown[0],
            structural_hash=before["structural_hash"],
            result_text=shown[1],
            result_structural_hash=after["structural_hash"],
            reasoning_text=step["reasoning_text"],
        )
    return Selection(
        tuple(chosen[name] for name in sorted(chosen)),
        excluded,
        _chains(tables.trajectories, chosen),
        _wrong(tables.negatives, chosen, show),
    )


def _origin(source: Row) -> Origin:
    return Origin(source["source_id"], source["program"], source["family"], source["dtype"])


def _chains(trajectories: pl.DataFrame, chosen: Mapping[str, Candidate]) -> tuple[Chain, ...]:
    """Trajectories of which every step is a candidate and every verdict accepts the ends."""
    found: dict[str, Chain] = {}
    refused: set[str] = set()
    for row in trajectories.sort("trajectory_id", "target").to_dicts():
        name, steps = row["trajectory_id"], [chosen.get(s) for s in row["step_ids"]]
        kept = tuple(s for s in steps if s is not None)
        if not row["equal_pass"] or len(kept) < len(steps):
            refused.add(name)
            continue
        known = found[name].equality if name in found else row["equality"]
        found[name] = Chain(name, kept, max(known, row["equality"]))
    return tuple(found[name] for name in sorted(found.keys() - refused))


def _wrong(
    negatives: pl.DataFrame, chosen: Mapping[str, Candidate], show: Show
) -> tuple[Wrong, ...]:
    """Candidates that the verdict truly rejects, of steps that are candidates."""
    found = []
    for row in negatives.filter("usable").sort("negative_id").to_dicts():
        step = chosen.get(row["step_id"])
        text = None if step is None else show(step.signature, row["candidate"])
        if step is None or text is None:
            continue
        found.append(
            Wrong(
                negative_id=row["negative_id"],
                step=step,
                kind=row["kind"],
                change=row["change"],
                text=text,
                structural_hash=row["candidate_hash"],
                reason=row["reason"],
                static=row["static"],
                numeric=row["numeric"],
            )
        )
    return tuple(found)
