"""How large a program may be to be executed for a verdict."""

from math import prod
from typing import Final

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
    executed = executed_equations(signed)
    if executed > most_equations:
        return f"executes {executed} equations, over {most_equations}"
    stored = _bytes(signed)
    if stored > most_bytes:
        return f"stores {stored} bytes, over {most_bytes}"
    return ""


def _bytes(signed: SignedProgram) -> int:
    return sum(DTYPES[t.dtype].bytes * prod(t.shape) for t in tensors_of(signed).values())
