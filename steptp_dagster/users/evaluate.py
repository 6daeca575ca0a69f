"""Which evaluator compares a translation with PyTorch: the interpreter, or TVM for larger ones."""

from collections.abc import Mapping
from typing import Final

from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.translate.fidelity import Array, Evaluator

#: Executed equations up to which the reference interpreter is quick enough.
INTERPRETED: Final = 60_000


def evaluator_for(signed: SignedProgram) -> Evaluator | None:
    """None for the reference interpreter, else TVM in float64."""
    return None if cost(signed).iterations <= INTERPRETED else _compiled


def _compiled(signed: SignedProgram, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    from steptp_dagster.lowering import run

    return run(signed, arrays, precision="float64")
