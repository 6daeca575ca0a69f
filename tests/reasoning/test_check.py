"""Grounding: true explanations pass, every kind of falsehood is found."""

import re
from dataclasses import replace

import pytest

from steptp_dagster.reasoning.check import (
    Mismatch,
    all_facts,
    fact_mismatches,
    grounding,
    text_mismatches,
)
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.reasoning.style import FULL
from steptp_dagster.strategies.alternatives import compared
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact, Value
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step
from tests.support.strategy_steps import step_cases, step_named

KEYS = list(step_cases())
STEPS = {
    name: compared(strategy(name), step_named(*next(key for key in KEYS if key[0] == name)))
    for name in strategies()
}
TEXTS = {
    name: render_text(strategy(name), step.site, step.explanation, FULL)
    for name, step in STEPS.items()
}
NAMES = list(STEPS)


def _check(step: Step, explanation: Explanation, text: str | None = None) -> tuple[Mismatch, ...]:
    chosen = strategy(step.strategy)
    if text is None:
        text = render_text(chosen, step.site, explanation)
    return grounding(step.before, step.after, chosen, step.site, explanation, text)


def _check_text(step: Step, text: str) -> tuple[Mismatch, ...]:
    chosen = strategy(step.strategy)
    found = text_mismatches(
        step.before, step.after, chosen, step.site, step.explanation, text, FULL
    )
    return tuple(found)


def _kinds(found: tuple[Mismatch, ...]) -> set[str]:
    return {mismatch.kind for mismatch in found}


@pytest.mark.parametrize(("name", "case"), KEYS)
def test_every_fixture_is_grounded(name: str, case: str) -> None:
    step = step_named(name, case)
    assert _check(step, step.explanation) == ()


def _falsified(value: Value) -> Value:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case tuple():
            return (*value[:-1], _falsified(value[-1])) if value else (0,)


def _replaced(explanation: Explanation, old: Fact, new: Fact | None) -> Explanation:
    """The explanation with every occurrence of a fact replaced, or dropped."""

    def change(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        return tuple(x for f in facts for x in ((new,) if f == old else (f,)) if x is not None)

    return Explanation(
        state=change(explanation.state),
        preconditions=tuple(
            Evidence(e.precondition, change(e.facts)) for e in explanation.preconditions
        ),
        decision=change(explanation.decision),
        transition=change(explanation.transition),
        soundness_rule=explanation.soundness_rule,
        soundness=change(explanation.soundness),
        effect=change(explanation.effect),
        alternatives=change(explanation.alternatives),
    )


def _distinct_facts(step: Step) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(all_facts(step.explanation)))


@pytest.mark.parametrize("name", NAMES)
def test_a_false_value_is_found_by_derivation_alone(name: str) -> None:
    step = STEPS[name]
    for fact in _distinct_facts(step):
        lie = replace(fact, value=_falsified(fact.value))
        found = tuple(fact_mismatches((lie,), step.before, step.after))
        assert _kinds(found) == {"value"}, fact
        assert found[0].fact == lie


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_argument_is_found(name: str) -> None:
    step = STEPS[name]
    for fact in _distinct_facts(step):
        for i, argument in enumerate(fact.arguments):
            other = (*fact.arguments[:i], _falsified(argument), *fact.arguments[i + 1 :])
            lie = replace(fact, arguments=other)
            told = replace(step, explanation=_replaced(step.explanation, fact, lie))
            by_facts = tuple(fact_mismatches((lie,), step.before, step.after))
            assert by_facts or _check_text(told, TEXTS[name]), (fact, other)


@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_fact_is_found(name: str) -> None:
    step = STEPS[name]
    for fact in _distinct_facts(step):
        told = replace(step, explanation=_replaced(step.explanation, fact, None))
        assert "text-differs" in _kinds(_check_text(told, TEXTS[name])), fact


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_number_in_the_text_is_found(name: str) -> None:
    step, text = STEPS[name], TEXTS[name]
    for match in re.finditer(r"\d+", text):
        forged = f"{text[: match.start()]}{int(match[0]) + 7919}{text[match.end() :]}"
        kinds = _kinds(_check_text(step, forged))
        assert kinds & {"free-number", "free-statement", "free-code"}, match[0]
        assert "text-differs" in kinds


