"""A compiled program with its memory layout: arrays in, arrays out, for one run or many."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, Variable
from steptp_dagster.lowering.abi import Entry, call
from steptp_dagster.lowering.arena import Arenas, Layout
from steptp_dagster.lowering.precision import Precision
from steptp_dagster.lowering.storage import NUMPY

Array = np.ndarray[Any, np.dtype[Any]]

#: Bytes of memory for runs that are done together.
_TOGETHER: Final = 8 * 2**20


class InputError(ValueError):
    """The caller's arrays do not fit the signature: missing, unknown, misshapen, out of range."""


@dataclass(frozen=True, slots=True)
class Call:
    """The machine code of one nest, and which tensors of the layout it works on."""

    entry: Entry
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program that can run: its nests one after the other.

    ``signature`` is the program's as lowered: in ``float64`` precision its float tensors are
    ``f64``.
    """

    signature: Signature
    precision: Precision
    layout: Layout
    calls: tuple[Call, ...]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name, in signature order, for inputs and parameters by name.

        Arrays are converted to the kernel's dtypes (``float64`` precision takes values as they
        are). All other memory holds NaN, or a pattern for integers, when the program starts.
        Raises InputError for arrays that do not fit, KernelFault if the program changed an input
        or wrote outside its tensors.
        """
        one = {name: np.asarray(value)[None] for name, value in inputs.items()}
        return {name: np.asarray(value[0]) for name, value in self.run_many(one, 1).items()}

    def run_many(self, inputs: Mapping[str, Array], count: int) -> dict[str, Array]:
        """As ``run``, ``count`` times: inputs and outputs have an axis of runs in front."""
        found = sources_of(self.signature, inputs, count)
        at_once = max(1, _TOGETHER // self.layout.size)
        parts = []
        for first in range(0, count, at_once):
            last = min(count, first + at_once)
            parts.append(self._run({n: v[first:last] for n, v in found.items()}, last - first))
        if len(parts) == 1:
            return parts[0]
        return {
            v.name: np.concatenate([part[v.name] for part in parts]) for v in self.signature.outputs
        }

    def _run(self, found: Mapping[str, Array], count: int) -> dict[str, Array]:
        arenas = Arenas(self.layout, count)
        for name, values in found.items():
            arenas.write(name, values)
        addresses = arenas.base + np.array([p.offset for p in self.layout.places], np.int64)
        for each in self.calls:
            call(each.entry, addresses[list(each.places)], count, self.layout.size)
        arenas.check(found)
        return {v.name: arenas.read(v.name) for v in self.signature.outputs}


def sources(signature: Signature, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays of all sources in their dtypes, constants included. Raises InputError."""
    one = {name: np.asarray(value)[None] for name, value in inputs.items()}
    return {name: np.asarray(v[0]) for name, v in sources_of(signature, one, 1).items()}


def sources_of(signature: Signature, inputs: Mapping[str, Array], count: int) -> dict[str, Array]:
    """As ``sources``, with an axis of ``count`` runs in front. Raises InputError."""
    wanted = [v for v in signature.sources if v.role != "const"]
    unknown = sorted(set(inputs) - {v.name for v in wanted})
    if unknown:
        raise InputError(f"no input or parameter: {', '.join(unknown)}")
    found = {}
    for variable in signature.sources:
        if variable.role == "const":
            value = np.asarray(variable.values).reshape(variable.shape)
            constant = value.astype(NUMPY[variable.dtype])
            found[variable.name] = np.broadcast_to(constant, (count, *variable.shape))
        else:
            found[variable.name] = _fitting(variable, inputs.get(variable.name), count)
    return found


def _fitting(variable: Variable, value: Array | None, count: int) -> Array:
    """The arrays in the variable's dtype. Raises InputError where they do not fit."""
    if value is None:
        raise InputError(f"{variable.name} is missing")
    array = np.asarray(value)
    if array.shape != (count, *variable.shape):
        raise InputError(
            f"{variable.name} has shape {list(array.shape[1:])}, not {list(variable.shape)}"
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
        return array.astype(NUMPY[variable.dtype], copy=False)
