"""The oracle of ``benchmarks/sweep.py`` against the corpus: it objects to what is invalid."""

import numpy as np
import pytest

from benchmarks.oracle import Meaningless, cells_of, compiled, illegal, outputs
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from tests.support.cases import Case
from tests.support.corpus import INVALID, VALID
from tests.support.programs import random_inputs

#: Rules about types, which the oracle leaves to others: what it runs has a meaning without them.
TYPES = frozenset({"subscript-not-integer", "condition-not-bool", "integer-power"})


def _run(signed: SignedProgram) -> tuple[dict[str, np.ndarray], list[str]]:
    arrays = random_inputs(signed, 1)
    for variable in signed.signature.sources:
        if variable.values is not None:
            arrays[variable.name] = np.array(variable.values).reshape(variable.shape)
    cells = {
        name: cells_of(array.astype(np.float64) if array.dtype.kind == "f" else array)
        for name, array in arrays.items()
    }
    try:
        program = compiled(signed)
    except Meaningless as error:
        return {}, [str(error)]
    outcome = program.run(cells, range(len(program.nests)))
    if outcome.fault:
        return {}, [outcome.fault]
    found, fault = outputs(program, outcome)
    return found, [*([fault] if fault else []), *illegal(program, outcome, set())]


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_valid_programs_pass_and_compute_what_they_mean(case: Case) -> None:
    found, faults = _run(case.signed)
    assert not faults
    meant = interpret(case.signed, random_inputs(case.signed, 1), precision="float64")
    for name, array in meant.outputs.items():
        np.testing.assert_allclose(found[name], np.asarray(array, np.float64), rtol=1e-12)


@pytest.mark.parametrize(
    "case", [c for c in INVALID if not TYPES & set(c.kinds)], ids=lambda case: case.name
)
def test_invalid_programs_are_objected_to(case: Case) -> None:
    assert _run(case.signed)[1]
