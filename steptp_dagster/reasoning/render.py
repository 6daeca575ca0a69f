"""Writing an explanation down: as English text, and as JSON-able data.

The text is a chain of thought: the state seen, what has to hold and why it does, the decision and
what else there was, which statements change, why the meaning stays, what is gained. It is a
function of site, explanation and style alone; among equivalent wordings the explanation chooses.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from steptp_dagster.reasoning.conditions import OBVIOUS, condition
from steptp_dagster.reasoning.phrases import FIGURES, phrase
from steptp_dagster.reasoning.style import (
    BRIEF,
    DECISIONS,
    EFFECTS,
    MEANINGS,
    OPENINGS,
    OTHERS,
    QUESTIONS,
    Chooser,
    Style,
)
from steptp_dagster.reasoning.wording import code, listed, plain, sentence, statement
from steptp_dagster.strategies.base import Site, Strategy
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact, Value
from steptp_dagster.strategies.soundness import RULES

#: What a phrase starts with where it is about a loop, a statement or a tensor.
_SUBJECT: Final = re.compile(r"((?:loop `\w+` at )?statement [\d.]+|`\w+`|the step) ")
#: Kinds of facts about the letters of a law.
_LETTERS: Final = ("stands_for", "stands_for_minus")
#: What the text says of the values, by the numerics of the rule.
EQUALITY_SENTENCES: Final = {
    "exact": "The values are equal bit for bit.",
    "reassociated": "The values are equal up to rounding.",
}


def render_text(
    strategy: Strategy, site: Site, explanation: Explanation, style: Style = BRIEF
) -> str:
    """The explanation as English paragraphs, LEIR in backticks.

    Raises KeyError for a kind of fact without a phrase or an unknown soundness rule.
    """
    choose = Chooser(site, explanation)
    rule = RULES[explanation.soundness_rule]
    names = {"name": code(strategy.name), "place": statement(site.path)}
    opening, question = choose.pick(OPENINGS), choose.pick(QUESTIONS).format(**names)
    values = [f"{name} = {plain(value)}" for name, value in site.parameters]
    chosen = f" with {', '.join(values)}" if values else ""
    decision = choose.pick(DECISIONS).format(**names, chosen=chosen)
    told: dict[Fact, None] = {}
    state = _new(explanation.state, told, style.facts)
    conditions = _conditions(explanation.preconditions, told, choose, style)
    meaning = _told((rule.because, *_clauses(_new(explanation.soundness, told, style.proofs))))
    paragraphs = (
        f"{opening} {_facts(state)}",
        "\n".join((question, *conditions)),
        " ".join(
            filter(
                None,
                (
                    decision,
                    _decided(explanation.decision, site, told, style),
                    _alternatives(explanation.alternatives, style),
                ),
            )
        ),
        _transition(explanation.transition, style),
        f"{choose.pick(MEANINGS)} {meaning} {EQUALITY_SENTENCES[rule.numerics]}",
        f"{choose.pick(EFFECTS)} {_effect(explanation.effect, style)}",
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
        "alternatives": _fact_list(explanation.alternatives),
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


def _new(facts: Iterable[Fact], told: dict[Fact, None], most: int) -> list[Fact]:
    """The first ``most`` facts that were not told yet; from now on they are."""
    fresh = [fact for fact in dict.fromkeys(facts) if fact not in told][:most]
    told.update(dict.fromkeys(fresh))
    return fresh


def _clauses(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Facts as clauses, in runs of one side; a run about the result says so once."""
    clauses: list[str] = []
    for is_after, run in groupby(facts, key=lambda fact: fact.side == "after"):
        told = _joined(_phrases(run))
        clauses.append(f"after the step, {'; '.join(told)}" if is_after else "; ".join(told))
    return tuple(clauses)


def _phrases(facts: Iterable[Fact]) -> list[str]:
    """The clauses of facts; what is said alike of several values in a row is said once."""
    clauses: list[str] = []
    for said, run in groupby(facts, key=_said_of_value):
        own = list(run)
        if said is None or len(own) == 1:
            clauses += map(phrase, own)
            continue
        texts = listed(code(str(fact.arguments[1])) for fact in own)
        plural = said.replace(" is ", " are ", 1).replace(" lies ", " lie ", 1)
        clauses.append(f"{texts}{plural}")
    return clauses


def _said_of_value(fact: Fact) -> str | None:
    """What a fact says of a value, without the value; None for other facts."""
    if fact.kind not in ("new_bound", "power_bound", "value_is"):
        return None
    return phrase(fact).removeprefix(code(str(fact.arguments[1])))


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


