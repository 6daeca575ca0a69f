import json
from dataclasses import replace

import pytest

from steptp_dagster.dataset.answers import BadAnswer, read_answer
from steptp_dagster.dataset.candidates import Selection, select
from steptp_dagster.dataset.config import RecordPlan, load
from steptp_dagster.dataset.making import make_all
from steptp_dagster.dataset.records import Record, single
from steptp_dagster.dataset.schemas import BALANCE, FILTERED_DATASET, frame
from steptp_dagster.dataset.selection import filtered
from steptp_dagster.dataset.tokens import count, encoding
from tests.support.rows import HEADER, SOURCE_TEXT, all_rows, key, tables

PLAN = RecordPlan()


def selection() -> Selection:
    return select(tables(all_rows()))


def records(task: str, plan: RecordPlan = PLAN) -> list[Record]:
    return [r for r in make_all(selection(), plan, 0) if r.task == task]


def test_a_record_shows_program_reasoning_and_answer() -> None:
    candidate = selection().candidates[0]
    record = single(candidate, PLAN)
    system, user, assistant = record.messages
    assert [m.role for m in record.messages] == ["system", "user", "assistant"]
    assert "<think>" in system.content
    assert "B bound to the GPU axis" in system.content
    assert f"{HEADER}{candidate.text}\n" in user.content
    reasoning, answer = read_answer(assistant.content)
    assert reasoning == candidate.reasoning_text
    assert answer == {
        "strategy": candidate.strategy,
        "site": "1",
        "parameters": {"factor": 2},
        "leir": candidate.result_text,
    }


def test_several_answers_are_different_steps_of_one_program() -> None:
    made = records("multi")
    assert made
    for record in made:
        _, answer = read_answer(record.messages[2].content, "multi")
        assert [s["strategy"] for s in answer["steps"]] == list(record.strategies)
        assert len(set(record.strategies)) == len(record.steps) >= 2
        assert {s.parent_leir_id for s in record.steps} == {record.first.parent_leir_id}
        assert f"Give {len(record.steps)} different" in record.messages[1].content
    assert [len(r.steps) for r in records("multi", replace(PLAN, answers=2))] == [2, 2, 2]


def test_a_trajectory_shows_every_step_with_its_reasoning() -> None:
    made = records("trajectory")
    assert len(made) == 3
    for record in made:
        reasoning, answer = read_answer(record.messages[2].content, "trajectory")
        assert [s["leir"] for s in answer["steps"]] == [s.result_text for s in record.steps]
        assert all(s.reasoning_text in reasoning for s in record.steps)
        assert record.steps[1].parent_leir_id == record.steps[0].result_leir_id


def test_a_negative_says_what_the_verdict_found() -> None:
    made = records("negative")
    assert len(made) == 3
    reasoning, answer = read_answer(made[0].messages[2].content, "negative")
    assert answer == {"accepted": False, "reason": "different-mathematics"}
    assert "statement 1.1 has `-` in place of `+`" in reasoning
    assert "The right step has `D^{f32,g}_{tx}=A^{f32,g}_{tx}+1.0` there." in reasoning
    assert "family normal: in binary64 the outputs differ by 0.25 of their size." in reasoning
    assert SOURCE_TEXT.replace("+", "-") in made[0].messages[1].content
    assert made[0].equality == "rejected"


def test_the_contract_is_the_weaker_of_promise_and_verdict() -> None:
    rows = all_rows()
    rows["transformed_steps"][0]["numerics"] = "reassociated"
    rows["gpu_verification"][1].update(equality="reassociated", bitwise=False)
    told = {c.step_id: single(c, PLAN).messages[1].content for c in select(tables(rows)).candidates}
    steps = [row["step_id"] for row in rows["transformed_steps"]]
    assert "up to the rounding" in told[steps[0]]
    assert "up to the rounding" in told[steps[1]]
    assert "value by value" in told[steps[2]]


