"""Small shapes for a source that is too large to run: those of its *siblings* (``siblings``)."""

import random
from collections.abc import Sequence
from typing import Final

from steptp_dagster.sources.base import Shape, Source, SourceError

#: Siblings of one source.
COUNT: Final = 5
#: Draws among which the siblings are chosen.
_DRAWS: Final = 48
#: Divisors by which extents are told apart: splits take other forms where they do not divide.
_DIVISORS: Final = (2, 3, 4, 8)


def sibling_shapes(source: Source, shape: Shape, count: int = COUNT) -> tuple[dict[str, int], ...]:
    """Small shapes of the structure of ``shape``: divisible alike if there are such, and unlike.

    The same for equal shapes; fewer than ``count``, or none, where there are not that many.
    """
    rng = random.Random(repr(sorted(shape.items())))
    found: dict[tuple[int, ...], dict[str, int]] = {}
    try:
        for _ in range(_DRAWS):
            drawn = source.sibling(shape, rng)
            found.setdefault(tuple(drawn.values()), drawn)
    except SourceError:
        return ()
    ranked = sorted(found.values(), key=lambda s: (-_alike(shape, s), source.work(s)))
    chosen = ranked[:1]
    while len(chosen) < min(count, len(ranked)):
        rest = [s for s in ranked if s not in chosen]
        chosen.append(max(rest, key=lambda s: 2 * _apart(chosen, s) + _alike(shape, s)))
    return tuple(chosen)


def _alike(large: Shape, small: Shape) -> int:
    """How often divisors divide both or neither."""
    return sum((large[n] % d == 0) == (small[n] % d == 0) for n in large for d in _DIVISORS)


def _apart(chosen: Sequence[Shape], other: Shape) -> int:
    """How many extents differ from those of every shape that is chosen already."""
    return sum(all(other[n] != s[n] for s in chosen) for n in other)
