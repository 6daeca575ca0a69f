"""The dispatch table: core ATen overload -> the function that translates it.

A translating function takes the ``Call`` and every argument of the operator's schema in order,
defaults filled in, tensors as ``Value``; it returns a ``Value`` or, for several results, a tuple.
To add an operator, write such a function in the module of its family:

    @operator("aten.neg.default")
    def neg(call: Call, x: Value) -> Value: ...

What a function cannot translate it refuses with ``Unsupported(argument, message)``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.translate.builder import Builder
from steptp_dagster.translate.values import Value

Result = Value | tuple[Value, ...]
Translator = Callable[..., Result]
_T = TypeVar("_T", bound=Translator)

#: Name of the overload (``aten.neg.default``) -> translating function.
OPERATORS: Final[dict[str, Translator]] = {}


class Unsupported(Exception):
    """An operator, or one form of one of its arguments, has no translation."""

    def __init__(self, argument: str, message: str) -> None:
        """Name the argument (empty for the operator as a whole) and say what would work."""
        super().__init__(message)
        self.argument = argument
        self.message = message


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator: where its nests go, and what PyTorch says of its results.

    ``used`` holds the positions of those results that something reads; ``plain`` tells whether the
    first tensor argument lies in memory in row-major order, without gaps.
    """

    builder: Builder
    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    used: frozenset[int] = frozenset({0})
    plain: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.shapes[0]

    @property
    def dtype(self) -> str:
        """LEIR dtype of the first result."""
        return self.dtypes[0]

    @property
    def accumulator(self) -> str:
        """The dtype in which reductions to the first result accumulate (f32 for f16)."""
        return DTYPES[self.dtype].evaluation.name

    def operand(self, value: Any) -> Value:  # noqa: ANN401 - one argument as FX gives it
        """A tensor argument broadcast to the shape of the result."""
        if not isinstance(value, Value):
            raise Unsupported("self", f"expected a tensor, found {value!r}")
        return value.broadcast(self.shape)


def operator(*names: str) -> Callable[[_T], _T]:
    """Register a translating function for overloads; a name registered twice is a ValueError."""

    def register(function: _T) -> _T:
        for name in names:
            if name in OPERATORS:
                raise ValueError(f"two translations of {name}")
            OPERATORS[name] = function
        return function

    return register


def axis(dim: int, rank: int) -> int:
    """A dimension number in 0 .. rank - 1 (0 for scalars, as PyTorch has it)."""
    return dim % rank if rank else 0
