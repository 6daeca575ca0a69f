"""Every case of every strategy: text, validity, explanation, and both sides executed."""

from dataclasses import replace

import pytest

from steptp_dagster.leir.ast import Binary, Int
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import equations, replace_at
from steptp_dagster.reasoning.check import grounding
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.strategies.registry import strategies, strategy
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs
from tests.support.strategy_cases import (
    Case,
    all_cases,
    cases_of,
    expected_text,
    refusals_of,
    step_of,
)

CASES = all_cases()
STEPS = [case for case in CASES if case.site is not None]


def _id(case: Case) -> str:
    return f"{case.strategy}-{case.name.replace(' ', '_')}"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_before_is_valid(case: Case) -> None:
    assert check(case.before) == ()


@pytest.mark.parametrize("case", STEPS, ids=_id)
def test_result_is_the_golden_text(case: Case) -> None:
    step = step_of(case)
    assert to_text(step.after.program) == expected_text(case)
    assert step.numerics == case.numerics


@pytest.mark.parametrize("case", STEPS, ids=_id)
def test_both_sides_compute_the_same(case: Case) -> None:
    step = step_of(case)
    for seed in (0, 1):
        inputs = random_inputs(case.before, seed)
        assert_equal_outputs(step.before, step.after, inputs, step.numerics)


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_survey_is_as_stated_and_repeats(case: Case) -> None:
    chosen = strategy(case.strategy)
    survey = chosen.survey(case.before)
    assert survey == chosen.survey(case.before)
    assert len(set(survey.sites)) == len(survey.sites)
    if case.sites is not None:
        assert len(survey.sites) == case.sites, [s.describe() for s in survey.sites]
    found = refusals_of(chosen, case.before)
    for refusal in case.refused:
        assert refusal in found


@pytest.mark.parametrize("case", STEPS, ids=_id)
def test_explanation_is_grounded(case: Case) -> None:
    step = step_of(case)
    chosen = strategy(case.strategy)
    text = render_text(chosen, step.site, step.explanation)
    found = grounding(step.before, step.after, chosen, step.site, step.explanation, text)
    assert found == ()


def test_the_comparison_sees_a_difference() -> None:
    step = step_of(STEPS[0])
    inputs = random_inputs(step.before, 0)
    target = next(equations(step.after.program))
    wrong = replace(target.equation, value=Binary("+", target.equation.value, Int(1)))
    program = replace_at(step.after.program, target.path, wrong)
    changed = SignedProgram(program, step.after.signature)
    with pytest.raises(AssertionError):
        assert_equal_outputs(step.before, changed, inputs, step.numerics)


def test_every_strategy_has_an_example_in_its_docstring() -> None:
    for name in strategies():
        assert cases_of(name)[0].name == "example"
