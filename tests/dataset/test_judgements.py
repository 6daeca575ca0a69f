"""Steps that lead on, trajectories and wrong candidates, on one small program."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steptp_dagster import progress
from steptp_dagster.dataset.acceptance import TOLD
from steptp_dagster.dataset.config import Profile, load
from steptp_dagster.dataset.incremental import Origin, Unit
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of
from steptp_dagster.dataset.schemas import (
    LEIR_PROGRAMS,
    NEGATIVES,
    SURVEYS,
    TRAJECTORIES,
    TRANSFORMED_STEPS,
)
from steptp_dagster.dataset.siblings import SmallStep
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.small_chains import SmallChains
from steptp_dagster.dataset.stages import negatives, trajectories
from steptp_dagster.dataset.stages.judgements import update_judgements
from steptp_dagster.dataset.stages.steps import update_steps
from steptp_dagster.dataset.store import Store
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.violation import Violation
from steptp_dagster.strategies.base import Site
from steptp_dagster.verify.mutation.catalogue import KINDS
from steptp_dagster.verify.record import Verdict, rejection
from tests.support.rows import fill, key, source_row

SIGNED = signed_of(
    "# input A f32[8,6]\n# output D f32[8,6]\n",
    "L^{8}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}+1.0;];",
)
ACCEPTED = Verdict(True, "exact", True, None)


class Judge:
    """Stands for the pool: the real verdict, or one and the same."""

    def __init__(self, verdict: Verdict | None = None) -> None:
        self.verdict = verdict
        self.pairs = 0

    def verify_many(self, pairs: Any) -> Iterator[tuple[Unit, Verdict]]:
        for unit, original, candidate in pairs:
            self.pairs += 1
            yield unit, self.verdict or really(original, candidate)


def really(original: SignedProgram, candidate: SignedProgram) -> Verdict:
    """The verdict itself; importing it takes seconds, so only where it is wanted."""
    from steptp_dagster.verify.verdict import verify

    return verify(original, candidate)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Stage files of one translated program with two loops."""
    row = {**row_of(SIGNED), "unit": key("unit leir")}
    told = dict.fromkeys(("refusal", "message", "fidelity", "interpreted"))
    lists: dict[str, list[Any]] = {
        name: [] for name in ("comparisons", "roundings", "screens", "siblings")
    }
    translation = {
        "source_id": key("source", "copy", "f32"),
        "leir_id": row["leir_id"],
        **told,
        **lists,
        "unit": key("unit translation"),
    }
    store = Store(tmp_path)
    sources = [source_row("copy", "elementwise")]
    fill(
        store,
        {"source_programs": sources, "translations": [translation], "leir_programs": [row]},
        "copy",
    )
    return store


def profile(**steps: Any) -> Profile:
    tiny = load("tiny")
    plan = replace(tiny.steps, sites=1, chains=1, chain_sites=2, **steps)
    return replace(tiny, strategies=("loop_reorder", "loop_unrolling", "loop_split"), steps=plan)


def taken(store: Store, chosen: Profile) -> pl.DataFrame:
    update_steps(store, "copy", chosen, Workers(None), Origin(), progress.silent)
    return store.read(TRANSFORMED_STEPS, "copy")


def judged(store: Store, chosen: Profile, pool: Any) -> None:
    update_judgements(store, "copy", chosen, pool, Origin(), progress.silent)


def test_no_chain_comes_back_to_a_structure(store: Store) -> None:
    steps = taken(store, profile(depth=4, prefer=("loop_reorder",)))
    programs = {
        row["leir_id"]: row["structural_hash"]
        for name in ("leir_programs", "step_programs")
        for row in store.read(LEIR_PROGRAMS, "copy", name).to_dicts()
    }
    by_id = {row["step_id"]: row for row in steps.to_dicts()}
    assert steps["step_depth"].max() == 4
    for row in by_id.values():
        passed = [programs[row["result_leir_id"]]]
        at: dict[str, Any] | None = row
        while at is not None:
            passed.append(programs[at["parent_leir_id"]])
            at = by_id[at["parent_step_id"]] if at["parent_step_id"] else None
        assert len(set(passed)) == len(passed) == row["step_depth"] + 2
    refusals = store.read(SURVEYS, "copy").explode("refusals").unnest("refusals")
    messages = refusals.filter(pl.col("reason") == "comes-back")["message"].to_list()
    assert messages
    assert all("a program that the chain has been at: " in message for message in messages)


