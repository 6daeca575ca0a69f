"""Writing an explanation down: as English text, and as JSON-able data.

The text is a chain of thought: the state seen, what could stand against the step and why it does
not, the decision, the statements before and after, why the meaning stays, what is gained. It is
a function of site and explanation alone; among equivalent wordings the site chooses.
"""

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from steptp_dagster.reasoning.phrases import FIGURES, phrase
from steptp_dagster.reasoning.wording import code, listed, plain, sentence, statement
from steptp_dagster.strategies.base import Site, Strategy
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact, Value
from steptp_dagster.strategies.soundness import RULES

_OPENINGS: Final = (
    "What the program shows:",
    "Look at what is there:",
    "The relevant part of the program:",
)
_QUESTIONS: Final = (
    "Does {name} apply at {place}? What could forbid it:",
    "Before using {name} at {place}, rule out what would make it illegal:",
    "Is {name} legal at {place}? Check its preconditions:",
)
_MEANINGS: Final = (
    "Why the meaning stays:",
    "Why this computes the same:",
    "Why the result stays the same:",
)
#: What a phrase starts with where it is about a loop, a statement or a tensor.
_SUBJECT: Final = re.compile(r"((?:loop `\w+` at )?statement [\d.]+|`\w+`) ")
_VALUES: Final = {
    "exact": "The values are equal bit for bit.",
    "reassociated": "The values are equal up to rounding.",
}


def render_text(strategy: Strategy, site: Site, explanation: Explanation) -> str:
    """The explanation as English paragraphs, a few hundred tokens, LEIR in backticks.

    Raises KeyError for a kind of fact without a phrase or an unknown soundness rule.
    """
    choose = zlib.crc32(f"{site.strategy} {site.describe()}".encode())
    rule = RULES[explanation.soundness_rule]
    question = _pick(_QUESTIONS, choose // 3).format(
        name=code(strategy.name), place=statement(site.path)
    )
    meaning = _told((f"{rule.because}", *_clauses(explanation.soundness)))
    paragraphs = (
        f"{_pick(_OPENINGS, choose)} {_facts(explanation.state)}",
        "\n".join((question, *(_precondition(e) for e in explanation.preconditions))),
        f"Decision: {_decision(strategy, site)} {_facts(explanation.decision)}".rstrip(),
        _transition(explanation.transition),
        f"{_pick(_MEANINGS, choose // 9)} {meaning} {_VALUES[rule.numerics]}",
        f"Expected effect, before to after, guards counted as true: {_effect(explanation.effect)}",
    )
    return "\n\n".join(paragraphs)


def render_json(strategy: Strategy, site: Site, explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain dicts, lists, strings and numbers, keys in a fixed order."""
    rule = RULES[explanation.soundness_rule]
    return {
        "strategy": strategy.name,
        "level": strategy.level,
        "site": {
            "path": list(site.path),
            "parameters": {name: _plain_value(value) for name, value in site.parameters},
        },
        "state": _fact_list(explanation.state),
        "preconditions": [
            {"rules_out": e.precondition, "facts": _fact_list(e.facts)}
            for e in explanation.preconditions
        ],
        "decision": _fact_list(explanation.decision),
        "transition": _fact_list(explanation.transition),
        "soundness": {
            "rule": rule.name,
            "numerics": rule.numerics,
            "because": rule.because,
            "facts": _fact_list(explanation.soundness),
        },
        "effect": _fact_list(explanation.effect),
    }


def _plain_value(value: Value) -> Any:  # noqa: ANN401 - JSON has no narrower type
    return [_plain_value(item) for item in value] if isinstance(value, tuple) else value


def _fact_list(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    return [
        {
            "kind": fact.kind,
            "side": fact.side,
            "arguments": [_plain_value(a) for a in fact.arguments],
            "value": _plain_value(fact.value),
        }
        for fact in facts
    ]


def _pick(choices: Sequence[str], choose: int) -> str:
    return choices[choose % len(choices)]


def _clauses(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Facts as clauses, in runs of one side; a run about the result says so once."""
    clauses: list[str] = []
    for is_after, run in groupby(facts, key=lambda fact: fact.side == "after"):
        told = _joined([phrase(fact) for fact in run])
        clauses.append(f"after the step, {'; '.join(told)}" if is_after else "; ".join(told))
    return tuple(clauses)


def _joined(phrases: Sequence[str]) -> list[str]:
    """Phrases in a row about one subject become one clause: ``X is this and does that``."""
    told: list[str] = []
    for subject, run in groupby(phrases, key=_subject):
        own = list(run)
        if subject is None or len(own) == 1:
            told.extend(own)
        else:
            rest = dict.fromkeys(text[len(subject) + 1 :] for text in own)
            told.append(f"{subject} {listed(rest)}")
    return told


def _subject(text: str) -> str | None:
    found = _SUBJECT.match(text)
    return None if found is None else found[1]


def _told(clauses: Iterable[str]) -> str:
    return " ".join(sentence(clause) for clause in clauses)


def _facts(facts: Iterable[Fact]) -> str:
    return _told(_clauses(facts))


def _precondition(evidence: Evidence) -> str:
    question = evidence.precondition.replace("-", " ")
    return f"- {question}? No: {'; '.join(_clauses(evidence.facts))}."


def _decision(strategy: Strategy, site: Site) -> str:
    values = [f"{name} = {plain(value)}" for name, value in site.parameters]
    chosen = f" with {', '.join(values)}" if values else ""
    return f"apply {code(strategy.name)} at {statement(site.path)}{chosen}."


def _transition(facts: tuple[Fact, ...]) -> str:
    """The replaced nests and the new ones, each on a line of its own."""
    other = tuple(f for f in facts if f.kind != "statement_text")
    old = [code(str(f.value)) for f in facts if f.kind == "statement_text" and f.side == "before"]
    new = [code(str(f.value)) for f in facts if f.kind == "statement_text" and f.side == "after"]
    return "\n".join((_facts(other), "Before:", *old, "After:", *new))


def _effect(facts: tuple[Fact, ...]) -> str:
    """Figures that stand on both sides as one clause, all other facts as they are."""
    values = {(f.kind, f.side, f.arguments): f.value for f in facts}
    clauses: list[str] = []
    for fact in facts:
        first = values.get((fact.kind, "before", fact.arguments))
        second = values.get((fact.kind, "after", fact.arguments))
        if fact.kind != "cost" or first is None or second is None:
            clauses.append(phrase(fact))
        elif fact.side == "before":
            figure = FIGURES[str(fact.arguments[0])]
            clauses.append(
                f"{figure}: still {first}" if first == second else f"{figure}: {first} to {second}"
            )
    return sentence("; ".join(clauses))
