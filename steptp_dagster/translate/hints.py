"""What to say of an operator that has no translation: why, and what would work instead."""

from typing import Any, Final

import torch

_RANDOM: Final = (
    "random numbers, which no program over its inputs gives; "
    "call .eval(), or pass the random tensor as an input"
)
_SHAPE: Final = (
    "a result whose shape depends on data; torch.where, or a reduction under a mask, keeps shapes"
)
_COMPLEX: Final = "complex numbers; real and imaginary parts as tensors of their own do"
_SEQUENCE: Final = (
    "an algorithm with control flow that depends on data; its result as an input does"
)
_NUMBER: Final = "a Python number made from a tensor; kept as a tensor it translates"
_FUNCTION: Final = (
    "a function that LEIR's own (exp log sqrt abs erf tanh sin cos floor ceil round) "
    "do not express exactly"
)

#: Hints by the name of the operator without namespace and overload; longer names first.
_HINTS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("nonzero", "unique", "_unique", "masked_select", "bincount", "histc", "argwhere"), _SHAPE),
    (("_local_scalar_dense", "item"), _NUMBER),
    (("complex", "_fft", "fft", "view_as_complex", "view_as_real", "polar", "real"), _COMPLEX),
    (
        (
            "linalg",
            "_linalg",
            "cholesky",
            "triangular_solve",
            "geqrf",
            "svd",
            "lu",
            "mode",
            "_ctc",
            "gcd",
            "lcm",
        ),
        _SEQUENCE,
    ),
    (
        (
            "digamma",
            "erfinv",
            "lgamma",
            "polygamma",
            "i0",
            "igamma",
            "special",
            "zeta",
            "nextafter",
        ),
        _FUNCTION,
    ),
)


def without_translation(target: Any, name: str) -> str:  # noqa: ANN401 - whatever FX calls
    """One sentence about an operator that the translator does not know."""
    tags = getattr(target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return f"no translation of {_RANDOM}"
    if torch.Tag.dynamic_output_shape in tags:
        return f"no translation of {_SHAPE}"
    short = name.split(".")[1] if name.count(".") > 1 else name
    for names, hint in _HINTS:
        if short.startswith(names):
            return f"no translation of {hint}"
    return "no translation of this operator; the same computed from simpler operators does"
