"""The cases of the library's strategies (``strategies.cases`` has their form).

``python -m tests.support.strategy_cases NAME`` prints the file of a strategy with every ``after``
filled in anew, for review before it is saved.
"""

import sys
from pathlib import Path

from steptp_dagster.strategies import cases
from steptp_dagster.strategies.cases import (
    Case,
    expected_text,
    filled_in,
    lines,
    read_cases,
    refusals_of,
)
from steptp_dagster.strategies.registry import strategies, strategy
from steptp_dagster.strategies.step import Step

FOLDER = Path(__file__).parents[1] / "fixtures" / "strategies"

__all__ = [
    "FOLDER",
    "Case",
    "all_cases",
    "cases_of",
    "expected_text",
    "lines",
    "read_cases",
    "refusals_of",
    "step_of",
]


def cases_of(name: str) -> list[Case]:
    """The docstring example and the fixture cases of a strategy."""
    doc = type(strategy(name)).__doc__ or ""
    example = read_cases(name, doc)
    if not example:
        raise ValueError(f"{name}: no example in the class docstring")
    return example + read_cases(name, (FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def all_cases() -> list[Case]:
    """The cases of all registered strategies."""
    return [case for name in strategies() for case in cases_of(name)]


def step_of(case: Case) -> Step:
    """The step that the case names. Raises LookupError or ValueError otherwise."""
    return cases.step_of(strategy(case.strategy), case)


def main(name: str) -> str:
    """The fixture file of a strategy with every ``after`` computed anew."""
    return filled_in(strategy(name), (FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]))
