"""The known variables of a program: inputs, parameters, constants and outputs.

LEIR text does not declare shapes, so a program travels with its signature. Every variable of it
has scope ``g``; a strategy may not rename, reshape, retype or rescope one.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal

from steptp_dagster.leir.ast import InvalidNode, Program, is_tensor_name
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.lazy import lazy

Role = Literal["input", "param", "const", "output"]
Scalar = int | float | bool


@dataclass(frozen=True, slots=True)
class Variable:
    """One known variable.

    ``shape`` is in elements, ``()`` for a scalar. ``low`` and ``high`` bound the values of an
    input or parameter (both inclusive), where the program relies on them. ``values`` holds a
    constant's elements in row-major order (NaN-free; floats or ints as the dtype demands).

    Raises InvalidNode for a bad name, an unknown dtype, an extent < 1, a value range that is
    empty or on an output, or constants whose number of values does not fit their shape.
    """

    role: Role
    name: str
    dtype: str
    shape: tuple[int, ...]
    low: Scalar | None = None
    high: Scalar | None = None
    values: tuple[Scalar, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse variables that the file form cannot state."""
        if not is_tensor_name(self.name):
            raise InvalidNode(f"not a tensor name: {self.name!r}")
        if self.dtype not in DTYPES:
            raise InvalidNode(f"unknown dtype {self.dtype!r}; one of {' '.join(DTYPES)}")
        if any(extent < 1 for extent in self.shape):
            raise InvalidNode(f"{self.name} has an extent below 1: {list(self.shape)}")
        if (self.low is None) != (self.high is None):
            raise InvalidNode(f"{self.name}: a value range has both ends")
        if self.low is not None and self.high is not None:
            if self.role not in ("input", "param"):
                raise InvalidNode(f"{self.name}: only inputs and parameters have a value range")
            if self.low > self.high:
                raise InvalidNode(f"{self.name}: empty value range {self.low}..{self.high}")
        if (self.role == "const") != (self.values is not None):
            raise InvalidNode(f"{self.name}: constants have values, other variables have none")
        if self.values is not None and len(self.values) != prod(self.shape):
            raise InvalidNode(
                f"{self.name}: {len(self.values)} values for shape {list(self.shape)}"
            )


@dataclass(frozen=True)
class Signature:
    """The known variables in order. Raises InvalidNode for doubled names or no output."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        """Refuse doubled names and programs without a result."""
        names = [v.name for v in self.variables]
        doubled = sorted({n for n in names if names.count(n) > 1})
        if doubled:
            raise InvalidNode(f"declared twice: {', '.join(doubled)}")
        if not any(v.role == "output" for v in self.variables):
            raise InvalidNode("a signature has at least one output")

    @lazy
    def by_name(self) -> dict[str, Variable]:
        """Variables by name."""
        return {v.name: v for v in self.variables}

    @lazy
    def is_output(self) -> dict[str, bool]:
        """For each variable by name whether it is an output."""
        return {v.name: v.role == "output" for v in self.variables}

    @lazy
    def value_ranges(self) -> dict[str, tuple[Scalar, Scalar]]:
        """Lowest and highest value of the variables of which they are known, by name."""
        found: dict[str, tuple[Scalar, Scalar]] = {}
        for v in self.variables:
            if v.values:
                found[v.name] = min(v.values), max(v.values)
            elif v.low is not None and v.high is not None:
                found[v.name] = v.low, v.high
        return found

    @lazy
    def outputs(self) -> tuple[Variable, ...]:
        """The outputs, in order."""
        return tuple(v for v in self.variables if v.role == "output")

    @lazy
    def sources(self) -> tuple[Variable, ...]:
        """Inputs, parameters and constants, in order: what is never written."""
        return tuple(v for v in self.variables if v.role != "output")


@dataclass(frozen=True)
class SignedProgram:
    """A program with its signature: the unit that every stage passes on."""

    program: Program
    signature: Signature
