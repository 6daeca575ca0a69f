import json

import pytest

from steptp_dagster.dataset.candidates import select
from steptp_dagster.dataset.config import load
from steptp_dagster.dataset.records import BadAnswer, make, read_answer
from steptp_dagster.dataset.schemas import FILTERED_DATASET, frame
from steptp_dagster.dataset.selection import filtered
from steptp_dagster.dataset.tokens import count, encoding
from tests.support.rows import HEADER, SOURCE_TEXT, all_rows, key, tables


def test_a_record_shows_program_reasoning_and_answer() -> None:
    candidate = select(tables(all_rows())).candidates[0]
    record = make(candidate)
    system, user, assistant = record.messages
    assert [m.role for m in record.messages] == ["system", "user", "assistant"]
    assert "<think>" in system.content
    assert f"{HEADER}{SOURCE_TEXT}\n" in user.content
    reasoning, answer = read_answer(assistant.content)
    assert reasoning == candidate.reasoning_text
    assert answer == {
        "strategy": candidate.strategy,
        "site": "1",
        "parameters": {"factor": 2},
        "leir": candidate.result_text,
    }


def test_token_counts_add_up() -> None:
    record = make(select(tables(all_rows())).candidates[0])
    whole = sum(count(m.content) for m in record.messages)
    assert abs(record.tokens - whole) <= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "expected <think>"),
        ("<think>x</think> nothing", "expected one JSON object"),
        ('<think>x</think>{"strategy": "a"}', "expected an object with leir, parameters"),
    ],
)
def test_bad_answers_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadAnswer, match=message):
        read_answer(text)


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


def test_rows_fit_the_table_and_lead_back() -> None:
    result = filtered(tables(all_rows(wrong=2)), load("tiny"))
    rows = [{**row, "unit": key("unit")} for row in result.rows]
    table = FILTERED_DATASET.validate(frame(FILTERED_DATASET, rows), lazy=True)
    assert table.height == 18 - 3
    assert set(table["split"]) == {"train", "validation", "test"}
    gone = {row["step_id"]: row["reason"] for row in result.exclusions}
    assert gone[key("step", "Matmul3D/loop_split/0")] == "rejected"
    assert json.loads(table["messages"][0][2]["content"].partition("</think>")[2])
