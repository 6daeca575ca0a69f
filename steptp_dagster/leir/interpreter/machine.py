"""The state of one run: memory, inputs and outputs."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from steptp_dagster.leir.ast import (
    Access,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.interpreter.faults import InputError, Log
from steptp_dagster.leir.interpreter.memory import (
    Key,
    Memory,
    StatementState,
)
from steptp_dagster.leir.interpreter.values import Value, rounding
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.leir.walk import (
    accesses_in,
    equations,
    expressions,
)

Iterations = Callable[[range], "range | list[int]"]


class Machine:
    """One run: memory, and the program as closures."""

    def __init__(
        self,
        signed: SignedProgram,
        inputs: Mapping[str, np.ndarray],
        log: Log,
        doubles: bool,
        dynamic: bool,
        order: Iterations,
    ) -> None:
        self.signed = signed
        self.doubles = doubles
        self.dynamic = dynamic
        self.order = order
        self.statement: StatementState | None = None
        self.forms: dict[str, Access] = {}
        for located in equations(signed.program):
            for expr in expressions(located.equation):
                for access in accesses_in(expr):
                    self.forms.setdefault(access.name, access)
        known = signed.signature.by_name
        names = sorted({*self.forms, *known})
        self.dtypes = {n: known[n].dtype if n in known else self.forms[n].dtype for n in names}
        self.memory = Memory(
            shapes={v.name: v.shape for v in signed.signature.variables},
            ranks={
                n: len(known[n].shape) if n in known else len(self.forms[n].subscripts)
                for n in names
            },
            poison={n: math.nan if DTYPES[self.dtypes[n]].is_float else 0 for n in names},
            log=log,
            env=[],
            cells={n: {} for n in names},
        )
        for variable in signed.signature.sources:
            self.memory.cells[variable.name] = _cells(variable, inputs, doubles)

    def outputs(self) -> dict[str, np.ndarray]:
        """The outputs as arrays, poison where nothing was written."""
        result = {}
        for variable in self.signed.signature.outputs:
            dtype = DTYPES[variable.dtype]
            if not dtype.is_float:
                array = np.zeros(variable.shape, dtype.numpy)
            else:
                numpy = "float32" if dtype.name == "bf16" else dtype.numpy
                array = np.full(variable.shape, np.nan, "float64" if self.doubles else numpy)
            for key, value in self.memory.cells[variable.name].items():
                array[key] = value
            result[variable.name] = array
        return result

    def complain(self, kind: str, message: str) -> None:
        """Record a fault of the statement that is running."""
        if self.statement is not None:
            self.memory.fault(kind, message, self.statement, "")

    def check_coverage(self) -> None:
        """Record the outputs that have an element nobody wrote."""
        for variable in self.signed.signature.outputs:
            cells = self.memory.cells[variable.name]
            lacking = next((key for key in np.ndindex(variable.shape) if key not in cells), None)
            if lacking is not None:
                message = f"{variable.name} at {list(lacking)} is never written"
                self.memory.log.report("output-not-covered", message, (), variable.name)


def _cells(variable: Variable, inputs: Mapping[str, np.ndarray], doubles: bool) -> dict[Key, Value]:
    """All elements of an input, parameter or constant, rounded to its dtype."""
    dtype = DTYPES[variable.dtype]
    if variable.values is not None:
        array = np.array(variable.values).reshape(variable.shape)
    elif variable.name not in inputs:
        raise InputError(f"{variable.name} is missing")
    else:
        array = np.asarray(inputs[variable.name])
        if array.shape != variable.shape:
            raise InputError(
                f"{variable.name} has shape {list(array.shape)}, not {list(variable.shape)}"
            )
        if variable.low is not None and variable.high is not None:
            inside = (array >= variable.low) & (array <= variable.high)
            if not bool(np.all(inside)):
                raise InputError(f"{variable.name} leaves {variable.low}..{variable.high}")
    convert: Callable[[float], Value]
    if dtype.is_float:
        convert = float if doubles else rounding(dtype.name)
        flat: list[Value] = array.astype("float64").ravel().tolist()
    else:
        convert = int if dtype.is_integer else bool
        flat = array.ravel().tolist()
    return dict(zip(np.ndindex(variable.shape), map(convert, flat), strict=True))
