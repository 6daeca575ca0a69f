"""Every rule of LEIR, broken by hand-written programs: the interpreter finds the right fault."""

import pytest

from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.interpreter.run import Order
from tests.support.corpus import INVALID, VALID, Case
from tests.support.programs import random_inputs

ORDERS: tuple[Order, ...] = ("text", "reversed", "shuffled")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_valid_programs_have_no_fault(case: Case, order: Order) -> None:
    assert interpret(case.signed, random_inputs(case.signed, 3), order=order).faults == ()


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_invalid_programs_have_the_fault(case: Case) -> None:
    faults = interpret(case.signed, random_inputs(case.signed, 3)).faults
    assert {f.kind for f in faults} & set(case.kinds)


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_invalid_programs_have_no_unrelated_fault(case: Case) -> None:
    # Running on with poison may leave outputs uncovered or values unwritten.
    consequences = {"output-not-covered", "unwritten-read"}
    faults = interpret(case.signed, random_inputs(case.signed, 3)).faults
    assert {f.kind for f in faults} <= {*case.kinds, *consequences}


def test_every_name_is_used_once() -> None:
    names = [case.name for case in (*VALID, *INVALID)]
    assert len(names) == len(set(names))
