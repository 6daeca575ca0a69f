"""The memory kernels run in: where each tensor lies, how it is poisoned and checked.

Several runs of a kernel are one call, each on a row of memory of its own (``Arenas``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True)
class Layout:
    """All tensors of a program in order, and the size in bytes, a multiple of the alignment."""

    places: tuple[Place, ...]
    size: int

    @cached_property
    def by_name(self) -> dict[str, Place]:
        """The places by name."""
        return {place.name: place for place in self.places}

    @cached_property
    def guards(self) -> "np.ndarray[Any, Any]":
        """The positions of all bytes that belong to no tensor."""
        starts = [0, *(place.offset + place.size for place in self.places)]
        ends = [*(place.offset for place in self.places), self.size]
        return np.concatenate([np.arange(s, e) for s, e in zip(starts, ends, strict=True)])

    def fresh(self) -> "np.ndarray[Any, Any]":
        """The bytes of memory that nothing was written to; not kept: programs may be large."""
        filled = np.full(self.size, _GUARD_BYTE, np.uint8)
        for place in self.places:
            poison = _FLOAT_POISON if DTYPES[place.dtype].is_float else _INTEGER_POISON
            filled[place.offset : place.offset + place.size] = poison
        return filled


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


class Arenas:
    """The memory of ``count`` runs: all poison, then the sources; afterwards checked and read."""

    def __init__(self, layout: Layout, count: int) -> None:
        raw = np.empty(count * layout.size + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.layout = layout
        self.rows = raw[start : start + count * layout.size].reshape(count, layout.size)
        self.rows[:] = layout.fresh()

    @property
    def base(self) -> int:
        """Address of the memory of the first run; the next one's is ``layout.size`` further."""
        return self.rows.ctypes.data

    def of(self, name: str) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """The bytes of a tensor, a row for each run: a view."""
        place = self.layout.by_name[name]
        return self.rows[:, place.offset : place.offset + place.size]

    def write(self, name: str, values: "np.ndarray[Any, Any]") -> None:
        """Fill a tensor: ``values`` has its NumPy dtype and one array of its shape for each run."""
        self.of(name)[:] = _bytes(values)

    def read(self, name: str) -> "np.ndarray[Any, Any]":
        """A copy of a tensor's elements in all runs."""
        place = self.layout.by_name[name]
        shape = (len(self.rows), *place.shape)
        raw = self.of(name).copy()
        if place.dtype == "bool":
            return np.asarray(raw != 0).reshape(shape)
        return raw.view(NUMPY[place.dtype]).reshape(shape)

    def check(self, sources: Mapping[str, "np.ndarray[Any, Any]"]) -> None:
        """Raise KernelFault for the first run that changed a source or wrote a guard zone."""
        intact = (self.rows[:, self.layout.guards] == _GUARD_BYTE).all(axis=1)
        for name, given in sources.items():
            intact &= (self.of(name) == _bytes(given)).all(axis=1)
        if intact.all():
            return
        run = int(np.argmin(intact))
        for name, given in sources.items():
            if not np.array_equal(self.of(name)[run], _bytes(given)[run]):
                raise KernelFault("input-overwritten", f"the program changed its input {name}")
        end = 0
        for place in self.layout.places:
            if np.any(self.rows[run, end : place.offset] != _GUARD_BYTE):
                raise KernelFault("out-of-bounds-write", f"memory before {place.name} was written")
            end = place.offset + place.size
        raise KernelFault("out-of-bounds-write", "memory after the last tensor was written")


class Arena:
    """The memory of one run."""

    def __init__(self, layout: Layout) -> None:
        self._arenas = Arenas(layout, 1)
        self._layout = layout

    @property
    def addresses(self) -> list[int]:
        """Addresses of the tensors in the order of the pointer table."""
        return [self._arenas.base + place.offset for place in self._layout.places]

    @property
    def memory(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """All bytes, for machines that have memory of their own: a view."""
        return np.asarray(self._arenas.rows[0])

    def arrays(self) -> "list[np.ndarray[Any, Any]]":
        """Flat views of the tensors in their storage types, in the order of the pointer table."""
        return [self._arenas.of(p.name)[0].view(STORED_AS[p.dtype]) for p in self._layout.places]

    def write(self, name: str, value: "np.ndarray[Any, Any]") -> None:
        """Fill a tensor; ``value`` has its NumPy dtype and its shape."""
        self._arenas.write(name, np.asarray(value)[None])

    def read(self, name: str) -> "np.ndarray[Any, Any]":
        """A copy of a tensor's elements."""
        return np.asarray(self._arenas.read(name)[0])

    def check(self, sources: Mapping[str, "np.ndarray[Any, Any]"]) -> None:
        """Raise KernelFault if a source changed or a guard zone was written."""
        self._arenas.check({name: np.asarray(value)[None] for name, value in sources.items()})


def _bytes(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """Arrays, one for each run, as rows of bytes."""
    return np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint8)
