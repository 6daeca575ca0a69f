"""Records in chat form: the program and the contract, then reasoning and a machine-read answer."""

import json
from dataclasses import dataclass

from steptp_dagster.dataset.candidates import Candidate
from steptp_dagster.dataset.ids import record_id
from steptp_dagster.dataset.tokens import count

#: Raised whenever the wording of prompts or answers changes; enters every record's id.
PROMPT_VERSION = "1"
TASK = "single"
#: Loss weight of the system, user and assistant message: only the answer is learned.
WEIGHTS = (0.0, 0.0, 1.0)

SYSTEM = """\
You optimize tensor programs written in LEIR, one verified step at a time.

LEIR is a text of loop nests over equations. KIND^{extent}_{index=start} is a loop; kinds: L \
serial, P parallel, V vectorised, U unrolled, B bound to the GPU axis that its index names (tx, \
ty, tz threads; bx, by, bz blocks). NAME^{dtype,scope}_{subscripts} is a tensor element; scopes: g \
global, s shared by a block, l local to a thread. Statements stand in [ ] and end with ; and an \
equation may end with : and a guard. A sum, product, maximum or minimum that reads its own fresh \
target starts from 0, 1, the lowest or the highest value. Top-level nests run in order, each as a \
kernel. Lines that start with # declare the known variables.

A step applies one strategy at one site. The new program must be valid LEIR with the same known \
variables (names, dtypes, shapes; never renamed, reshaped or moved to another scope), must not \
write inputs, parameters or constants, and must give the same outputs for every input: equal, or \
equal up to the rounding of reordered floating-point operations, and no less stable.

Reason between <think> and </think>. Then answer with one JSON object: "strategy", "site" (the \
statement, counted from 1 at each level), "parameters", and "leir", the whole new program \
without the declarations."""

USER = """\
Take one optimization step from this program.

```
{program}
```"""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Record:
    """A candidate as training text, with token counts."""

    record_id: str
    candidate: Candidate
    messages: tuple[Message, Message, Message]
    prompt_tokens: int
    reasoning_tokens: int
    answer_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens of prompt, reasoning and answer together."""
        return self.prompt_tokens + self.reasoning_tokens + self.answer_tokens


def answer(candidate: Candidate) -> str:
    """The answer after the reasoning: JSON of strategy, site, parameters and result, in order."""
    data = {
        "strategy": candidate.strategy,
        "site": ".".join(str(i + 1) for i in candidate.site),
        "parameters": json.loads(candidate.parameters),
        "leir": candidate.result_text,
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def make(candidate: Candidate) -> Record:
    """The record of one candidate."""
    program = f"{candidate.signature.rstrip()}\n{candidate.text}"
    prompt = USER.format(program=program)
    thought = f"<think>\n{candidate.reasoning_text.strip()}\n</think>"
    reply = answer(candidate)
    return Record(
        record_id=record_id([candidate.step_id], TASK, PROMPT_VERSION),
        candidate=candidate,
        messages=(
            Message("system", SYSTEM),
            Message("user", prompt),
            Message("assistant", f"{thought}\n{reply}"),
        ),
        prompt_tokens=count(SYSTEM) + count(prompt),
        reasoning_tokens=count(thought),
        answer_tokens=count(reply),
    )


class BadAnswer(ValueError):
    """An answer that is not reasoning followed by the JSON object asked for."""


def read_answer(text: str) -> tuple[str, dict[str, object]]:
    """Reasoning and JSON object of an assistant message. Raises BadAnswer."""
    head, found, rest = text.partition("</think>")
    if not found or not head.startswith("<think>"):
        raise BadAnswer("expected <think> ... </think> before the answer")
    try:
        data = json.loads(rest)
    except json.JSONDecodeError as error:
        raise BadAnswer(f"expected one JSON object after </think>: {error}") from error
    wanted = {"strategy", "site", "parameters", "leir"}
    if not isinstance(data, dict) or data.keys() != wanted:
        raise BadAnswer(f"expected an object with {', '.join(sorted(wanted))}")
    return head.removeprefix("<think>").strip(), data
