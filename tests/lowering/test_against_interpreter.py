"""The lowering agrees with the reference interpreter, bit for bit in both precisions.

The interpreter was written independently. Functions of the mathematical library are evaluated in
binary64 by both and rounded once, so that no tolerance is needed on one machine.
"""

from typing import Any

import numpy as np
import pytest

from steptp_dagster.leir.fileform import write
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import compile_programs
from steptp_dagster.lowering.precision import Precision
from steptp_dagster.verify.families import FAMILIES, inputs
from tests.support.corpus import VALID
from tests.support.programs import random_inputs, random_program

Array = np.ndarray[Any, np.dtype[Any]]
PRECISIONS: tuple[Precision, ...] = ("working", "float64")
RANDOM_PROGRAMS = 120


def assert_agree(
    signed: SignedProgram, precision: Precision, data: dict[str, Array], found: dict[str, Array]
) -> None:
    wanted = interpret(signed, data, precision=precision)
    assert wanted.faults == (), write(signed)
    assert list(found) == list(wanted.outputs)
    for name, value in wanted.outputs.items():
        left, right = found[name], value
        if left.dtype.kind not in "iub":
            left, right = left.astype(np.float64), right.astype(np.float64)
        np.testing.assert_array_equal(left, right, err_msg=f"{precision} {name}\n{write(signed)}")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_corpus(precision: Precision) -> None:
    programs = [case.signed for case in VALID]
    for signed, kernel in zip(programs, compile_programs(programs, precision), strict=True):
        for family in (FAMILIES[0], FAMILIES[8]):
            data = inputs(signed.signature, family, 3)
            assert_agree(signed, precision, data, kernel.run(data))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_random_programs(precision: Precision) -> None:
    programs = [random_program(seed) for seed in range(RANDOM_PROGRAMS)]
    kernels = compile_programs(programs, precision)
    for seed, (signed, kernel) in enumerate(zip(programs, kernels, strict=True)):
        data = random_inputs(signed, seed)
        assert_agree(signed, precision, data, kernel.run(data))
