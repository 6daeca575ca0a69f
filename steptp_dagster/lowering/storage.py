"""How LEIR types appear in TIR: storage types, evaluation types and the conversions between them.

Storage is what memory holds: ``f16`` as IEEE halves, ``bf16`` as the upper half of a binary32 in
a ``uint16``, ``bool`` as an ``int8`` of 0 or 1. Evaluation types are what arithmetic runs in
(``dtypes.DType.evaluation``). Every conversion rounds once, to nearest even.
"""

from typing import Any, Final

import numpy as np
from ml_dtypes import bfloat16
from tvm import tirx

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.lowering.machine import Machine
from steptp_dagster.lowering.tir import Node, integer, prim, real

#: LEIR dtype -> TIR dtype of the buffer that holds it.
STORED_AS: Final[dict[str, str]] = {
    "f16": "float16",
    "bf16": "uint16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "bool": "int8",
}
#: LEIR dtype -> TIR dtype of a value read from it.
EVALUATED_AS: Final[dict[str, str]] = {
    name: "bool" if name == "bool" else STORED_AS[dtype.evaluation.name]
    for name, dtype in DTYPES.items()
}
#: LEIR dtype -> NumPy dtype of the arrays that enter and leave a kernel.
NUMPY: Final[dict[str, np.dtype[Any]]] = {
    name: np.dtype(bfloat16) if name == "bf16" else np.dtype(dtype.numpy)
    for name, dtype in DTYPES.items()
}

_BF16_NAN: Final = 0x7FC0


def is_float(dtype: str) -> bool:
    """Whether a TIR dtype is a floating-point type."""
    return dtype.startswith("float")


def widen(dtype: str, stored: Node) -> Node:
    """The value of an element of LEIR type ``dtype`` as arithmetic sees it (always exact)."""
    if dtype == "f16":
        return tirx.Cast("float32", stored)
    if dtype == "bf16":
        bits = tirx.shift_left(tirx.Cast("uint32", stored), integer("uint32", 16))
        return tirx.reinterpret(prim("float32"), bits)
    if dtype == "bool":
        return tirx.NE(stored, integer("int8", 0))
    return stored


def narrow(dtype: str, source: str, value: Node, machine: Machine) -> Node:
    """``value`` of TIR dtype ``source`` as a stored element of LEIR type ``dtype``."""
    if dtype == "bool":
        return tirx.Cast("int8", truth(source, value))
    if dtype == "bf16":
        return _to_bf16(value, source)
    return convert(value, source, STORED_AS[dtype], machine)


def truth(source: str, value: Node) -> Node:
    """Whether ``value`` differs from zero (NaN does), as a TIR ``bool``."""
    if source == "bool":
        return value
    zero = real(source, 0.0) if is_float(source) else integer(source, 0)
    return tirx.Not(tirx.EQ(value, zero))


def convert(value: Node, source: str, target: str, machine: Machine) -> Node:
    """``value`` in another TIR dtype: floats round, integers wrap, floats truncate to integers."""
    if source == target:
        return value
    if target == "bool":
        return truth(source, value)
    if is_float(source) and not is_float(target):
        return machine.truncated(value, source, target)
    return tirx.Cast(target, value)


def _to_bf16(value: Node, source: str) -> Node:
    """A value rounded once to the upper 16 bits of a binary32, ties to even."""
    if source == "float32":
        single = value
    else:
        single = _to_odd(value if source == "float64" else tirx.Cast("float64", value))
    bits = tirx.reinterpret(prim("uint32"), single)
    sixteen = integer("uint32", 16)
    even = tirx.bitwise_and(tirx.shift_right(bits, sixteen), integer("uint32", 1))
    rounded = tirx.shift_right(tirx.Add(bits, tirx.Add(even, integer("uint32", 0x7FFF))), sixteen)
    finite_or_infinite = tirx.EQ(single, single)
    return tirx.Cast(
        "uint16", tirx.Select(finite_or_infinite, rounded, integer("uint32", _BF16_NAN))
    )


def _to_odd(value: Node) -> Node:
    """A float64 as a float32, rounded to odd, so that a second rounding cannot err.

    An inexact result becomes the neighbour towards zero with its last bit set; see S. Boldo and
    G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    single = tirx.Cast("float32", value)
    back = tirx.Cast("float64", single)
    bits = tirx.reinterpret(prim("uint32"), single)
    one = integer("uint32", 1)
    zero = real("float64", 0.0)
    too_far = tirx.Or(
        tirx.And(tirx.GT(back, zero), tirx.GT(back, value)),
        tirx.And(tirx.LT(back, zero), tirx.LT(back, value)),
    )
    towards_zero = tirx.Select(too_far, tirx.Sub(bits, one), bits)
    odd = tirx.reinterpret(prim("float32"), tirx.bitwise_or(towards_zero, one))
    inexact = tirx.Or(tirx.LT(back, value), tirx.GT(back, value))
    return tirx.Select(inexact, odd, single)
