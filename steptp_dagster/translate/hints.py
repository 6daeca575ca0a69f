"""What to say of an operator that has no translation: why, and what would work instead."""

from typing import Any, Final

import torch
from torch._ops import HigherOrderOperator

from steptp_dagster.translate.export import DTYPES

_RANDOM: Final = (
    "random numbers, which no program over its inputs gives; "
    "call .eval(), or pass the random tensor as an input"
)
_SHAPE: Final = (
    "a result whose shape depends on data; torch.where, or a reduction under a mask, keeps shapes"
)
_SPARSE: Final = "sparse tensors; dense ones do"
_QUANTIZED: Final = "quantized numbers; floats, rounded and clamped by elementwise operators, do"
_PACKED: Final = "sequences of different lengths; padded ones, and a mask, do"
_COMPLEX: Final = "complex numbers; real and imaginary parts as tensors of their own do"
_SEQUENCE: Final = (
    "an algorithm with control flow that depends on data; its result as an input does"
)
_FUNCTIONS: Final = (
    "an operator that is given functions to call; torch.where, a loop in Python over a fixed "
    "range, nn.LSTM, nn.GRU and nn.RNN do"
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
    (("_to_sparse", "_sparse", "sparse", "_to_dense", "to_dense", "coalesce"), _SPARSE),
    (("quantize", "dequantize", "fake_quantize", "_fake_quantize", "int_repr"), _QUANTIZED),
    (("_pack_padded", "_pad_packed"), _PACKED),
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
    if isinstance(target, HigherOrderOperator):
        return f"no translation of {_FUNCTIONS}"
    if torch.Tag.nondeterministic_seeded in tags:
        return f"no translation of {_RANDOM}"
    if torch.Tag.dynamic_output_shape in tags:
        return f"no translation of {_SHAPE}"
    short = name.split(".")[1] if name.count(".") > 1 else name
    for names, hint in _HINTS:
        if short.startswith(names):
            return f"no translation of {hint}"
    return "no translation of this operator; the same computed from simpler operators does"


def obstacle_of(fake: object) -> str:
    """Why LEIR cannot hold a tensor that PyTorch describes as ``fake``; empty where it can."""
    if not isinstance(fake, torch.Tensor):
        return f"a result of type {type(fake).__name__}; tensors do"
    if fake.is_complex():
        return f"{fake.dtype}: {_COMPLEX}"
    if fake.layout != torch.strided:
        return _SPARSE
    if fake.dtype not in DTYPES:
        return f"dtype {fake.dtype}; LEIR has {' '.join(DTYPES.values())}"
    if any(not isinstance(n, int) for n in fake.shape):
        return _SHAPE
    if any(n < 1 for n in fake.shape):
        return f"an empty tensor of shape {list(fake.shape)}"
    if fake.device.type == "meta":
        return "a tensor on the meta device, which has no elements; the CPU does"
    return ""
