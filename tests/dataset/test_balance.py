from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.dataset.balance import REASONS, balance, caps, priority
from steptp_dagster.dataset.candidates import Candidate, Origin
from steptp_dagster.dataset.config import Task, load
from steptp_dagster.dataset.distribution import distribution, entropy
from steptp_dagster.dataset.ids import digest
from steptp_dagster.dataset.policy import BalancePlan, DifficultyClass, Rule, SizeClass
from steptp_dagster.dataset.records import Message, Record
from steptp_dagster.dataset.schemas import TASKS

FREE = BalancePlan()
EMPTY = (Message("system", ""), Message("user", ""), Message("assistant", ""))


def record(
    number: int,
    strategy: str = "loop_split",
    program: str = "softmax",
    family: str = "norm",
    same_as: int | None = None,
    task: str = "single",
    tokens: int = 10,
) -> Record:
    """A record that says the same as number ``same_as`` of its strategy."""
    step = Candidate(
        step_id=digest("step", number, strategy, program),
        origin=Origin(digest("source", program), program, family, "f32"),
        parent_step_id=None,
        strategy=strategy,
        strategy_level="operator",
        equality="exact",
        exact=True,
        site=(0,),
        parameters="{}",
        parent_leir_id="",
        result_leir_id="",
        signature="",
        text="",
        structural_hash="",
        result_text="",
        result_structural_hash="",
        reasoning_text="",
    )
    content = number if same_as is None else same_as
    return Record(
        record_id=digest("record", number, strategy, program, task),
        task=task,
        steps=(step,),
        equality="exact",
        key=(task, strategy, content if same_as is not None else (program, content)),
        messages=EMPTY,
        prompt_tokens=tokens,
        reasoning_tokens=0,
        answer_tokens=0,
    )


_RECORDS = st.lists(
    st.builds(
        record,
        number=st.integers(0, 30),
        strategy=st.sampled_from(["apart", "loop_split", "loop_fusion"]),
        program=st.sampled_from(["softmax", "GELU", "Matmul3D", "LayerNorm"]),
        family=st.sampled_from(["norm", "matmul"]),
        same_as=st.none() | st.integers(0, 3),
        task=st.sampled_from(["single", "negative"]),
        tokens=st.sampled_from([10, 10, 10, 99999]),
    ),
    unique_by=lambda r: r.record_id,
    max_size=40,
)
_CAP = st.none() | st.integers(1, 6)
_RULES = st.builds(Rule, cap=_CAP, weight=st.sampled_from([0.5, 1.0, 4.0]))
_PLANS = st.builds(
    BalancePlan,
    minimum=st.integers(0, 2),
    program_strategy_cap=_CAP,
    program_cap=_CAP,
    family_cap=_CAP,
    classes=st.sampled_from(
        [
            (DifficultyClass("any", cap=7),),
            (
                DifficultyClass("hard", ("apart",), keep_all=True),
                DifficultyClass("easy", strategy_cap=4, weight=0.5),
            ),
        ]
    ),
    strategies=st.dictionaries(st.sampled_from(["apart", "loop_split"]), _RULES),
    families=st.dictionaries(st.just("norm"), _RULES),
    programs=st.dictionaries(st.just("GELU"), _RULES),
)


def kept(records: Iterable[Record], plan: BalancePlan, seed: int = 0) -> set[str]:
    return {r.record_id for r in balance(records, plan, seed).kept}


@given(_RECORDS, _RECORDS, _PLANS, st.integers(0, 3))
def test_more_data_brings_nothing_back_that_was_out(
    some: list[Record], more: list[Record], plan: BalancePlan, seed: int
) -> None:
    known = {r.record_id for r in some}
    whole = [*some, *(r for r in more if r.record_id not in known)]
    assert kept(whole, plan, seed) & known <= kept(some, plan, seed)


@given(_RECORDS, _RECORDS, _PLANS)
def test_what_shares_no_cap_is_not_touched(
    some: list[Record], more: list[Record], plan: BalancePlan
) -> None:
    apart = [
        replace(
            r,
            record_id=digest("other", r.record_id),
            key=("other", r.key),
            steps=(
                replace(
                    r.first,
                    strategy="powsimp",
                    origin=replace(r.first.origin, program="other", family="other"),
                ),
            ),
        )
        for r in more
    ]
    for classes in (plan.classes, (DifficultyClass("own", ("powsimp",)), *plan.classes)):
        own = replace(plan, classes=classes)
        if any(c.cap is not None for c in classes) and classes is plan.classes:
            continue
        ids = {r.record_id for r in some}
        assert kept([*some, *apart], own) & ids == kept(some, own)


@given(_RECORDS, _PLANS)
def test_caps_hold_and_safe_records_stay(records: list[Record], plan: BalancePlan) -> None:
    result = balance(records, plan, 0)
    free = replace(plan, minimum=0, classes=(DifficultyClass("any", cap=7),))
    for cap in caps(free):
        left = balance(records, free, 0).kept
        counts = Counter(cap.group(r) for r in left)
        assert all(counts[cap.group(r)] <= (cap.most(r) or len(left)) for r in left)
    assert {r.record_id for r in result.kept} | result.dropped.keys() == {
        r.record_id for r in records
    }
    assert set(result.dropped.values()) <= set(REASONS)
    for r in records:
        if plan.class_of(r.first.strategy).keep_all and r.record_id in result.dropped:
            assert result.dropped[r.record_id] in ("too-long", "duplicate")


