"""How faithful a translation is: its LEIR against the module, both in float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.translate.reference import Reference
from steptp_dagster.translate.translate import Translation

#: Largest normalised difference of a faithful translation.
TOLERANCE: Final = 1e-9

Array = NDArray[Any]
#: Runs a signed program on arrays by LEIR name, in float64, and gives its outputs by name.
Evaluator = Callable[[SignedProgram, Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The largest normalised difference over all outputs, and that of each output by name.

    ``inf`` stands for a difference in shape, in NaNs or in infinities, or in any integer or bool.
    """

    max_normalised_error: float
    by_output: Mapping[str, float]

    @property
    def faithful(self) -> bool:
        """Whether the difference is within ``TOLERANCE``."""
        return self.max_normalised_error <= TOLERANCE


def fidelity(
    module: nn.Module,
    inputs: Sequence[torch.Tensor],
    translation: Translation,
    evaluator: Evaluator | None = None,
) -> Fidelity:
    """Compare a translation with its module on ``inputs``, both evaluated in float64.

    ``evaluator`` defaults to the reference interpreter, which raises RuntimeError here where it
    finds a fault. The difference of an output is ``max|a-b| / max(1, max|b|)``. Raises
    ModuleFailed where the module raises.
    """
    reference = Reference(module, inputs, translation)
    arrays = reference.given()
    expected = reference.run(arrays, double=True)
    found = (evaluator or by_interpreter)(translation.signed, arrays)
    return compared(found, expected)


def compared(found: Mapping[str, Array], expected: Mapping[str, Array]) -> Fidelity:
    """The differences of results by name from PyTorch's."""
    errors = {name: difference(found[name], value) for name, value in expected.items()}
    return Fidelity(max(errors.values()), errors)


def by_interpreter(signed: SignedProgram, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Evaluate with the reference interpreter in float64.

    Raises RuntimeError for a program that breaks a rule of LEIR while it runs.
    """
    run = interpret(signed, dict(arrays), precision="float64")
    if run.faults:
        raise RuntimeError("; ".join(str(f) for f in run.faults))
    return run.outputs


def difference(found: Array, expected: Array) -> float:
    """``max|found-expected| / max(1, max|expected|)``; infinities and NaNs must coincide."""
    if found.shape != expected.shape:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    finite = np.isfinite(expected)
    same = np.array_equal(found[~finite], expected[~finite], equal_nan=True)
    if not same or not np.isfinite(found[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    a, b = found[finite].astype(np.float64), expected[finite]
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))