def test_trajectories_join_ends_that_are_judged_as_one_pair(store: Store) -> None:
    chosen = profile(depth=3, trajectories=2, negatives=0)
    steps = taken(store, chosen)
    pool = Judge(ACCEPTED)
    judged(store, chosen, pool)
    table = store.read(TRAJECTORIES, "copy")
    assert dict(table["length"].value_counts().sort("length").rows()) == {2: 2, 3: 2, 4: 2}
    rows = {row["step_id"]: row for row in steps.to_dicts()}
    for trajectory in table.to_dicts():
        chain = [rows[name] for name in trajectory["step_ids"]]
        assert chain[0]["parent_leir_id"] == trajectory["first_leir_id"]
        assert chain[-1]["result_leir_id"] == trajectory["last_leir_id"]
        for before, after in pairwise(chain):
            assert after["parent_leir_id"] == before["result_leir_id"]
    number = pool.pairs
    judged(store, chosen, pool)
    assert pool.pairs == number


def test_a_rejected_step_ends_no_trajectory(store: Store) -> None:
    chosen = profile(depth=2, trajectories=5, negatives=3)
    taken(store, chosen)
    judged(store, chosen, Judge(rejection("different-mathematics", "")))
    assert store.read(TRAJECTORIES, "copy").is_empty()
    assert store.read(NEGATIVES, "copy").is_empty()


def test_wrong_candidates_are_rejected_by_the_real_verdict(store: Store) -> None:
    chosen = profile(depth=1, trajectories=0, negatives=6)
    taken(store, chosen)
    pool = Judge()
    judged(store, chosen, pool)
    table = store.read(NEGATIVES, "copy")
    assert table.height == 6
    assert table["kind"].n_unique() >= 4
    assert table.filter("usable").height >= 3
    assert not table.filter("usable")["equal_pass"].any()
    assert set(table.filter("usable")["reason"]) <= set(TOLD)
    for row in table.to_dicts():
        candidate = signed_of("# input A f32[8,6]\n# output D f32[8,6]\n", row["candidate"])
        assert structural_hash(candidate) == row["candidate_hash"]
        assert row["change"].endswith(").")
    before = pool.pairs
    judged(store, chosen, pool)
    assert pool.pairs == before


@pytest.mark.parametrize(
    ("verdict", "usable"),
    [
        (ACCEPTED, False),
        (rejection("different-mathematics", ""), True),
        (rejection("timed-out", ""), False),
        (rejection("too-few-families", ""), False),
        (rejection("invalid", "", (Violation("undecided", "perhaps"),)), False),
        (rejection("invalid", "", (Violation("race", "two writes"),)), True),
    ],
)
def test_only_what_is_proved_wrong_counts(verdict: Verdict, usable: bool) -> None:
    assert negatives.rejected(verdict) is usable


def test_every_kind_of_mistake_has_words() -> None:
    for kind in KINDS:
        words = negatives.mistake(kind)
        assert words != kind
        assert not words.endswith(".")
        assert "``" not in words


STEPS = {
    key("step", n): {
        "step_id": key("step", n),
        "source_id": "source",
        "strategy": "loop_split",
        "parent_leir_id": key("large"),
        "result_leir_id": key("large"),
    }
    for n in "ab"
}


class Small(SmallChains):
    """Every step is repeated on the siblings named, or on none for a reason."""

    def __init__(self, *names: str, refused: str = "") -> None:
        super().__init__({"source": dict.fromkeys(names, '{"n":8}')}, STEPS, {}, {})
        self.refused = refused

    def step(self, name: str) -> dict[str, SmallStep] | str:
        siblings = self.siblings[self.steps[name]["source_id"]]
        found = SmallStep(SIGNED, SIGNED, Site.of("loop_split", (0,)))
        return self.refused or dict.fromkeys(siblings, found)


class TooLarge:
    """Refuses the first pair for its size, then gives one verdict after the other."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = [rejection("too-large", "1 GiB"), *verdicts]

    def verify_many(self, pairs: Any) -> Iterator[tuple[Any, Verdict]]:
        for name, _, _ in pairs:
            yield name, self.verdicts.pop(0)


@pytest.mark.parametrize(
    ("small", "verdicts", "outcome"),
    [
        (Small("s", "t"), (ACCEPTED, ACCEPTED), (True, "sibling", "")),
        (
            Small("s", "t"),
            (ACCEPTED, rejection("different-mathematics", "on normal")),
            (False, "sibling", "on a sibling: on normal"),
        ),
        (Small("s", "t", refused="no such site"), (), (False, "static", "1 GiB; no such site")),
    ],
)
def test_large_trajectories_are_judged_on_siblings(
    small: Small, verdicts: tuple[Verdict, ...], outcome: tuple[bool, str, str]
) -> None:
    path = trajectories.Trajectory(tuple(STEPS.values()))
    pool: Any = TooLarge(*verdicts)
    units, programs = [Unit(key("unit"), path)], {key("large"): SIGNED}
    (made,) = trajectories.trajectories_of(units, programs, pool, small)
    (told,) = made.rows["trajectories"]
    message = json.loads(told["numeric"])["message"]
    assert (told["equal_pass"], told["evidence"], message) == outcome
    assert told["length"] == 2
