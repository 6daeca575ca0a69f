"""No site leads back to the program that it is a site of, whatever names the result has."""

from collections import Counter

import pytest

from steptp_dagster.leir.canonical import leir_id, structural_hash
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import own_strategies
from tests.support.strategy_cases import all_cases

PROGRAMS = 25
#: Sites per program and strategy.
SITES = 2


def _programs(count: int) -> list[SignedProgram]:
    """Valid programs of all kinds, spread over the cases of all strategies."""
    programs = {leir_id(case.before): case.before for case in all_cases()}
    return list(programs.values())[:: max(1, len(programs) // count)]


def _steps_taken(programs: list[SignedProgram], sites: int) -> Counter[str]:
    """Steps by strategy; each leads to a program that is another one up to names."""
    taken: Counter[str] = Counter()
    for program in programs:
        text, shape = leir_id(program), structural_hash(program)
        for name, one in own_strategies().items():
            found = one.survey(program).sites
            for site in found[:: max(1, len(found) // sites)][:sites]:
                after = one.apply(program, site)
                assert leir_id(after) != text, (name, site.describe())
                assert structural_hash(after) != shape, (name, site.describe())
                taken[name] += 1
    return taken


def test_no_step_leads_back_to_its_own_program() -> None:
    taken = _steps_taken(_programs(PROGRAMS), SITES)
    assert sum(taken.values()) > 250
    assert len(taken) > 20


@pytest.mark.slow
def test_no_step_leads_back_to_its_own_program_anywhere() -> None:
    """Sixteen times as many programs."""
    taken = _steps_taken(_programs(16 * PROGRAMS), 2 * SITES)
    assert len(taken) > 40
