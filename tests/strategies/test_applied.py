"""``apply`` is remembered per strategy, program object and site."""

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Site, Strategy, Survey
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.registry import strategies
from tests.support.corpus import VALID


class _Counting(Strategy):
    """Gives a copy of the program and counts how often it was asked to."""

    name = "counting"
    level = "graph"
    version = "1"
    summary = "Nothing."

    def __init__(self) -> None:
        self.count = 0

    def survey(self, program: SignedProgram) -> Survey:
        """One site."""
        return Survey((Site.of(self.name, (0,)),), ())

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """A copy."""
        self.count += 1
        return SignedProgram(program.program, program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Not asked for."""
        raise NotImplementedError


def test_one_candidate_is_made_once() -> None:
    one, program = _Counting(), VALID[0].signed
    first, second = Site.of("counting", (0,)), Site.of("counting", (0,), factor=2)
    made = one.apply(program, first)
    assert one.apply(program, first) is made
    assert one.apply(program, second) is not made
    assert one.count == 2


def test_others_are_not_mixed_up() -> None:
    one, other, program = _Counting(), _Counting(), VALID[0].signed
    site = Site.of("counting", (0,))
    copy = SignedProgram(program.program, program.signature)
    assert one.apply(program, site) is not other.apply(program, site)
    assert one.apply(program, site) is not one.apply(copy, site)
    assert (one.count, other.count) == (2, 1)


def test_a_candidate_made_anew_is_the_same_program() -> None:
    """Remembering hides nothing: made from another object, every candidate is equal."""
    for case in VALID[::16]:
        for strategy in strategies().values():
            for site in strategy.survey(case.signed).sites[:2]:
                copy = SignedProgram(case.signed.program, case.signed.signature)
                assert strategy.apply(copy, site) == strategy.apply(case.signed, site)
