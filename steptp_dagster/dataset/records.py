"""Records in chat form: the program and the contract, then reasoning and a machine-read answer.

Four tasks (``schemas.TASKS``): one step, several steps of one program, a chain of steps, and why
a candidate was rejected. The texts around programs and reasoning are templates (``prompts``).
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from steptp_dagster.dataset.candidates import Candidate, Chain, Wrong
from steptp_dagster.dataset.config import RecordPlan
from steptp_dagster.dataset.corrections import correction
from steptp_dagster.dataset.ids import record_id
from steptp_dagster.dataset.prompts import prompts
from steptp_dagster.dataset.tokens import count
from steptp_dagster.verify import reasons

#: Loss weight of the system, user and assistant message: only the answer is learned.
WEIGHTS: Final = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Record:
    """Training text with what it was made from and how many tokens it has.

    ``steps`` are the steps it shows (of a negative record the right step). ``key`` is equal for
    records that say the same up to renaming and the order of commutative operands.
    """

    record_id: str
    task: str
    steps: tuple[Candidate, ...]
    equality: str
    key: Hashable
    messages: tuple[Message, Message, Message]
    prompt_tokens: int
    reasoning_tokens: int
    answer_tokens: int
    trajectory_id: str | None = None
    negative_id: str | None = None

    @property
    def first(self) -> Candidate:
        """The first step; all steps of a record have its source."""
        return self.steps[0]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies of the steps, in order."""
        return tuple(step.strategy for step in self.steps)

    @property
    def tokens(self) -> int:
        """Tokens of prompt, reasoning and answer together."""
        return self.prompt_tokens + self.reasoning_tokens + self.answer_tokens


def single(step: Candidate, plan: RecordPlan) -> Record:
    """The record of one step."""
    thought = step.reasoning_text.strip()
    request = prompts().tasks.single.request.format(
        contract=prompts().contract(step.exact), program=_declared(step, step.text)
    )
    key = ("single", step.strategy, step.structural_hash, step.result_structural_hash)
    return _record("single", (step,), step.equality, key, request, thought, _step(step, plan), plan)


def multi(steps: Sequence[Candidate], plan: RecordPlan) -> Record:
    """The record of several steps of one program, each by another strategy."""
    first = steps[0]
    request = prompts().tasks.multi.request.format(
        contract=prompts().contract(all(s.exact for s in steps)),
        program=_declared(first, first.text),
        count=len(steps),
    )
    pairs = sorted((s.strategy, s.result_structural_hash) for s in steps)
    key = ("multi", first.structural_hash, *pairs)
    weakest = max(s.equality for s in steps)
    return _several("multi", steps, weakest, key, request, plan)


def trajectory(chain: Chain, plan: RecordPlan) -> Record:
    """The record of a chain of steps."""
    first = chain.steps[0]
    exact = chain.equality == "exact" and all(s.exact for s in chain.steps)
    request = prompts().tasks.trajectory.request.format(
        contract=prompts().contract(exact),
        program=_declared(first, first.text),
        count=len(chain.steps),
    )
    results = ((s.strategy, s.result_structural_hash) for s in chain.steps)
    key = ("trajectory", first.structural_hash, *results)
    weakest = max(chain.equality, *(s.equality for s in chain.steps))
    return _several(
        "trajectory", chain.steps, weakest, key, request, plan, trajectory_id=chain.trajectory_id
    )


def negative(wrong: Wrong, plan: RecordPlan) -> Record:
    """The record of a rejected candidate: why it was rejected."""
    step = wrong.step
    request = prompts().tasks.negative.request.format(
        # What the verdict asks for of every candidate.
        contract=prompts().contract(exact=False),
        program=_declared(step, step.text),
        strategy=step.strategy,
        candidate=wrong.text,
    )
    thought = prompts().thoughts.negative.format(
        strategy=step.strategy,
        change=wrong.change,
        right=_right(wrong, plan),
        evidence=evidence(wrong),
        reason=wrong.reason,
        meaning=reasons.REASONS[wrong.reason],
    )
    answer = {"accepted": False, "reason": wrong.reason}
    key = ("negative", step.strategy, step.structural_hash, wrong.structural_hash)
    return _record(
        "negative",
        (step,),
        "rejected",
        key,
        request,
        thought,
        answer,
        plan,
        negative_id=wrong.negative_id,
    )


