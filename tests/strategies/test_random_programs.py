"""Every strategy at sites of random valid programs and of the tricky programs of the corpus."""

import random
from collections.abc import Iterator

import pytest

from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.corpus import VALID
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs, random_program

#: Sites that are taken per program and strategy; the slow test takes all of them.
TAKEN = 3
NAMES = tuple(strategies())


def _programs(seeds: range) -> Iterator[tuple[str, SignedProgram]]:
    yield from ((case.name, case.signed) for case in VALID)
    yield from ((f"seed {seed}", random_program(seed)) for seed in seeds)


def _chosen(sites: tuple[Site, ...], name: str, most: int) -> list[Site]:
    if len(sites) <= most:
        return list(sites)
    return random.Random(name).sample(sites, most)


def _check(name: str, seeds: range, most: int) -> int:
    """Take steps and compare what they compute; the number of steps taken."""
    chosen, taken = strategy(name), 0
    for label, program in _programs(seeds):
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
    assert _check(name, range(40), TAKEN) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_steps_keep_the_meaning(name: str) -> None:
    assert _check(name, range(1000, 1300), 10_000) > 0


@pytest.mark.parametrize("name", NAMES)
def test_surveys_repeat_and_survive_their_own_results(name: str) -> None:
    chosen, steps = strategy(name), 0
    for label, program in _programs(range(100, 115)):
        survey = chosen.survey(program)
        assert survey == chosen.survey(program)
        for site in _chosen(survey.sites, label, 1):
            result = chosen.apply(program, site)
            assert chosen.apply(program, site) == result
            for other in strategies().values():
                other.survey(result)
            steps += 1
    assert steps > 0
