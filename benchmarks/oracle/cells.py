"""Tensors as dictionaries: one integer key for the coordinates of an element."""

from math import prod
from typing import Any, Final

import numpy as np

Cells = dict[int, Any]
Array = np.ndarray[Any, Any]

#: Bits of one coordinate in the key of a cell, and what is added to make it positive.
BITS: Final = 16
SHIFT: Final = 4096


def decoded(key: int) -> tuple[int, ...]:
    """The coordinates in a key, all that are not plainly absent."""
    found = []
    while key:
        found.append((key & ((1 << BITS) - 1)) - SHIFT)
        key >>= BITS
    return tuple(reversed(found))


def cells_of(array: Array) -> Cells:
    """The cells of an array."""
    flat = array.tolist() if array.ndim else [array.tolist()]
    if array.ndim > 1:
        flat = array.reshape(-1).tolist()
    keys = np.zeros((), object)
    for extent in array.shape:
        keys = keys[..., None] * (1 << BITS) + (np.arange(extent).astype(object) + SHIFT)
    return dict(zip(np.reshape(keys, -1).tolist(), flat, strict=True))


def array_of(cells: Cells, shape: tuple[int, ...]) -> tuple[Array, str | None]:
    """The array in cells, and what is wrong with them."""
    array = np.full(shape, np.nan)
    flat = array.reshape(-1)
    wanted = cells_of(np.arange(max(1, prod(shape))).reshape(shape))
    for key, place in wanted.items():
        if key not in cells:
            return array, f"nobody writes {list(decoded(key))}"
        flat[place] = cells[key]
    if len(cells) != len(wanted):
        beyond = next(k for k in cells if k not in wanted)
        return array, f"writes outside its shape: {list(decoded(beyond))}"
    return array, None
