"""The two precisions a program is evaluated in, and the program that evaluates in binary64."""

from dataclasses import replace
from typing import Literal

import numpy as np

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import map_expr, map_program
from steptp_dagster.lowering.storage import NUMPY

#: ``working``: as written. ``float64``: every float tensor, temporary and literal is a double.
Precision = Literal["working", "float64"]


def in_precision(signed: SignedProgram, precision: Precision) -> SignedProgram:
    """The program whose working precision is ``precision``; the same one for ``working``.

    Float constants keep the values that they have in memory, so that only arithmetic changes.
    """
    if precision == "working":
        return signed
    program = map_program(signed.program, lambda expr: map_expr(expr, _doubled))
    variables = tuple(_doubled_variable(v) for v in signed.signature.variables)
    return SignedProgram(program, Signature(variables))


def stored_value(dtype: str, value: float) -> float:
    """A float as memory of LEIR type ``dtype`` holds it."""
    return float(np.asarray(value, dtype=np.float64).astype(NUMPY[dtype]))


def _doubled(expr: Expr) -> Expr:
    if isinstance(expr, Access) and DTYPES[expr.dtype].is_float:
        return replace(expr, dtype="f64")
    return expr


def _doubled_variable(variable: Variable) -> Variable:
    if not DTYPES[variable.dtype].is_float:
        return variable
    values = variable.values
    if values is not None:
        values = tuple(stored_value(variable.dtype, v) for v in values)
    return replace(variable, dtype="f64", values=values)
