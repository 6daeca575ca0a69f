"""Every strategy at sites of random valid programs, of the corpus, and of all fixtures."""

import itertools
import random
from collections.abc import Iterator

import pytest

from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.corpus import VALID
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs, random_program
from tests.support.strategy_cases import all_cases
from tests.support.twins import random_twins

#: Sites taken per program, and one program in how many; the slow test takes all of all.
TAKEN = 2
THINNED = 3
#: Programs that run longer (fixtures about limits) are left to their own tests.
MOST_ITERATIONS = 10_000
NAMES = tuple(strategies())


def _programs(name: str, seeds: range, step: int) -> Iterator[tuple[str, SignedProgram]]:
    """Every ``step``-th program, starting at a place of the strategy's own."""
    return itertools.islice(_all_programs(seeds), NAMES.index(name) % step, None, step)


def _all_programs(seeds: range) -> Iterator[tuple[str, SignedProgram]]:
    yield from ((case.name, case.signed) for case in VALID)
    yield from (
        (f"{case.strategy}, {case.name}", case.before)
        for case in all_cases()
        if cost(case.before).iterations <= MOST_ITERATIONS
    )
    yield from ((f"seed {seed}", random_program(seed)) for seed in seeds)
    for seed in seeds:
        if not check(twins := random_twins(seed)):
            yield f"twins {seed}", twins


def _chosen(sites: tuple[Site, ...], name: str, most: int) -> list[Site]:
    if len(sites) <= most:
        return list(sites)
    return random.Random(name).sample(sites, most)


def _check(name: str, seeds: range, most: int, every: int) -> int:
    """Take steps and compare what they compute; the number of steps taken."""
    chosen, taken = strategy(name), 0
    for label, program in _programs(name, seeds, every):
        survey = chosen.survey(program)
        inputs = random_inputs(program, 0)
        for site in _chosen(survey.sites, label, most):
            step = take(chosen, program, site)
            where = f"{label}, {site.describe()}\n{to_text(program.program)}"
            assert isinstance(step, Step), f"{where}\n{step}"
            try:
                assert_equal_outputs(program, step.after, inputs, step.numerics)
            except AssertionError as error:
                raise AssertionError(f"{where}\n{to_text(step.after.program)}") from error
            taken += 1
    return taken


@pytest.mark.parametrize("name", NAMES)
def test_steps_keep_the_meaning(name: str) -> None:
    assert _check(name, range(45), TAKEN, THINNED) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_steps_keep_the_meaning(name: str) -> None:
    assert _check(name, range(1000, 1300), 10_000, 1) > 0


@pytest.mark.parametrize("name", NAMES)
def test_surveys_repeat_and_survive_their_own_results(name: str) -> None:
    chosen, steps = strategy(name), 0
    others = tuple(strategies().values())
    for label, program in _programs(name, range(100, 106), THINNED):
        survey = chosen.survey(program)
        assert survey == chosen.survey(program), label
        for site in _chosen(survey.sites, label, 1):
            result = chosen.apply(program, site)
            assert chosen.apply(program, site) == result
            others[steps % len(others)].survey(result)
            steps += 1
    assert steps > 0
