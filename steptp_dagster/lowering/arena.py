"""The memory a kernel runs in: where each tensor lies, how it is poisoned and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.lowering.storage import NUMPY, STORED_AS

ALIGNMENT: Final = 64
_GUARD: Final = 64
_GUARD_BYTE: Final = 0xC5
#: All ones is NaN in every float format; integers get a pattern far from any valid value.
_FLOAT_POISON: Final = 0xFF
_INTEGER_POISON: Final = 0xA5


class KernelFault(RuntimeError):
    """A compiled program did what no valid program does. ``reason`` is its kebab-case name."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in the arena: LEIR dtype, shape (instances of ``l`` and ``s`` included), offset."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Bytes taken, without padding."""
        return DTYPES[self.dtype].bytes * prod(self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """All tensors of a program, in the order of its pointer table, and the size in bytes."""

    places: tuple[Place, ...]
    size: int


def lay_out(tensors: Sequence[tuple[str, str, tuple[int, ...]]]) -> Layout:
    """Place tensors (name, LEIR dtype, shape) one after the other with guard zones between."""
    places = []
    offset = _GUARD
    for name, dtype, shape in tensors:
        place = Place(name, dtype, shape, offset)
        places.append(place)
        end = offset + place.size + _GUARD
        offset = -(-end // ALIGNMENT) * ALIGNMENT
    return Layout(tuple(places), offset)


class Arena:
    """One run's memory: all poison, then the sources; afterwards checked and read."""

    def __init__(self, layout: Layout) -> None:
        raw = np.empty(layout.size + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self._bytes = raw[start : start + layout.size]
        self._bytes.fill(_GUARD_BYTE)
        self._layout = layout
        self._by_name = {place.name: place for place in layout.places}
        for place in layout.places:
            poison = _FLOAT_POISON if DTYPES[place.dtype].is_float else _INTEGER_POISON
            self._of(place).fill(poison)

    @property
    def addresses(self) -> list[int]:
        """Addresses of the tensors in the order of the pointer table."""
        base = self._bytes.ctypes.data
        return [base + place.offset for place in self._layout.places]

    @property
    def memory(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """All bytes, for machines that have memory of their own: a view."""
        return self._bytes

    def arrays(self) -> "list[np.ndarray[Any, Any]]":
        """Flat views of the tensors in their storage types, in the order of the pointer table."""
        return [self._of(p).view(STORED_AS[p.dtype]) for p in self._layout.places]

    def write(self, name: str, value: "np.ndarray[Any, Any]") -> None:
        """Fill a tensor; ``value`` has its NumPy dtype and its shape."""
        place = self._by_name[name]
        self._of(place)[:] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)

    def read(self, name: str) -> "np.ndarray[Any, Any]":
        """A copy of a tensor's elements."""
        place = self._by_name[name]
        raw = self._of(place).copy()
        if place.dtype == "bool":
            return np.asarray(raw != 0).reshape(place.shape)
        return raw.view(NUMPY[place.dtype]).reshape(place.shape)

    def check(self, sources: Mapping[str, "np.ndarray[Any, Any]"]) -> None:
        """Raise KernelFault if a source changed or a guard zone was written."""
        for name, value in sources.items():
            now = self._of(self._by_name[name])
            if not np.array_equal(now, np.ascontiguousarray(value).reshape(-1).view(np.uint8)):
                raise KernelFault("input-overwritten", f"the program changed its input {name}")
        end = 0
        for place in self._layout.places:
            if np.any(self._bytes[end : place.offset] != _GUARD_BYTE):
                raise KernelFault("out-of-bounds-write", f"memory before {place.name} was written")
            end = place.offset + place.size
        if np.any(self._bytes[end:] != _GUARD_BYTE):
            raise KernelFault("out-of-bounds-write", "memory after the last tensor was written")

    def _of(self, place: Place) -> "np.ndarray[Any, Any]":
        return self._bytes[place.offset : place.offset + place.size]
