"""Programs of the library that need the rarer algebraic strategies, in the form people write."""

import random

import pytest

from steptp_dagster.dataset.inlined import inlined
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.translate.translate import TranslationRefusal, translate
from steptp_dagster.verify.screen import screen
from steptp_dagster.verify.verdict import verify
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs

#: A strategy, a program whose formula in one piece has a site for it, and the rule.
NEEDED = (
    ("apart", "PearsonResiduals", "partial-fractions"),
    ("apart", "LomaxSecondMoment", "partial-difference"),
    ("cancellation", "DensityRatio", "cancel-factor"),
    ("cancellation", "SaturationElasticity", "cancel-factor"),
    ("collect", "PolynomialActivation", "collect-terms"),
    ("collect", "ResidualModulation", "collect-neighbours"),
    ("expand_log", "GaussianDivergence", "log-of-quotient"),
    ("factorization", "MinGPTNewGelu", "common-factor"),
    ("logsimp", "LogSumOfProducts", "sum-of-logs"),
    ("powsimp", "ProductKernel", "product-of-exponentials"),
)


def _formula(name: str) -> SignedProgram:
    """The translation at a small shape with its intermediates inlined."""
    source = SOURCES[name]
    built = source.build(source.sample(random.Random(7), 1)[0])
    found = translate(built.module, built.blank(), ranges=built.ranges)
    assert not isinstance(found, TranslationRefusal), str(found)
    assert not screen(found.signed)
    formula = inlined(found.signed, 0)
    assert formula is not None
    return formula


def _steps(strategy_name: str, program: SignedProgram, rule: str) -> list[Step]:
    chosen = strategy(strategy_name)
    sites = [s for s in chosen.survey(program).sites if s.text("rule") == rule]
    taken = [take(chosen, program, site) for site in sites]
    steps = [step for step in taken if isinstance(step, Step)]
    assert len(steps) == len(taken) > 0
    return steps


@pytest.mark.parametrize(("strategy_name", "program", "rule"), NEEDED)
def test_a_natural_program_has_a_site(strategy_name: str, program: str, rule: str) -> None:
    formula = _formula(program)
    for step in _steps(strategy_name, formula, rule):
        for seed in range(2):
            inputs = random_inputs(formula, seed)
            assert_equal_outputs(step.before, step.after, inputs, step.numerics)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy_name", "program", "rule"), NEEDED)
def test_and_the_verdict_accepts_it(strategy_name: str, program: str, rule: str) -> None:
    for step in _steps(strategy_name, _formula(program), rule):
        verdict = verify(step.before, step.after)
        assert verdict.accepted, (verdict.reason, verdict.message)
