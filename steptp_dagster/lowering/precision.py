"""The precisions a program is evaluated in, and the program that evaluates in binary64."""

from dataclasses import replace
from typing import Literal

import numpy as np

from steptp_dagster.leir.ast import Access, Equation, Expr, Nest
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import map_equation, map_expr, map_program, map_statement
from steptp_dagster.lowering.storage import NUMPY

#: ``working``: as written. ``float64``: every float tensor, temporary and literal is a double.
#: ``jittered``: as written, but roundings of arithmetic err by a little more (``jitter``).
Precision = Literal["working", "float64", "jittered"]


def in_precision(signed: SignedProgram, precision: Precision) -> SignedProgram:
    """The program whose working precision is ``precision``; the same one for the others.

    Float constants keep the values that they have in memory, so that only arithmetic changes.
    """
    if precision != "float64":
        return signed
    program = map_program(signed.program, lambda expr: map_expr(expr, _doubled))
    return SignedProgram(program, signature_in(signed.signature, precision))


def signature_in(signature: Signature, precision: Precision) -> Signature:
    """The signature of the program that ``in_precision`` gives."""
    if precision != "float64":
        return signature
    return Signature(tuple(_doubled_variable(v) for v in signature.variables))


def dtype_in(dtype: str, precision: Precision) -> str:
    """What a tensor of a LEIR dtype holds in a precision."""
    return "f64" if precision == "float64" and DTYPES[dtype].is_float else dtype


def nest_in(nest: Nest, precision: Precision) -> Nest:
    """A nest of the program that ``in_precision`` gives."""
    if precision != "float64":
        return nest
    changed = map_statement(nest, lambda expr: map_expr(expr, _doubled))
    if not isinstance(changed, Nest):
        raise TypeError("a mapped nest is a nest")
    return changed


def equation_in(equation: Equation, precision: Precision) -> Equation:
    """An equation of the program that ``in_precision`` gives."""
    if precision != "float64":
        return equation
    return map_equation(equation, lambda expr: map_expr(expr, _doubled))


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
