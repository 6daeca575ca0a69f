"""How far an original's output is from answers that need no computing.

The margin of a trivial answer is the largest normalised difference (T1's measure) from it over
the well-scaled families: what the verdict would see if a candidate gave that answer.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steptp_dagster.leir.signature import Signature
from steptp_dagster.verify.compare import Array, difference, is_float

if TYPE_CHECKING:
    from steptp_dagster.verify.original import Case


def margins(signature: Signature, cases: "Sequence[Case]") -> tuple[tuple[str, float], ...]:
    """Margins by ``OUTPUT=ANSWER``: zeros, the output's mean, each input of the same shape."""
    found: dict[str, float] = {}
    for case in cases:
        if case.family.adversarial or not case.judges_values:
            continue
        for name, answer in _trivial(signature, case):
            found[name] = max(found.get(name, 0.0), answer)
    return tuple(sorted(found.items()))


def _trivial(signature: Signature, case: "Case") -> Iterator[tuple[str, float]]:
    for variable in signature.outputs:
        if not is_float(variable.dtype):
            continue
        output = case.reference[variable.name]
        yield f"{variable.name}=zeros", difference(output, np.zeros_like(output))
        yield f"{variable.name}=mean", difference(output, np.full_like(output, _mean(output)))
        for source in signature.sources:
            if source.role != "const" and source.shape == variable.shape:
                value = case.inputs[source.name].astype(np.float64)
                yield f"{variable.name}={source.name}", difference(output, value)


def _mean(output: Array) -> float:
    finite = output[np.isfinite(output)]
    return float(np.mean(finite)) if finite.size else 0.0
