"""How large a program may be to be executed for a verdict."""

from math import prod
from typing import Final

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, equations, expressions
from steptp_dagster.lowering import executed_equations
from steptp_dagster.lowering.private import private_instances

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
    shapes = infer_shapes(signed)
    instances = private_instances(signed.program)
    dtypes = {v.name: v.dtype for v in signed.signature.variables}
    for located in equations(signed.program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                dtypes.setdefault(access.name, access.dtype)
    total = 0
    for name, dtype in dtypes.items():
        copies = prod(instances[name].extents) if name in instances else 1
        total += DTYPES[dtype].bytes * prod(shapes[name]) * copies
    return total
