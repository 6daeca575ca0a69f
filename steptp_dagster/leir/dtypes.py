"""Scalar types of LEIR: names, sizes, ranges and their NumPy counterparts.

``f16`` and ``bf16`` are memory formats only: a value of these types is widened to
``f32`` when it is read and rounded once when it is stored (``docs/leir.md``, Types).
"""

from dataclasses import dataclass
from typing import Final, Literal

type_kinds = Literal["float", "int", "bool"]


@dataclass(frozen=True, slots=True)
class DType:
    """One scalar type.

    ``bits`` is the size in memory. ``lowest`` and ``highest`` are the identities of ``max`` and
    ``min``: infinities for floats, the type's range for integers.
    """

    name: str
    kind: type_kinds
    bits: int
    numpy: str

    @property
    def bytes(self) -> int:
        """Size of one element in memory, in bytes."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether the type is an integer type (bool is not)."""
        return self.kind == "int"

    @property
    def signed(self) -> bool:
        """Whether an integer type has a sign."""
        return self.name.startswith("i")

    @property
    def evaluation(self) -> "DType":
        """The type in which values read from memory of this type take part in arithmetic."""
        return DTYPES["f32"] if self.name in ("f16", "bf16") else self


DTYPES: Final[dict[str, DType]] = {
    d.name: d
    for d in (
        DType("f16", "float", 16, "float16"),
        DType("bf16", "float", 16, "bfloat16"),
        DType("f32", "float", 32, "float32"),
        DType("f64", "float", 64, "float64"),
        DType("i8", "int", 8, "int8"),
        DType("u8", "int", 8, "uint8"),
        DType("i16", "int", 16, "int16"),
        DType("i32", "int", 32, "int32"),
        DType("i64", "int", 64, "int64"),
        DType("bool", "bool", 8, "bool"),
    )
}
SCOPES: Final[dict[str, str]] = {
    "g": "global memory",
    "s": "shared memory, one instance per thread block",
    "l": "local memory, one instance per thread",
}
