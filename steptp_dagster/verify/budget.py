"""How large a program may be to be executed for a verdict."""

from math import prod
from typing import Final

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import executed_equations
from steptp_dagster.lowering.lower import tensors_of

#: Executed equations of one run, guards counted as true.
MOST_EQUATIONS: Final = 5_000_000
#: Bytes of all tensors of one run in working precision.
MOST_BYTES: Final = 128 * 2**20


def too_large(
    signed: SignedProgram, most_equations: int = MOST_EQUATIONS, most_bytes: int = MOST_BYTES
) -> str:
    """What exceeds the budget, in words that follow the program's name; empty if nothing does."""
    executed, stored = _figures(signed)
    if executed > most_equations:
        return f"executes {executed} equations, over {most_equations}"
    if stored > most_bytes:
        return f"stores {stored} bytes, over {most_bytes}"
    return ""


@per_program
def _figures(signed: SignedProgram) -> tuple[int, int]:
    """Executed equations, and bytes of all tensors."""
    stored = sum(DTYPES[t.dtype].bytes * prod(t.shape) for t in tensors_of(signed).values())
    return executed_equations(signed), stored
