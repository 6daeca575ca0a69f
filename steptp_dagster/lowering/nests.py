"""What the machine code of one top-level nest is made from, so that it is made once.

A step changes one nest or two; the others come again in every candidate of an original, under
the same names or others. ``NestKey`` is equal for nests whose code is the same, whatever program
they stand in: the canonical text (``leir.canonical``), how each tensor is kept, which updates
start from an identity, the precision, and the level of optimisation.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Final

from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.canonical import CanonicalNest, canonical_nest
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import equations_in
from steptp_dagster.lowering.abi import OptLevel
from steptp_dagster.lowering.lower import Facts
from steptp_dagster.lowering.precision import Precision
from steptp_dagster.lowering.private import placed_equations

#: From this many executed equations on, optimised code repays the time that it takes to make.
_OPTIMISE_FROM: Final = 100_000

#: Whether an equation starts from its identity, and after how many loops.
_Start = tuple[bool, int]


@dataclass(frozen=True, slots=True)
class NestKey:
    """Equal exactly where the code is. ``tensors``: dtype, axes and shape, by appearance."""

    text: str
    tensors: tuple[tuple[str, tuple[str, ...], tuple[int, ...]], ...]
    starts: tuple[_Start, ...]
    precision: Precision
    level: OptLevel


@dataclass(frozen=True, slots=True)
class NestUse:
    """A nest of a program: its key, and the names of its tensors in the key's order."""

    key: NestKey
    names: tuple[str, ...]


def nest_uses(facts: Facts, level: OptLevel | None = None) -> Iterator[NestUse]:
    """The nests of a program in order, as written; ``level`` instead of the one that pays."""
    updates = classify(facts.signed)
    for position, nest in enumerate(facts.signed.program.nests):
        canonical = _canonical(nest)
        kept = (facts.tensors[name] for name in canonical.tensors)
        starts = []
        for placed in placed_equations(nest, (position,)):
            update = updates[placed.path]
            starts.append((update.init == "identity", update.init_depth))
        chosen = level_of(nest) if level is None else level
        key = NestKey(
            canonical.text,
            tuple((t.dtype, t.axes, t.shape) for t in kept),
            tuple(starts),
            "working",
            chosen,
        )
        yield NestUse(key, canonical.tensors)


def uses_in(uses: Iterable[NestUse], precision: Precision) -> list[NestUse]:
    """The same nests in a precision."""
    if precision == "working":
        return list(uses)
    return [NestUse(replace(use.key, precision=precision), use.names) for use in uses]


def level_of(nest: Nest) -> OptLevel:
    """Whether optimised code pays for a nest that runs some thirty times."""
    return 1 if executed(nest) >= _OPTIMISE_FROM else 0


def executed(nest: Nest) -> int:
    """How many equation instances one run of a nest executes, guards counted as true."""
    return sum(prod(loop.extent for loop in e.loops) for e in equations_in(nest))


@lru_cache(maxsize=1024)
def _canonical(nest: Nest) -> CanonicalNest:
    return canonical_nest(nest)
