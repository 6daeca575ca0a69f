from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steptp_dagster import progress
from steptp_dagster.dataset.config import Profile, ProgramPlan, load
from steptp_dagster.dataset.incremental import Origin, Unit
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    SURVEYS,
    TRANSFORMED_STEPS,
    polars_schema,
)
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.stages import steps as stage
from steptp_dagster.dataset.stages.judging import NOT_BUILT, NOT_RUN
from steptp_dagster.dataset.stages.sources import UnknownProgram, samples
from steptp_dagster.dataset.stages.verdicts import update_verdicts, verdicts_of
from steptp_dagster.dataset.store import Store
from steptp_dagster.strategies import alternatives
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.verify import reasons
from steptp_dagster.verify.record import Verdict
from tests.support.rows import HEADER, fill, key, source_row

TEXT = "B^{4}_{tx=0}L^{6}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];"
SIGNED = signed_of("# input A f32[4,6]\n# output D f32[4]\n", TEXT)
INLINE = Workers(None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Stage files of one program, a row sum, translated."""
    row = {**row_of(SIGNED), "unit": key("unit leir")}
    rows: dict[str, list[dict[str, Any]]] = {
        "source_programs": [source_row("sum", "reduction")],
        "translations": [
            {
                "source_id": key("source", "sum", "f32"),
                "leir_id": row["leir_id"],
                "refusal": None,
                "message": None,
                "fidelity": 0.0,
                "comparisons": [],
                "roundings": [],
                "interpreted": "program",
                "screens": [],
                "siblings": [],
                "unit": key("unit translation"),
            }
        ],
        "leir_programs": [row],
        **{name: [] for name in ("surveys", "transformed_steps", "gpu_verification", "zoo")},
    }
    store = Store(tmp_path)
    fill(store, rows, "sum")
    return store


def profile(**steps: Any) -> Profile:
    tiny = load("tiny")
    return replace(
        tiny,
        strategies=("loop_split", "reduction_factorization"),
        steps=replace(tiny.steps, **steps),
    )


def take(store: Store, chosen: Profile) -> pl.DataFrame:
    stage.update_steps(store, "sum", chosen, INLINE, Origin(), progress.silent)
    return store.read(TRANSFORMED_STEPS, "sum")


def test_a_cap_bounds_the_steps_of_a_strategy(store: Store) -> None:
    counts = take(store, profile(sites=2, depth=0))["strategy"].value_counts().sort("strategy")
    assert counts.rows() == [("loop_split", 2), ("reduction_factorization", 2)]
    surveys = store.read(SURVEYS, "sum")
    assert surveys["taken"].to_list() == [2, 2]
    assert all(sites > 2 for sites in surveys["sites"])


def test_a_wider_cap_keeps_the_steps_that_were_chosen(store: Store) -> None:
    few = set(take(store, profile(sites=1, depth=0))["step_id"])
    many = set(take(store, profile(sites=3, depth=0))["step_id"])
    assert few < many


def test_chains_start_from_results_and_never_twice_from_one_program(store: Store) -> None:
    steps = take(store, profile(sites=2, depth=3, chains=2, chain_sites=2))
    assert steps["step_id"].is_unique().all()
    assert set(steps["step_depth"]) == {0, 1, 2, 3}
    results = dict(steps.select("step_id", "result_leir_id").rows())
    chained = steps.filter(pl.col("parent_step_id").is_not_null())
    for row in chained.to_dicts():
        assert results[row["parent_step_id"]] == row["parent_leir_id"]
    parents = steps.select("parent_leir_id", "parent_step_id").unique()
    assert parents["parent_leir_id"].is_unique().all()


def test_a_long_program_is_refused_by_name(store: Store) -> None:
    assert take(store, profile(tokens=10)).is_empty()
    (reasons_found,) = {str(r) for r in store.read(SURVEYS, "sum")["refusals"].to_list()}
    assert "program-too-long" in reasons_found


def test_a_strategy_that_raises_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise IndexError("off by one")

    monkeypatch.setattr(type(strategies()["loop_split"]), "survey", broken)
    alternatives.forget()
    with pytest.raises(
        stage.StepFailure, match=r"loop_split on \w+ of source \w+: IndexError: off"
    ):
        take(store, profile())


def test_an_unknown_strategy_of_a_profile_is_named(store: Store) -> None:
    with pytest.raises(stage.UnknownStrategy, match="no strategy 'magic'; one of additive_split"):
        take(store, replace(profile(), strategies=("magic",)))


def test_samples_are_the_same_shapes_in_every_dtype() -> None:
    plan = replace(load("default"), programs=(ProgramPlan("softmax", samples=2),))
    found = samples("softmax", plan)
    assert len(found) == 4
    shapes = {dtype: [s.shape for s in found if s.dtype == dtype] for dtype in ("f16", "f32")}
    assert shapes["f16"] == shapes["f32"]
    assert found == samples("softmax", plan)
    with pytest.raises(UnknownProgram, match="no source program 'softmin'"):
        samples("softmin", load("default"))


def test_samples_of_usual_shapes_have_several_rows_and_heads() -> None:
    default = load("default")
    assert default.shapes == "usual"
    for program, names in {
        "MinGPTCausalAttention": ("batch", "heads"),
        "Matmul_Scaling_ResidualAdd": ("rows",),
        "conv1d_conv1d_padding": ("batch", "filters"),
    }.items():
        (usual,), (plain,) = (
            {tuple(s.shape.items()) for s in samples(program, replace(default, shapes=shapes))}
            for shapes in ("usual", "any")
        )
        assert min(dict(usual)[name] for name in names) > 1
        assert min(dict(plain)[name] for name in names) == 1


def test_samples_are_the_same_in_every_form() -> None:
    programs = (ProgramPlan("softmax"), ProgramPlan("GELU", forms=("naive",)))
    plan = replace(load("tiny"), programs=programs, forms=("composed", "naive"))
    found = samples("softmax", plan)
    assert [s.form for s in found] == ["composed", "naive"]
    assert len({str(s.shape) for s in found}) == 1
    assert [s.form for s in samples("GELU", plan)] == ["naive"]


class Judge:
    """Stands for the pool: gives the same verdict to every pair."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.pairs = 0

    def verify_many(self, pairs: Any) -> Iterator[tuple[Unit, Verdict]]:
        for unit, _, _ in pairs:
            self.pairs += 1
            yield unit, self.verdict


ACCEPTED = Verdict(True, "exact", True, None)


def verified(store: Store, pool: Any) -> pl.DataFrame:
    update_verdicts(store, "sum", profile(), pool, Origin(), progress.silent)
    return store.read(GPU_VERIFICATION, "sum")


def test_every_step_has_a_verdict_and_every_pair_is_judged_once(store: Store) -> None:
    steps = take(store, profile(sites=3, depth=0))
    pool = Judge(ACCEPTED)
    table = verified(store, pool)
    assert set(table["step_id"]) == set(steps["step_id"])
    assert table.schema == polars_schema(GPU_VERIFICATION)
    assert pool.pairs == steps.select("parent_leir_id", "result_leir_id").unique().height
    verified(store, pool)
    assert pool.pairs == table.select("parent_leir_id", "result_leir_id").unique().height


def test_a_verdict_that_the_machine_did_not_reach_is_asked_for_again(store: Store) -> None:
    pairs = take(store, profile(sites=3, depth=0)).select("parent_leir_id", "result_leir_id")
    slow = Judge(Verdict(False, "rejected", False, reasons.TIMED_OUT))
    assert set(verified(store, slow)["reason"]) == {reasons.TIMED_OUT}
    fast = Judge(ACCEPTED)
    assert verified(store, fast)["equal_pass"].all()
    assert fast.pairs == pairs.unique().height
    verified(store, fast)
    assert fast.pairs == pairs.unique().height


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        (None, (True, True, True)),
        (reasons.MATHEMATICS, (True, True, False)),
        (reasons.CRASHED, (True, False, False)),
        (reasons.INVALID, (False, False, False)),
    ],
)
def test_how_far_a_pair_came(reason: str | None, passes: tuple[bool, bool, bool]) -> None:
    verdict = ACCEPTED if reason is None else Verdict(False, "rejected", False, reason)
    pool: Any = Judge(verdict)
    unit = Unit(key("unit"), ("a", "b", "llvm"))
    (made,) = verdicts_of([unit], {"a": SIGNED, "b": SIGNED}, pool)
    (row,) = made.rows["verdicts"]
    assert (row["build_pass"], row["exec_pass"], row["equal_pass"]) == passes


def test_every_reason_says_how_far_the_pair_came() -> None:
    assert set(reasons.REASONS) >= NOT_BUILT | NOT_RUN
    assert not NOT_BUILT & NOT_RUN


def test_programs_survive_the_table() -> None:
    row = row_of(SIGNED)
    assert signed_of(row["signature"], row["text"]) == SIGNED
    assert row["iterations"] == 24
    assert row["bytes"] == 24 * (4 + 4 + 4)
    assert signed_of(HEADER, "B^{4}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx};];").signature.outputs