@pytest.mark.parametrize("name", NAMES)
def test_changed_code_in_the_text_is_found(name: str) -> None:
    step, text = STEPS[name], TEXTS[name]
    for match in re.finditer(r"`([^`]*)`", text):
        forged = f"{text[: match.start(1)]}{match[1]}q{text[match.end(1) :]}"
        assert "free-code" in _kinds(_check_text(step, forged)), match[1]


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (" It is 31.5 times as fast.", "free-number"),
        (" See statement 9.9.", "free-statement"),
        (" See statements 1 and 9.9.", "free-statement"),
        (" The tensor `Qq` is not touched.", "free-code"),
        (" The tensor D is not touched.", "free-name"),
        (" Nothing else happens.", "text-differs"),
    ],
)
def test_a_claim_from_nowhere_is_found(claim: str, kind: str) -> None:
    step = STEPS["loop_split"]
    found = _check(step, step.explanation, TEXTS["loop_split"] + claim)
    assert kind in _kinds(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_precondition_must_be_shown(name: str) -> None:
    step = STEPS[name]
    shown = step.explanation.preconditions
    for i, evidence in enumerate(shown):
        fewer = replace(step.explanation, preconditions=(*shown[:i], *shown[i + 1 :]))
        assert "missing-precondition" in _kinds(_check(step, fewer))
        bare = Evidence(evidence.precondition, ())
        empty = replace(step.explanation, preconditions=(*shown[:i], bare, *shown[i + 1 :]))
        assert "empty-evidence" in _kinds(_check(step, empty))
    more = replace(
        step.explanation,
        preconditions=(*shown, Evidence("moon-is-full", shown[0].facts)),
    )
    assert "unexpected-precondition" in _kinds(_check(step, more))


@pytest.mark.parametrize("name", NAMES)
def test_the_changed_nests_must_be_quoted(name: str) -> None:
    step = STEPS[name]
    quotes = [f for f in step.explanation.transition if f.kind == "statement_text"]
    assert quotes
    for fact in quotes:
        less = tuple(f for f in step.explanation.transition if f != fact)
        found = _check(step, replace(step.explanation, transition=less))
        assert "transition-incomplete" in _kinds(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_cost_must_be_stated(name: str) -> None:
    step = STEPS[name]
    for fact in (f for f in step.explanation.effect if f.kind == "cost"):
        less = tuple(f for f in step.explanation.effect if f != fact)
        found = _check(step, replace(step.explanation, effect=less))
        assert "effect-incomplete" in _kinds(found)


def test_numbers_that_the_site_states_must_be_shown_in_the_decision() -> None:
    step = STEPS["loop_split"]
    found = _check(step, replace(step.explanation, decision=()))
    assert "parameter-not-shown" in _kinds(found)


def test_an_explanation_starts_from_something() -> None:
    step = STEPS["loop_split"]
    assert "empty-state" in _kinds(_check(step, replace(step.explanation, state=())))


def test_an_unknown_rule_is_found() -> None:
    step = STEPS["loop_split"]
    forged = replace(step.explanation, soundness_rule="because-i-say-so")
    assert "unknown-rule" in _kinds(_check(step, forged, TEXTS["loop_split"]))


def test_an_unknown_kind_is_a_mismatch_and_no_crash() -> None:
    step = STEPS["loop_split"]
    forged = replace(step.explanation, state=(Fact("phase_of_moon", "before", (), 1),))
    kinds = _kinds(_check(step, forged, TEXTS["loop_split"]))
    assert {"underivable", "text-differs"} <= kinds


def test_another_programs_explanation_does_not_pass() -> None:
    steps = [step_named(*key) for key in KEYS if key[0] == "loop_split"]
    first, second = steps[0], next(s for s in steps[1:] if s.before != steps[0].before)
    chosen = strategy("loop_split")
    text = render_text(chosen, first.site, first.explanation)
    found = grounding(second.before, second.after, chosen, first.site, first.explanation, text)
    assert "value" in _kinds(found) or "underivable" in _kinds(found)


def test_true_and_one_are_told_apart() -> None:
    step = STEPS["loop_split"]
    fact = next(f for f in all_facts(step.explanation) if f.value is True)
    lie = replace(fact, value=1)
    found = _check(step, _replaced(step.explanation, fact, lie), TEXTS["loop_split"])
    assert any(m.kind == "value" and m.fact == lie for m in found)
