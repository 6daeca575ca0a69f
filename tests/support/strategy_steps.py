"""The steps of all strategy cases, each taken once per test run."""

from functools import cache

from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.step import Step
from tests.support.strategy_cases import Case, cases_of, step_of


@cache
def step_cases() -> dict[tuple[str, str], Case]:
    """All cases that have a site, by strategy and name, in order."""
    return {
        (name, case.name): case
        for name in strategies()
        for case in cases_of(name)
        if case.site is not None
    }


@cache
def step_named(strategy: str, name: str) -> Step:
    """The step of a case."""
    return step_of(step_cases()[strategy, name])