def _conditions(
    evidence: Sequence[Evidence], told: dict[Fact, None], choose: Chooser, style: Style
) -> list[str]:
    """A line for each precondition that is argued, and one that names the others."""
    start = choose.number(max(1, len(evidence)))
    turned = sorted(
        (*range(start, len(evidence)), *range(start)),
        key=lambda place: evidence[place].precondition in OBVIOUS,
    )
    lines: list[tuple[int, str]] = []
    named: list[str] = []
    for place in turned:
        words = condition(evidence[place].precondition)
        known = all(fact in told for fact in evidence[place].facts)
        if len(lines) == style.conditions or known:
            named.append(words.holds)
            continue
        fresh = _new(evidence[place].facts, told, style.proofs)
        lesson = f"; otherwise {words.otherwise}" if len(lines) < style.lessons else ""
        shown = "; ".join(_clauses(fresh))
        lines.append((place, f"- {sentence(f'{words.holds}: {shown}{lesson}')}"))
    ordered = [line for _, line in sorted(lines)]
    if named:
        distinct = list(dict.fromkeys(named))
        found = "; ".join(distinct[: style.named])
        more = "; and so on" if len(distinct) > style.named else ""
        ordered.append(f"{choose.pick(OTHERS)} {found}{more}.")
    return ordered


def _decided(facts: tuple[Fact, ...], site: Site, told: dict[Fact, None], style: Style) -> str:
    """What the parameters lead to; a law in one sentence with what its letters stand for."""
    law = next((fact for fact in facts if fact.kind == "law"), None)
    letters = _new((f for f in facts if f.kind in _LETTERS), told, style.letters)
    if law is None or not letters:
        return _facts(_new(facts, told, style.proofs))
    named = listed(
        _letters(letters, [value for name, value in site.parameters if name == "choice"])
    )
    others = (fact for fact in facts if fact.kind not in ("law", *_LETTERS))
    told[law] = None
    return _told((f"{phrase(law)}, where {named}", *_clauses(_new(others, told, style.proofs))))


def _letters(letters: Iterable[Fact], chosen: Sequence[Value]) -> Iterator[str]:
    """What letters stand for, the verb once in a row; what was chosen is quoted already."""
    verb, choice = "stands for", "is the choice"
    for fact in letters:
        _, text, letter = fact.arguments
        minus = "minus " if fact.kind == "stands_for_minus" else ""
        if text in chosen and not minus:
            yield f"{code(str(letter))} {choice}"
            verb, choice = "stands for", "is the choice too"
        else:
            yield f"{code(str(letter))} {verb} {minus}{code(str(text))}"
            verb = "for"


def _alternatives(facts: tuple[Fact, ...], style: Style) -> str:
    """What there was to choose from, the figure of the other choice beside this one's."""
    clauses = []
    own = {f.arguments[0]: f.value for f in facts if f.kind == "cost"}
    for fact in facts:
        if fact.kind == "sites" and (style.unchanged or fact.value != 1):
            clauses.append(phrase(fact))
        elif fact.kind == "alternative":
            figure = fact.arguments[-1]
            instead = f" instead of {own[figure]}" if figure in own else ""
            clauses.append(f"{phrase(fact)}{instead}")
    return _told(clauses)


def _transition(facts: tuple[Fact, ...], style: Style) -> str:
    """Which nests were replaced by which; quoted line by line where they are short."""
    other = tuple(f for f in facts if f.kind != "statement_text")
    texts = [f for f in facts if f.kind == "statement_text"]
    if sum(len(str(f.value)) for f in texts) > style.quoted:
        return _facts(other)
    old = [code(str(f.value)) for f in texts if f.side == "before"]
    new = [code(str(f.value)) for f in texts if f.side == "after"]
    return "\n".join((_facts(other), "Before:", *old, "After:", *new))


def _effect(facts: tuple[Fact, ...], style: Style) -> str:
    """The first figures of the list that changed, and other facts."""
    values = {(f.kind, f.side, f.arguments): f.value for f in facts}
    clauses: list[str] = []
    for fact in facts:
        first = values.get((fact.kind, "before", fact.arguments))
        second = values.get((fact.kind, "after", fact.arguments))
        if fact.kind != "cost" or first is None or second is None:
            clauses.append(phrase(fact))
        elif fact.side == "before" and (style.unchanged or first != second):
            change = f"{first} to {second}" if first != second else f"still {first}"
            clauses.append(f"{FIGURES[str(fact.arguments[0])]}: {change}")
    return sentence("; ".join(clauses[: style.figures]) or "no count changes")
