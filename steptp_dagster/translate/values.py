"""Values: what an operator takes and gives, as a function from coordinates to an expression.

A ``Value`` is not a tensor in memory but the recipe for reading one element. Views (permute,
expand, slice, ...) only wrap the recipe, so a chain of them costs nothing and ends up composed in
the subscripts of the nest that reads it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.translate.coords import Coord, Coords, constant

Element = Callable[[Coords], Expr]


@dataclass(frozen=True, slots=True)
class Value:
    """``shape`` elements of LEIR type ``dtype``; ``element(coords)`` reads one of them.

    ``tensor`` is the name of the tensor in memory that this value is, element for element, or
    None for views and for values that exist only as expressions (constants, index ramps).
    """

    shape: tuple[int, ...]
    dtype: str
    element: Element
    tensor: str | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __call__(self, *coords: Coord) -> Expr:
        """The element at ``coords``."""
        return self.element(coords)

    def view(self, shape: tuple[int, ...], back: Callable[[Coords], Coords]) -> "Value":
        """The view of ``shape`` whose element at ``c`` is this value's element at ``back(c)``."""
        element = self.element
        return Value(shape, self.dtype, lambda coords: element(back(coords)))

    def broadcast(self, shape: tuple[int, ...]) -> "Value":
        """This value expanded to ``shape`` by the usual rules (aligned at the last dimension)."""
        if shape == self.shape:
            return self
        lead = len(shape) - self.rank

        def back(coords: Coords) -> Coords:
            return tuple(
                constant(0) if extent == 1 else c
                for extent, c in zip(self.shape, coords[lead:], strict=True)
            )

        return self.view(shape, back)

    @property
    def evaluation(self) -> str:
        """The dtype in which this value takes part in arithmetic (f16 -> f32)."""
        return DTYPES[self.dtype].evaluation.name

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return DTYPES[self.dtype].is_float

    def retyped(self, dtype: str) -> "Value":
        """The same elements under another dtype that holds all of them in arithmetic."""
        return replace(self, dtype=dtype, tensor=None)


#: Where a value stands for itself: every tensor of a program is global until a strategy moves it.
SCOPE: Final = "g"


def stored(name: str, dtype: str, shape: tuple[int, ...]) -> Value:
    """The value that is tensor ``name`` in global memory."""

    def element(coords: Coords) -> Expr:
        return access(name, dtype, coords)

    return Value(shape, dtype, element, name)


def access(name: str, dtype: str, coords: Coords) -> Access:
    """The element of a global tensor at ``coords``."""
    return Access(name, dtype, SCOPE, tuple(c.to_expr() for c in coords))


def filled(shape: tuple[int, ...], dtype: str, expr: Expr) -> Value:
    """A value all of whose elements are ``expr``, which reads no coordinate."""
    return Value(shape, dtype, lambda _: expr)
