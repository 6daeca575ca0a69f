"""Answers of models read back: reasoning, and the JSON object that a task asks for."""

import json
from typing import Any, Final

#: Task -> keys of its answer; of ``single``, and of each of several steps, the program's comes on
#: top, under the name of its language.
_STEP: Final = ("strategy", "site", "parameters")
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "multi": ("steps",),
    "trajectory": ("steps",),
    "negative": ("accepted", "reason"),
}


class BadAnswer(ValueError):
    """An answer that is not reasoning followed by the JSON object asked for."""


def read_answer(
    text: str, task: str = "single", language: str = "leir", *, reasoning: bool = True
) -> tuple[str, dict[str, Any]]:
    """Reasoning and JSON object of an assistant message. Raises BadAnswer.

    Without ``reasoning`` the answer is the object alone, and the reasoning empty.
    """
    thought = ""
    if reasoning:
        head, found, text = text.partition("</think>")
        if not found or not head.startswith("<think>"):
            raise BadAnswer("expected <think> ... </think> before the answer")
        thought = head.removeprefix("<think>").strip()
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = " after </think>" if reasoning else ""
        raise BadAnswer(f"expected one JSON object{where}: {error}") from error
    answer = _with_keys(data, _KEYS.get(task, (*_STEP, language)), "an object")
    if task in ("multi", "trajectory"):
        steps = answer["steps"]
        if not isinstance(steps, list) or not steps:
            raise BadAnswer('expected "steps" to be a list of steps')
        for number, step in enumerate(steps, 1):
            _with_keys(step, (*_STEP, language), f"step {number} as an object")
    return thought, answer


def _with_keys(data: object, keys: tuple[str, ...], what: str) -> dict[str, Any]:
    if not isinstance(data, dict) or data.keys() != set(keys):
        raise BadAnswer(f"expected {what} with {', '.join(sorted(keys))}")
    return data
