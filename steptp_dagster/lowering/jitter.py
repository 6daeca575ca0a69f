"""Programs whose roundings in arithmetic err by up to one unit in the last place more, up or down.

A result may be exact by luck: five times one number, summed and divided by five, gives it back.
What an algorithm's roundings may do to its results is seen when each of them errs: Monte Carlo
arithmetic (D. S. Parker, "Monte Carlo Arithmetic", UCLA, 1997), here in directions that are a
hash of the operation's place and of the indices of the loops around it, so that every run gives
the same bits.

Moved are results of ``+ - * /`` of floats, of ``sqrt`` and of the C library's functions (``exp``,
``**`` and the like), in the type that they are computed in; and f32 values on their way into f16
or bf16 tensors, unless those hold them as they are. Everything else stays: copies, maxima,
choices, signs, roundings to integers, conversions of integers and of f64 to a narrower type,
literals.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tvm import tirx

from steptp_dagster.lowering.machine import Llvm
from steptp_dagster.lowering.storage import narrow, widen
from steptp_dagster.lowering.tir import Node, Variable, integer, real

#: Half a unit in the last place, relative, by the type that is rounded to. Results of float64 are
#: moved by a whole one: there is nothing between them and their neighbours.
_HALF_UNIT: Final = {"f16": 2.0**-11, "bf16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-52}
#: Primes: weights of a place and of indices, and for each round of the hash a modulus and a factor.
_PLACE: Final = 6700417
_WEIGHTS: Final = (7919, 104729, 1299709, 15485863, 32452843, 49979687)
_ROUNDS: Final = ((2147483647, 48271), (1000003, 742938), (32749, 17389))
_LAST: Final = 32719


@dataclass(frozen=True)
class Jittered(Llvm):
    """The llvm machine with such errors. ``indices`` are the loops around; places are counted.

    Every operand and result stands in the new expressions once, so that they stay small.
    """

    indices: Mapping[str, Variable]
    places: Iterator[int]

    def rounded(self, op: str, left: Node, right: Node, dtype: str) -> Node:
        """See ``Machine``."""
        return self._moved(super().rounded(op, left, right, dtype), dtype, dtype)

    def rounding(self, name: str, value: Node, dtype: str) -> Node:
        """See ``Machine``."""
        result = super().rounding(name, value, dtype)
        return self._moved(result, dtype, dtype) if name == "sqrt" else result

    def library(self, name: str, operands: tuple[Node, ...], dtype: str) -> Node:
        """See ``Machine``."""
        return self._moved(super().library(name, operands, dtype), dtype, dtype)

    def kept(self, dtype: str, source: str, value: Node) -> Node:
        """A value about to be stored as LEIR type ``dtype``, moved where f32 is rounded to less."""
        if dtype not in _HALF_UNIT or source != "float32":
            return value
        back = widen(dtype, narrow(dtype, source, value, self))
        return tirx.Select(tirx.EQ(back, value), value, self._moved(value, source, dtype))

    def _moved(self, value: Node, dtype: str, unit: str) -> Node:
        """A value of a TIR dtype, moved up or down by half a unit of a type (f64: a whole one)."""
        size = _HALF_UNIT[unit]
        up, down = real("float64", 1.0 + size), real("float64", 1.0 - size)
        factor = tirx.Select(self._direction(), up, down)
        if dtype == "float64":
            return tirx.Mul(value, factor)
        return tirx.Cast(dtype, tirx.Mul(tirx.Cast("float64", value), factor))

    def _direction(self) -> Node:
        """A bit as a TIR ``bool``. All numbers stay far below the end of int64."""
        number = integer("int64", _PLACE * (next(self.places) % 65536 + 1))
        for k, index in enumerate(self.indices.values()):
            weight = integer("int64", _WEIGHTS[k % len(_WEIGHTS)])
            number = tirx.Add(number, tirx.Mul(weight, index))
        for modulus, factor in _ROUNDS:
            remainder = tirx.Mod(number, integer("int64", modulus))
            number = tirx.Mul(remainder, integer("int64", factor))
        bit = tirx.Mod(tirx.Mod(number, integer("int64", _LAST)), integer("int64", 2))
        return tirx.EQ(bit, integer("int64", 0))