def test_reasoning_and_language_are_settings() -> None:
    bare = single(selection().candidates[0], replace(PLAN, reasoning=False))
    assert bare.reasoning_tokens == 0
    assert "think" not in "".join(m.content for m in bare.messages)
    assert read_answer(bare.messages[2].content, reasoning=False)[0] == ""

    def upper(signature: str, leir: str) -> str | None:
        del signature
        return None if leir.endswith("?") else leir.upper()

    shown = select(tables(all_rows()), upper)
    record = single(shown.candidates[0], replace(PLAN, program="tir"))
    _, answer = read_answer(record.messages[2].content, language="tir")
    assert answer["tir"] == SOURCE_TEXT.upper()
    assert "TVM scripts" in record.messages[0].content
    rows = all_rows()
    rows["leir_programs"][1]["text"] += "?"
    assert set(select(tables(rows), upper).excluded.values()) == {"not-shown"} | {
        "earlier-step-excluded"
    }


def test_token_counts_add_up() -> None:
    for record in make_all(selection(), PLAN, 0):
        whole = sum(count(m.content) for m in record.messages)
        assert abs(record.tokens - whole) <= 2


def test_ids_follow_the_words() -> None:
    step = selection().candidates[0]
    ids = {single(step, plan).record_id for plan in (PLAN, replace(PLAN, reasoning=False))} | {
        single(replace(step, reasoning_text="Otherwise."), PLAN).record_id
    }
    assert len(ids) == 3
    assert single(step, PLAN) == single(step, PLAN)


@pytest.mark.parametrize(
    ("text", "task", "message"),
    [
        ("{}", "single", "expected <think>"),
        ("<think>x</think> nothing", "single", "expected one JSON object"),
        ('<think>x</think>{"strategy": "a"}', "single", "expected an object with leir, parameters"),
        ('<think>x</think>{"steps": []}', "multi", '"steps" to be a list of steps'),
        ('<think>x</think>{"steps": [1]}', "trajectory", "step 1 as an object with leir"),
        ('<think>x</think>{"accepted": 1}', "negative", "an object with accepted, reason"),
    ],
)
def test_bad_answers_are_refused(text: str, task: str, message: str) -> None:
    with pytest.raises(BadAnswer, match=message):
        read_answer(text, task)


def test_published_token_ids_of_the_tokenizer() -> None:
    text = "Give me a short introduction to large language model."
    assert encoding().encode(text) == [35127, 752, 264, 2805, 16800, 311, 3460, 4128, 1614, 13]


def test_selection_names_a_reason_for_every_other_step() -> None:
    rows = all_rows(wrong=1)
    rows["transformed_steps"][3]["mismatches"] = ["extent of tx"]
    rows["gpu_verification"].pop(7)
    rows["translations"][2]["screens"] = ["constant-output"]
    excluded = select(tables(rows)).excluded
    reasons = [excluded.get(s["step_id"]) for s in rows["transformed_steps"]]
    assert reasons == [
        "rejected",
        None,
        "earlier-step-excluded",
        "ungrounded",
        None,
        "earlier-step-excluded",
        None,
        "not-verified",
        None,
        None,
        None,
        None,
        *["source-screened"] * 6,
    ]


def test_a_rejected_whole_is_no_trajectory_and_an_unproven_candidate_no_negative() -> None:
    rows = all_rows()
    rows["trajectories"][0].update(equal_pass=False, equality="rejected", reason="timed-out")
    rows["negatives"][1].update(usable=False, reason="timed-out")
    found = select(tables(rows))
    assert len(found.chains) == 2
    assert len(found.wrong) == 2


def test_rows_fit_the_table_and_lead_back() -> None:
    result = filtered(tables(all_rows(wrong=2)), load("tiny"))
    rows = [{**row, "unit": key("unit")} for row in result.rows]
    table = FILTERED_DATASET.validate(frame(FILTERED_DATASET, rows), lazy=True)
    assert dict(table["task"].value_counts().rows()) == {
        "single": 18 - 3,
        "multi": 2,
        "trajectory": 2,
        "negative": 2,
    }
    assert set(table["split"]) == {"train", "validation", "test"}
    gone = {row["step_id"]: row["reason"] for row in result.exclusions}
    assert gone[key("step", "Matmul3D/loop_split/0")] == "rejected"
    assert json.loads(table["messages"][0][2]["content"].partition("</think>")[2])
    counted = BALANCE.validate(frame(BALANCE, result.balance), lazy=True)
    whole = counted.filter((counted["dimension"] == "strategy") & counted["name"].is_null())
    assert dict(whole.select("task", "after").rows()) == dict(table["task"].value_counts().rows())
