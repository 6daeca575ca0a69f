"""The acceptance rule of published work, shown beside ours in the zoo's report.

One draw of normal data, both programs in working precision, and any of: relative tolerance 5e-3,
absolute tolerance 1e-7, mean square error 1e-5, or an absolute difference below 1.5 for halves.
"""

import numpy as np

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import compile_programs
from steptp_dagster.verify.compare import Array
from steptp_dagster.verify.families import FAMILIES, inputs

_RELATIVE = 5e-3
_ABSOLUTE = 1e-7
_MEAN_SQUARE = 1e-5
_HALF = 1.5


def accepts(original: SignedProgram, candidate: SignedProgram, seed: int) -> bool:
    """Whether the rule accepts a candidate that can be lowered and run."""
    data = inputs(original.signature, FAMILIES[0], seed)
    first, second = (k.run(data) for k in compile_programs([original, candidate]))
    return all(
        _close(first[v.name].astype(np.float64), second[v.name].astype(np.float64), v.dtype)
        for v in original.signature.outputs
    )


def _close(left: Array, right: Array, dtype: str) -> bool:
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right)
        return bool(
            np.all(apart <= _RELATIVE * np.abs(left))
            or np.all(apart <= _ABSOLUTE)
            or np.mean(np.square(apart)) <= _MEAN_SQUARE
            or (dtype == "f16" and np.all(apart < _HALF))
        )
