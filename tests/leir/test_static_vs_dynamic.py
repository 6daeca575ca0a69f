"""The static checker against the interpreter, both ways.

Never lax: a program that passes the checker runs without a fault. Not too strict: a program that
runs without a fault passes, if neither its subscripts nor its conditions depend on data (for
those a run sees one case, and the checker must think of all).
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from steptp_dagster.leir.ast import Access, Call, Expr
from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.interpreter import Fault, interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.walk import accesses_in, equations, expressions, iter_expr
from tests.support.corpus import INVALID, VALID, Case
from tests.support.programs import (
    arbitrary_programs,
    random_inputs,
    random_mutant,
    random_program,
    valid_programs,
)
from tests.support.tangles import random_tangle

#: Faults of values, which no static check can rule out.
OF_VALUES = {"undefined-conversion", "integer-division-by-zero"}


def faults_of(signed: SignedProgram) -> tuple[Fault, ...]:
    """The faults in two runs on different inputs that a static check could have found."""
    found: tuple[Fault, ...] = ()
    for seed in (0, 1):
        faults = interpret(signed, random_inputs(signed, seed)).faults
        found += tuple(f for f in faults if f.kind not in OF_VALUES)
    return found


def depends_on_data(signed: SignedProgram) -> bool:
    """Whether a subscript or a condition reads a tensor."""

    def reads(expr: Expr) -> bool:
        return any(True for _ in accesses_in(expr))

    for located in equations(signed.program):
        guard = located.equation.guard
        if guard is not None and reads(guard):
            return True
        for node in (n for root in expressions(located.equation) for n in iter_expr(root)):
            match node:
                case Access() if any(map(reads, node.subscripts)):
                    return True
                case Call(function="if_then_else") if reads(node.arguments[0]):
                    return True
                case _:
                    pass
    return False


def agrees(signed: SignedProgram) -> None:
    violations, faults = check(signed), faults_of(signed)
    if not violations:
        assert faults == (), f"the checker is lax:\n{write(signed)}"
    elif not depends_on_data(signed):
        assert faults != (), f"the checker is too strict: {violations}\n{write(signed)}"


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_the_checker_accepts_the_valid_corpus(case: Case) -> None:
    assert check(case.signed) == ()


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_the_checker_names_the_broken_rule(case: Case) -> None:
    assert {v.kind for v in check(case.signed)} & set(case.kinds)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(valid_programs())
def test_random_valid_programs_are_accepted(signed: SignedProgram) -> None:
    assert check(signed) == ()
    assert faults_of(signed) == ()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(arbitrary_programs())
def test_checker_and_interpreter_agree_on_mutants(signed: SignedProgram) -> None:
    agrees(signed)


@pytest.mark.parametrize("make", [random_program, random_mutant, random_tangle])
def test_checker_and_interpreter_agree_on_seeds(make: Callable[[int], SignedProgram]) -> None:
    for seed in range(80):
        agrees(make(seed))


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_program, random_mutant, random_tangle])
def test_checker_and_interpreter_agree_on_many_seeds(make: Callable[[int], SignedProgram]) -> None:
    for seed in range(80, 5000):
        agrees(make(seed))
