"""Names for TVM's node types, whose stubs say nothing, and constructors of literals."""

from functools import lru_cache
from typing import Any

from tvm import ir, tirx

#: A TIR expression (``tirx.PrimExpr``).
Node = Any
#: A TIR statement (``tirx.Stmt``).
Stmt = Any
#: A TIR buffer, loop variable, type, target, primitive function or compiled function.
Buffer = Any
Variable = Any
TirType = Any
Target = Any
PrimFunc = Any
CompiledFunction = Any


@lru_cache(maxsize=32)
def prim(dtype: str) -> TirType:
    """The TIR type object of a scalar dtype."""
    return ir.PrimType(dtype)


@lru_cache(maxsize=1024)
def integer(dtype: str, value: int) -> Node:
    """An integer literal of a TIR dtype; nodes are never changed, so that equal ones are shared."""
    return tirx.IntImm(dtype, value)


def real(dtype: str, value: float) -> Node:
    """A floating-point literal of a TIR dtype, rounded to it."""
    return tirx.FloatImm(dtype, value)
