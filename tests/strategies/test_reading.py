"""Reading back nest by nest says what reading the whole program says."""

import pytest

from steptp_dagster.leir.ast import Access, Binary, Call, Equation, Expr, Int, Loop, Nest, Program
from steptp_dagster.leir.parser import MAX_BRACKETS
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.reading import nest_reads_back, reads_back
from steptp_dagster.strategies.step import _reads_back
from tests.support.corpus import VALID
from tests.support.programs import random_mutant, random_program
from tests.support.tangles import random_tangle


def _whole(signed: SignedProgram) -> bool:
    return reads_back(signed.program, signed.signature)


def test_programs_that_read_back() -> None:
    programs = [case.signed for case in VALID]
    programs += [make(s) for s in range(30) for make in (random_program, random_mutant)]
    programs += [random_tangle(seed) for seed in range(30)]
    answers = [_whole(program) for program in programs]
    assert [_reads_back(program) for program in programs] == answers


def _nested(levels: int, value: Expr) -> Nest:
    """An equation inside so many nests."""
    statement: Nest | Equation = Equation(Access("D", "f32", "g"), value)
    for i in range(levels):
        statement = Nest((Loop("L", f"a{'a' * i}", 1),), (statement,))
    assert isinstance(statement, Nest)
    return statement


def _calls(levels: int) -> Expr:
    value: Expr = Int(1)
    for _ in range(levels):
        value = Call("exp", (value,))
    return value


@pytest.mark.parametrize("nests", [1, 2, 40, MAX_BRACKETS - 1, MAX_BRACKETS, MAX_BRACKETS + 1])
@pytest.mark.parametrize("brackets", [0, 40, 58, 60, MAX_BRACKETS - 1, MAX_BRACKETS])
def test_the_levels_of_nests_and_brackets_add_up(nests: int, brackets: int) -> None:
    nest = _nested(nests, _calls(brackets))
    assert nest_reads_back(nest) == reads_back(Program((nest,)), None)
    assert nest_reads_back(nest) == (nests + brackets <= MAX_BRACKETS)


def test_powers_are_levels_too() -> None:
    value: Expr = Int(2)
    for _ in range(MAX_BRACKETS):
        value = Binary("**", Int(2), value)
    nest = _nested(1, value)
    assert not nest_reads_back(nest)
    assert not reads_back(Program((nest,)), None)


def test_sums_that_are_too_high() -> None:
    value: Expr = Int(1)
    for _ in range(250):
        value = Binary("+", value, Int(1))
    assert not nest_reads_back(_nested(1, value))
