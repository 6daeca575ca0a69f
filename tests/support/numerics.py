"""Comparing what two programs compute, by the reference interpreter."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram

#: Greatest normalised difference of two float64 evaluations.
TOLERANCE = 1e-12


def assert_equal_outputs(
    before: SignedProgram,
    after: SignedProgram,
    inputs: Mapping[str, NDArray[np.generic]],
    numerics: str,
) -> None:
    """Both run without faults and agree in float64; ``exact`` also in working precision."""
    first = interpret(before, inputs, precision="float64")
    second = interpret(after, inputs, precision="float64")
    assert first.faults == ()
    assert second.faults == ()
    for name, value in first.outputs.items():
        difference = normalised_difference(value, second.outputs[name])
        assert difference <= TOLERANCE, f"{name}: {difference}"
    if numerics == "exact":
        working = interpret(before, inputs).outputs
        again = interpret(after, inputs).outputs
        for name, value in working.items():
            np.testing.assert_array_equal(value, again[name], err_msg=name)


def normalised_difference(a: NDArray[np.generic], b: NDArray[np.generic]) -> float:
    """Largest difference divided by the largest finite magnitude (at least 1).

    Infinite where shapes or the places of non-finite values differ.
    """
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.shape != y.shape:
        return np.inf
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if not np.all(same | (np.isfinite(x) & np.isfinite(y))):
        return np.inf
    finite = np.isfinite(x) & np.isfinite(y)
    if not finite.any():
        return 0.0
    return float(np.max(np.abs(x[finite] - y[finite])) / max(1.0, np.max(np.abs(x[finite]))))