def _right(wrong: Wrong, plan: RecordPlan) -> str:
    """What the right step has in the place of the mistake, where that is one place; else empty."""
    found = correction(wrong.step.result_text, wrong.text) if plan.program == "leir" else None
    return f" {prompts().thoughts.right.format(right=found)}" if found else ""


def evidence(wrong: Wrong) -> str:
    """What the verdict found, in words: the first violation, else a family of inputs, else itself.

    Of the families that gave the reason, the first is told.
    """
    texts = prompts().thoughts
    if violations := json.loads(wrong.static):
        return texts.static.format(message=_sentence(violations[0]["message"]))
    numeric = json.loads(wrong.numeric)
    for family in numeric["families"]:
        if family["failure"] == wrong.reason:
            return texts.numeric.format(family=family["family"], finding=finding(family))
    return texts.message.format(message=_sentence(numeric["message"]))


def finding(family: Mapping[str, Any]) -> str:
    """What is wrong on one family of inputs, in words, from its evidence in a verdict."""
    match family["failure"]:
        case reasons.MATHEMATICS:
            return (
                f"in binary64 the outputs differ by {_number(family['difference'])} of their size."
            )
        case reasons.UNSTABLE:
            return (
                f"the error is {_number(family['candidate_error'])} epsilons, that of the program "
                f"{_number(family['original_error'])}."
            )
        case reasons.NEW_NON_FINITE:
            return f"{family['new_non_finite']} elements overflow or become NaN."
    return _sentence(reasons.REASONS[family["failure"]])


def _number(value: float | str) -> str:
    """Two significant digits; infinities are texts in a verdict's JSON."""
    return value if isinstance(value, str) else f"{value:.2g}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith(".") else f"{text}."


def _declared(step: Candidate, text: str) -> str:
    return f"{step.signature.rstrip()}\n{text}"


def _step(step: Candidate, plan: RecordPlan) -> dict[str, Any]:
    """A step as the answer has it: strategy, site, parameters and result, in order."""
    return {
        "strategy": step.strategy,
        "site": ".".join(str(i + 1) for i in step.site),
        "parameters": json.loads(step.parameters),
        plan.program: step.result_text,
    }


def _several(
    task: str,
    steps: Sequence[Candidate],
    equality: str,
    key: Hashable,
    request: str,
    plan: RecordPlan,
    trajectory_id: str | None = None,
) -> Record:
    """A record whose answer is a list of steps, each with its own reasoning."""
    thoughts = [
        prompts().thoughts.step.format(
            number=n, count=len(steps), strategy=s.strategy, thought=s.reasoning_text.strip()
        )
        for n, s in enumerate(steps, 1)
    ]
    answer = {"steps": [_step(s, plan) for s in steps]}
    return _record(
        task,
        tuple(steps),
        equality,
        key,
        request,
        "\n\n".join(thoughts),
        answer,
        plan,
        trajectory_id=trajectory_id,
    )


@cache
def _system(task: str, language: str, reasoning: bool) -> tuple[str, int]:
    """The system message of a task, and its tokens."""
    text = prompts().system(task, language, reasoning)
    return text, count(text)


def _record(
    task: str,
    steps: tuple[Candidate, ...],
    equality: str,
    key: Hashable,
    request: str,
    thought: str,
    answer: dict[str, Any],
    plan: RecordPlan,
    trajectory_id: str | None = None,
    negative_id: str | None = None,
) -> Record:
    system, system_tokens = _system(task, plan.program, plan.reasoning)
    before = f"<think>\n{thought}\n</think>\n" if plan.reasoning else ""
    reply = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    messages = (
        Message("system", system),
        Message("user", request),
        Message("assistant", f"{before}{reply}"),
    )
    return Record(
        record_id=record_id([s.step_id for s in steps], task, [m.content for m in messages]),
        task=task,
        steps=steps,
        equality=equality,
        key=key,
        messages=messages,
        prompt_tokens=system_tokens + count(request),
        reasoning_tokens=count(before.rstrip("\n")) if before else 0,
        answer_tokens=count(reply),
        trajectory_id=trajectory_id,
        negative_id=negative_id,
    )
