"""Which other extents of a program are worth a try.

A file says so itself by ``SHAPES``; else its constants get small values, or its inputs fewer rows.
Whether a program takes them is found out by translating it.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Final

#: In a shape: how many rows of the example inputs are kept. No identifier is spelt so.
ROWS: Final = "dim 0"
#: Up to this value a constant says how the program is built (a kernel, a stride, groups), so it
#: is kept while extents shrink.
STRUCTURE: Final = 8
#: Largest extents, in the order in which they are tried.
_TARGETS: Final = (8, 16, 32, 64)
#: Small, prime, and one; what samples that differ from the given example draw from.
_EXTENTS: Final = (8, 7, 16, 11, 12, 13, 5, 3, 1)
_STRUCTURES: Final = (1, 2, 3, 4, 5)
_ROWS: Final = (3, 2, 5, 1, 7, 4)
_DRAWS: Final = 12


def candidates(
    constants: Mapping[str, int], rows: int | None, rng: random.Random
) -> Iterator[dict[str, int]]:
    """Shapes in the order in which they are tried.

    ``constants`` are those of the file, ``rows`` the first extent of the example inputs.
    """
    seen: list[dict[str, int]] = []
    for shape in _all(constants, rows, rng):
        if shape and shape not in seen:
            seen.append(shape)
            yield shape


def _all(
    constants: Mapping[str, int], rows: int | None, rng: random.Random
) -> Iterator[dict[str, int]]:
    if any(value > STRUCTURE for value in constants.values()):
        for target in _TARGETS:
            yield _changed(
                constants, {n: shrunk(v, target, constants) for n, v in constants.items()}
            )
    if constants:
        for _ in range(_DRAWS):
            yield _changed(constants, {n: _drawn(v, rng) for n, v in constants.items()})
    if rows is not None:
        yield from ({ROWS: n} for n in _ROWS if n < rows)


def shrunk(value: int, target: int, constants: Mapping[str, int]) -> int:
    """A constant as small as it gets when the largest of all is halved until ``target``.

    All are halved equally often, so that powers of two that divide each other still do.
    """
    if value <= STRUCTURE:
        return value
    halvings = max((max(constants.values()) // target).bit_length() - 1, 0)
    return max(STRUCTURE, value >> halvings)


def _drawn(value: int, rng: random.Random) -> int:
    if value > STRUCTURE:
        return rng.choice(_EXTENTS)
    return rng.choice(_STRUCTURES) if value and rng.random() < 0.3 else value


def _changed(constants: Mapping[str, int], values: Mapping[str, int]) -> dict[str, int]:
    """All constants that a sample sets, or nothing where it sets none to another value."""
    return dict(values) if values != dict(constants) else {}
