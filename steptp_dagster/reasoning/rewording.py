"""Texts in other words, by any OpenAI-compatible endpoint, kept only if they say the same facts.

A model may put the text of a step more fluently; it may not add, drop or change a fact. The new
text must hold every name, piece of LEIR, statement and number of the original, nothing that no
fact holds, and the same sentence on how equal the values are. What words say between the facts
cannot be checked by a machine: the original always stays beside the new text.
"""

import json
import re
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass
from typing import Final

from steptp_dagster.reasoning.check import Mismatch, text_mismatches
from steptp_dagster.reasoning.render import EQUALITY_SENTENCES
from steptp_dagster.reasoning.style import BRIEF, Style
from steptp_dagster.strategies.base import Strategy
from steptp_dagster.strategies.step import Step

_CODE: Final = re.compile(r"`[^`]*`")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)*")
#: A new text may be this many times as long as the original.
LONGEST: Final = 2.0
INSTRUCTION: Final = (
    "Rewrite the following reasoning about one step of a program transformation as fluent English"
    " for someone who learns to optimise tensor programs. Keep every name and piece of code in"
    " backticks exactly as it is, keep every statement number and every figure, keep the sentence"
    " that begins with 'The values are equal' word for word, and add no fact, name or number."
    " Answer with the rewritten text only."
)


class EndpointError(RuntimeError):
    """The endpoint did not give a text; the message says why and what to check."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask: the base URL (ending before ``/chat/completions``), model, key, seconds."""

    url: str
    model: str
    key: str = ""
    timeout_s: float = 60.0

    def ask(self, text: str) -> str:
        """The text in other words. Raises EndpointError."""
        body = {
            "model": self.model,
            "temperature": 0,
            "messages": [
                {"role": "system", "content": INSTRUCTION},
                {"role": "user", "content": text},
            ],
        }
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        where = f"{self.url.rstrip('/')}/chat/completions"
        if not where.startswith(("http://", "https://")):
            raise EndpointError(f"{self.url}: not an http(s) URL")
        request = urllib.request.Request(where, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:
                told = json.load(answer)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as error:
            raise EndpointError(f"{where}: {error.code} {error.reason}") from error
        except (OSError, ValueError) as error:
            raise EndpointError(f"{where}: {error}") from error
        except (KeyError, IndexError, TypeError) as error:
            raise EndpointError(f"{where}: the answer has no choices[0].message.content") from error
        if not isinstance(told, str) or not told.strip():
            raise EndpointError(f"{where}: the answer is empty")
        return told.strip()


def objections(
    strategy: Strategy, step: Step, original: str, reworded: str, style: Style = BRIEF
) -> tuple[Mismatch, ...]:
    """What keeps a new text from standing in for the original; nothing: it may.

    Kinds: those of a text that says too much (``free-number``, ``free-code``, ...), and
    ``dropped-code``, ``dropped-number``, ``equality-changed``, ``too-long``.
    """
    found = [
        m
        for m in text_mismatches(
            step.before, step.after, strategy, step.site, step.explanation, reworded, style
        )
        if m.kind != "text-differs"
    ]
    found += [
        Mismatch("dropped-code", f"{span} is gone")
        for span in dict.fromkeys(_CODE.findall(original))
        if span not in reworded
    ]
    numbers = Counter(_NUMBER.findall(_CODE.sub(" ", original)))
    numbers.subtract(_NUMBER.findall(_CODE.sub(" ", reworded)))
    found += [
        Mismatch("dropped-number", f"{number} stands there less often")
        for number, missing in numbers.items()
        if missing > 0
    ]
    for sentence in EQUALITY_SENTENCES.values():
        if (sentence in original) != (sentence in reworded):
            found.append(Mismatch("equality-changed", f"{sentence!r} came or went"))
    if len(reworded) > LONGEST * len(original):
        found.append(Mismatch("too-long", f"{len(reworded)} characters for {len(original)}"))
    return tuple(found)
