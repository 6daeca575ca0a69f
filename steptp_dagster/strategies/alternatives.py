"""What else could have been done: the other sites of a strategy, and one of them in figures.

Which site a step takes is the data set's choice (``choice``), not the strategy's. The explanation
says what there was to choose from, and what the nearest other choice would have changed.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Parameter, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import EFFECT_FIGURES, figures
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.step import Step

#: Figures by which two choices are compared, the most telling first.
TELLING: Final = (
    "at_once",
    "bytes_read_g",
    "bytes_written_g",
    "bytes_read_s",
    "bytes_written_s",
    "barriers",
    "launches",
    "iterations",
    "flops",
    *(f for f in EFFECT_FIGURES if f.startswith("bytes") and f.endswith("_l")),
    "nests",
    "equations",
    "loops",
    "loop_depth",
)
#: Said where two choices agree in every figure.
NO_FIGURE: Final = ""


@lru_cache(maxsize=64)
def _surveyed(strategy: type[Strategy], program: SignedProgram) -> Survey:
    return strategy().survey(program)


def surveyed(strategy: Strategy, program: SignedProgram) -> Survey:
    """The survey of a valid program; the last few are kept."""
    return _surveyed(type(strategy), program)


def forget() -> None:
    """Forget the surveys that are kept; for tests that replace a strategy's survey."""
    _surveyed.cache_clear()


def nearest(site: Site, sites: tuple[Site, ...]) -> Site | None:
    """The other site at the same statement that shares most parameters; the first of equals."""
    others = [s for s in sites if s.path == site.path and s != site]
    if not others:
        return None
    own = set(site.parameters)
    return max(others, key=lambda s: len(own.intersection(s.parameters)))


def telling_figure(first: dict[str, int], second: dict[str, int]) -> str:
    """The most telling figure in which two results differ, or ``NO_FIGURE``."""
    return next((name for name in TELLING if first[name] != second[name]), NO_FIGURE)


def _facts(
    strategy: Strategy, program: SignedProgram, after: SignedProgram, site: Site
) -> tuple[Fact, ...]:
    """How many sites there were, and what the nearest other one would have led to."""
    sites = surveyed(strategy, program).sites
    facts = [before_fact("sites", strategy.name, value=len(sites))]
    other = nearest(site, sites)
    if other is not None:
        own, theirs = figures(after), figures(strategy.apply(program, other))
        name = telling_figure(own, theirs)
        different: tuple[tuple[str, Parameter], ...] = tuple(
            p for p in other.parameters if p not in site.parameters
        )
        value = theirs[name] if name else 0
        facts.append(
            before_fact(
                "alternative",
                strategy.name,
                other.path,
                other.parameters,
                different,
                name,
                value=value,
            )
        )
        if name:
            facts.append(after_fact("cost", name, value=own[name]))
    return tuple(facts)


def compared(strategy: Strategy, step: Step) -> Step:
    """The step with an explanation that also says what there was to choose from."""
    found = _facts(strategy, step.before, step.after, step.site)
    return replace(step, explanation=replace(step.explanation, alternatives=found))