@given(_RECORDS, _PLANS)
def test_a_strategy_has_at_most_what_its_class_or_its_own_cap_allows(
    records: list[Record], plan: BalancePlan
) -> None:
    left = Counter((r.task, r.first.strategy) for r in balance(records, plan, 0).kept)
    for (_, name), count in left.items():
        difficulty = plan.class_of(name)
        own = plan.strategies[name].cap if name in plan.strategies else None
        most = difficulty.strategy_cap if own is None else own
        if most is not None and not difficulty.keep_all:
            # The minimum stays below any cap, and counts within it.
            assert count <= max(most, plan.minimum)


def test_the_cap_of_a_class_is_of_each_of_its_strategies_and_task() -> None:
    plan = replace(
        FREE,
        classes=(
            DifficultyClass("hard", ("apart",), keep_all=True),
            DifficultyClass("easy", strategy_cap=4),
        ),
        strategies={"loop_fusion": Rule(cap=2)},
    )
    records = [
        record(n, s, task=t)
        for n in range(9)
        for s in ("apart", "loop_split", "loop_fusion", "loop_tiling")
        for t in ("single", "negative")
    ]
    result = balance(records, plan, 0)
    left = Counter((r.task, r.first.strategy) for r in result.kept)
    for task in ("single", "negative"):
        assert left[task, "apart"] == 9
        assert left[task, "loop_split"] == left[task, "loop_tiling"] == 4
        assert left[task, "loop_fusion"] == 2
    assert set(result.dropped.values()) == {"strategy-cap"}


@given(_RECORDS, _PLANS)
def test_the_minimum_of_every_strategy_stays(records: list[Record], plan: BalancePlan) -> None:
    left = Counter((r.task, r.first.strategy) for r in balance(records, plan, 0).kept)
    there = Counter(
        (r.task, r.first.strategy) for r in balance(records, replace(plan, enabled=False), 0).kept
    )
    assert all(left[name] >= min(n, plan.minimum) for name, n in there.items())


def test_a_program_does_not_drown_the_others() -> None:
    plan = replace(FREE, program_strategy_cap=4)
    records = [record(n, program=p) for n in range(9) for p in ("softmax", "GELU")]
    result = balance(records, plan, 0)
    assert Counter(r.first.origin.program for r in result.kept) == {"softmax": 4, "GELU": 4}
    assert set(result.dropped.values()) == {"program-strategy-cap"}


def test_the_choice_depends_on_the_seed_and_not_on_order() -> None:
    plan = replace(FREE, program_cap=5)
    records = [record(n) for n in range(30)]
    assert balance(records, plan, 1) == balance(reversed(records), plan, 1)
    assert balance(records, plan, 1) != balance(records, plan, 2)


def test_weights_shift_a_shared_cap() -> None:
    plan = replace(
        FREE,
        classes=(DifficultyClass("any", cap=300),),
        strategies={"apart": Rule(weight=4.0)},
    )
    records = [record(n, s) for n in range(500) for s in ("apart", "loop_split")]
    left = Counter(r.first.strategy for r in balance(records, plan, 0).kept)
    assert left.total() == 300
    assert left["apart"] > 3 * left["loop_split"]


def test_equal_structures_are_duplicates_across_programs_and_stay_off_with_the_balance() -> None:
    one, twin = record(1, same_as=1), record(2, program="GELU", same_as=1)
    for plan in (FREE, replace(FREE, enabled=False)):
        result = balance([one, twin], plan, 0)
        assert len(result.kept) == 1
        assert list(result.dropped.values()) == ["duplicate"]


def test_switched_off_it_caps_nothing() -> None:
    plan = replace(FREE, program_cap=1, enabled=False)
    assert len(balance([record(n) for n in range(5)], plan, 0).kept) == 5


def test_long_records_are_left_out() -> None:
    result = balance([record(1, tokens=11)], replace(FREE, tokens=10), 0)
    assert result.dropped == {record(1).record_id: "too-long"}


def test_a_record_of_several_steps_counts_for_its_hardest_class() -> None:
    plan = replace(
        FREE, classes=(DifficultyClass("hard", ("apart", "powsimp")), DifficultyClass("easy"))
    )
    assert plan.hardest(("loop_split", "apart", "powsimp", "loop_fusion")) == "powsimp"
    assert plan.hardest(("loop_split", "loop_fusion")) == "loop_fusion"


def test_size_classes() -> None:
    plan = replace(FREE, sizes=(SizeClass("short", 10), SizeClass("long")))
    assert [plan.size_of(n) for n in (1, 10, 11)] == ["short", "short", "long"]


def test_places_are_spread_evenly() -> None:
    places = [priority(record(n), FREE, 0)[0] for n in range(2000)]
    assert sum(places) / len(places) == pytest.approx(1.0, abs=0.1)


def test_the_report_adds_up() -> None:
    plan = replace(FREE, program_cap=3)
    records = [record(n, program=p) for n in range(6) for p in ("softmax", "GELU")]
    records += [record(50, program="softmax", tokens=99999)]
    result = balance(records, plan, 0)
    rows = distribution(records, result, plan)
    (whole,) = (r for r in rows if r["dimension"] == "program" and r["name"] is None)
    assert (whole["before"], whole["after"]) == (13, 6)
    assert whole["dropped"] == '{"program-cap":6,"too-long":1}'
    assert whole["entropy_before"] == pytest.approx(0.995727)
    assert whole["entropy_after"] == 1.0
    parts = [r for r in rows if r["dimension"] == "program" and r["name"] is not None]
    assert sum(r["after"] for r in parts) == 6
    assert entropy([]) == 0.0


def test_tasks_are_those_of_the_profiles() -> None:
    assert get_args(Task) == TASKS
    assert load("default").records.tasks == TASKS
