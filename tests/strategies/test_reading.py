"""Reading back nest by nest says what reading the whole program says."""

import random
from collections.abc import Iterator

import pytest

from steptp_dagster.leir.ast import (
    ARITHMETIC,
    LOGICAL,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Program,
    Real,
    Unary,
)
from steptp_dagster.leir.parser import MAX_BRACKETS
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import children, with_children
from steptp_dagster.strategies.reading import _depth_of_nest, nest_reads_back, reads_back
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


_A, _C = Index("a"), Index("c")
#: One node of each kind and level, to stand in one another.
_NODES: tuple[Expr, ...] = (
    _A,
    Int(0),
    Int(12),
    Real("0.5"),
    Real("1e-5"),
    Inf(),
    Access("A", "f32", "g"),
    Access("Aa", "i64", "l", (_A, Int(3))),
    Unary("-", _A),
    *(Binary(op, _A, _C) for op in (*ARITHMETIC, *LOGICAL)),
    Compare((_A, _C), ("<",)),
    Compare((_A, _C, Int(1)), ("<=", "==")),
    Call("exp", (_A,)),
    Call("max", (_A, _C)),
    Call("if_then_else", (_A, _C, Int(1))),
)


def _operands(node: Expr, new: Expr) -> Iterator[Expr]:
    """The node with one operand after the other replaced."""
    below = children(node)
    for i in range(len(below)):
        yield with_children(node, (*below[:i], new, *below[i + 1 :]))


def test_every_node_reads_back_inside_every_other() -> None:
    wider = [two for one in _NODES for new in _NODES for two in _operands(one, new)]
    rng = random.Random(0)
    deeper = [e for one in rng.sample(wider, 60) for e in _operands(rng.choice(_NODES), one)]
    for value in (*_NODES, *wider, *deeper):
        nest = _nested(1, value)
        assert nest_reads_back(nest) == reads_back(Program((nest,)), None), value
        assert _depth_of_nest(nest) is not None


def test_nodes_that_no_text_denotes() -> None:
    """A number with more digits than are read, alone and inside."""
    value: Expr = Int(10**500)
    for nested in (value, Binary("+", _A, value), Access("A", "f32", "g", (value,))):
        nest = _nested(1, nested)
        assert not nest_reads_back(nest)
        assert not reads_back(Program((nest,)), None)


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
