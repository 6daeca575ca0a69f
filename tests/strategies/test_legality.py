"""Every candidate of every survey is judged as it would be without memory."""

import random
from collections.abc import Iterator

import pytest

from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.nest_memory import forget
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.strategies import legality
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.registry import strategies, strategy
from tests.support.corpus import VALID
from tests.support.programs import random_program
from tests.support.remembering import assert_memory_changes_nothing, without_memory
from tests.support.twins import random_twins


def _candidates(signed: SignedProgram) -> list[SignedProgram]:
    """All that the strategies ask about when they survey a program, legal or not."""
    asked: list[SignedProgram] = []
    plain = legality._fault

    def listening(program: SignedProgram) -> legality.Fault:
        asked.append(program)
        return plain(program)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(legality, "_fault", listening)
        legality._known.clear()
        legality._asked.clear()
        for name in strategies():
            strategy(name).survey(signed)
    return asked


def _programs(seeds: range) -> Iterator[SignedProgram]:
    yield from (random_program(seed) for seed in seeds)
    yield from (twins for seed in seeds if not check(twins := random_twins(seed)))


def _compare(programs: list[SignedProgram], most: int) -> int:
    compared = 0
    for i, program in enumerate(programs):
        rng = random.Random(i)
        asked = _candidates(program)
        chosen = asked if len(asked) <= most else rng.sample(asked, most)
        assert_memory_changes_nothing(chosen, rng)
        with without_memory():
            expected = [legality._fault(SignedProgram(c.program, c.signature)) for c in chosen]
        assert [fault(c) for c in chosen] == expected
        compared += len(chosen)
    return compared


def test_candidates_are_judged_as_without_memory() -> None:
    forget()
    chosen = [*_programs(range(3)), *(case.signed for case in VALID[::12])]
    assert _compare(chosen, 25) > 100


@pytest.mark.slow
def test_many_candidates_are_judged_as_without_memory() -> None:
    chosen = [*_programs(range(500, 540)), *(case.signed for case in VALID)]
    assert _compare(chosen, 150) > 3000


def test_limits_are_named() -> None:
    for case in VALID:
        exceeded = check_limits(case.signed)
        found = fault(case.signed)
        assert (found is None) == (not exceeded)
        assert found is None or found[0] == "result-over-limits"
