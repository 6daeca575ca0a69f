"""A compiled program with its memory layout: arrays in, arrays out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.lowering.abi import call
from steptp_dagster.lowering.arena import Arena, Layout
from steptp_dagster.lowering.precision import Precision
from steptp_dagster.lowering.storage import NUMPY
from steptp_dagster.lowering.tir import CompiledFunction

Array = np.ndarray[Any, np.dtype[Any]]


class InputError(ValueError):
    """The caller's arrays do not fit the signature: missing, unknown, misshapen, out of range."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program that can run.

    ``signed`` is the program as lowered: in ``float64`` precision its float tensors are ``f64``.
    """

    signed: SignedProgram
    precision: Precision
    layout: Layout
    function: CompiledFunction

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name, in signature order, for inputs and parameters by name.

        Arrays are converted to the kernel's dtypes (``float64`` precision takes values as they
        are). All other memory holds NaN, or a pattern for integers, when the program starts.
        Raises InputError for arrays that do not fit, KernelFault if the program changed an input
        or wrote outside its tensors.
        """
        found = sources(self.signed.signature, inputs)
        arena = Arena(self.layout)
        for name, value in found.items():
            arena.write(name, value)
        call(self.function, arena.addresses)
        arena.check(found)
        return {v.name: arena.read(v.name) for v in self.signed.signature.outputs}


def sources(signature: Signature, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays of all sources in their dtypes, constants included. Raises InputError."""
    wanted = [v for v in signature.sources if v.role != "const"]
    unknown = sorted(set(inputs) - {v.name for v in wanted})
    if unknown:
        raise InputError(f"no input or parameter: {', '.join(unknown)}")
    found = {}
    for variable in signature.sources:
        if variable.role == "const":
            value = np.asarray(variable.values).reshape(variable.shape)
            found[variable.name] = value.astype(NUMPY[variable.dtype])
        else:
            found[variable.name] = _fitting(variable, inputs.get(variable.name))
    return found


def _fitting(variable: Variable, value: Array | None) -> Array:
    """The array in the variable's dtype. Raises InputError where it does not fit."""
    if value is None:
        raise InputError(f"{variable.name} is missing")
    array = np.asarray(value)
    if array.shape != variable.shape:
        raise InputError(
            f"{variable.name} has shape {list(array.shape)}, not {list(variable.shape)}"
        )
    if not DTYPES[variable.dtype].is_float and array.dtype.kind not in "iub":
        raise InputError(f"{variable.name} holds {array.dtype}, not {variable.dtype}")
    if variable.low is not None and variable.high is not None:
        outside = (array < variable.low) | (array > variable.high)
        if np.any(outside):
            raise InputError(
                f"{variable.name} leaves its range {variable.low}..{variable.high}: "
                f"{array[outside].reshape(-1)[0]}"
            )
    with np.errstate(over="ignore"):
        return array.astype(NUMPY[variable.dtype])
