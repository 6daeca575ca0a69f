from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.dataset.balance import balance, difficulty, share_cap
from steptp_dagster.dataset.candidates import select
from steptp_dagster.dataset.config import BalancePlan, Difficulty
from steptp_dagster.dataset.records import Record, make
from tests.support.rows import all_rows, tables

PLAN = BalancePlan(per_strategy_share=1.0)


def records(copies: int = 1) -> list[Record]:
    found = []
    for candidate in select(tables(all_rows())).candidates:
        for n in range(copies):
            other = replace(
                candidate,
                step_id=f"{candidate.step_id[:-2]}{n:02d}",
                result_structural_hash=f"{candidate.result_structural_hash[:-2]}{n:02d}",
            )
            found.append(make(other))
    return found


def test_everything_stays_below_the_caps() -> None:
    kept = balance(records(), PLAN, 0)
    assert len(kept.kept) == 18
    assert kept.dropped == {}


def test_a_program_does_not_drown_the_others() -> None:
    kept = balance(records(5), replace(PLAN, per_program_strategy=4), 0)
    counts = Counter((r.candidate.program, r.candidate.strategy) for r in kept.kept)
    assert set(counts.values()) == {4}
    assert set(kept.dropped.values()) == {"program-cap"}


def test_the_choice_does_not_depend_on_order() -> None:
    plan = replace(PLAN, per_program_strategy=2)
    forward = balance(records(3), plan, 1)
    assert forward == balance(reversed(records(3)), plan, 1)
    assert forward != balance(records(3), plan, 2)


def test_equal_structures_are_duplicates() -> None:
    one = records()[0]
    twin = make(replace(one.candidate, step_id="0" * 32))
    result = balance([one, twin], PLAN, 0)
    assert len(result.kept) == 1
    assert list(result.dropped.values()) == ["duplicate"]


def test_long_records_are_left_out() -> None:
    result = balance(records(), replace(PLAN, tokens=records()[0].tokens - 50), 0)
    assert result.kept == ()
    assert set(result.dropped.values()) == {"too-long"}


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 60), min_size=4),
    st.sampled_from([0.3, 0.5, 0.8]),
)
def test_no_strategy_has_more_than_its_share(counts: dict[str, int], share: float) -> None:
    cap = share_cap(counts, share)
    total = sum(min(cap, n) for n in counts.values())
    assert min(cap, max(counts.values())) <= share * total
    wider = cap + 1
    assert cap >= max(counts.values()) or wider > share * sum(
        min(wider, n) for n in counts.values()
    )


def test_a_single_strategy_is_not_cut() -> None:
    assert share_cap({"a": 7}, 0.5) == 7
    assert share_cap({"a": 7, "b": 3}, 0.4) == 3


def test_difficulty_classes() -> None:
    classes = (Difficulty("short", 10), Difficulty("long"))
    assert [difficulty(n, classes) for n in (1, 10, 11)] == ["short", "short", "long"]
