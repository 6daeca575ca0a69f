"""How much of a program runs at once, and how often its threads wait for each other.

Counted from the syntax tree alone, like ``cost``; nothing is said about time.
"""

from dataclasses import dataclass
from math import prod

from steptp_dagster.leir.ast import THREAD_AXES, Loop, Nest, Program
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.walk import nests_in


@dataclass(frozen=True, slots=True)
class Parallelism:
    """``launches`` kernels one after the other, ``at_once`` instances in parallel, ``barriers``.

    ``launches`` counts top-level nests, times the serial loops around all their bound loops.
    ``at_once`` is the largest number of instances that one launch runs in parallel: the product of
    its axes' extents, and of the ``P`` loops of one path. ``barriers`` counts how often threads of
    a block wait: the boundaries between sibling statements with thread loops inside, times the
    serial loops around them in the kernel, in all launches of the program.
    """

    launches: int
    at_once: int
    barriers: int


def parallelism(program: Program) -> Parallelism:
    """The figures of a program. Total: also on programs that are not valid."""
    figures = [_of_nest(nest) for nest in program.nests]
    return Parallelism(
        sum(f.launches for f in figures),
        max(f.at_once for f in figures),
        sum(f.barriers for f in figures),
    )


@per_nest
def _of_nest(nest: Nest) -> Parallelism:
    if not any(isinstance(statement, Nest) for statement in nest.body):
        return _of_flat(nest.loops)
    launches, barriers = _launches(nest)
    return Parallelism(launches, max(1, _at_once(nest)), launches * barriers)


def _of_flat(loops: tuple[Loop, ...]) -> Parallelism:
    """The figures of loops around equations alone, where no thread waits."""
    extents: dict[str, int] = {}
    launches = parallel = outside = 1
    for loop in loops:
        if loop.axis is not None:
            if not extents:
                launches = outside
            extents[loop.axis] = max(extents.get(loop.axis, 1), loop.extent)
        else:
            outside *= loop.extent
            parallel *= loop.extent if loop.kind == "P" else 1
    return Parallelism(launches, max(1, prod(extents.values()) * parallel), 0)


def _launches(nest: Nest) -> tuple[int, int]:
    """How often the nest's kernel is launched, and the barriers of one launch."""
    count = 1
    while True:
        first = next((i for i, loop in enumerate(nest.loops) if loop.axis is not None), None)
        if first is not None:
            kernel = Nest(nest.loops[first:], nest.body)
            return count * _trips(nest.loops[:first]), _barriers(kernel)
        bound = [s for s in nest.body if isinstance(s, Nest) and _has_axis(s)]
        if not bound:
            return 1, 0
        count *= _trips(nest.loops)
        if len(bound) > 1:
            return count, _boundaries(nest)
        (nest,) = bound


def _trips(loops: tuple[Loop, ...]) -> int:
    return prod(loop.extent for loop in loops if loop.axis is None)


def _has_axis(nest: Nest) -> bool:
    return any(loop.axis is not None for _, n in nests_in(nest) for loop in n.loops)


def _has_threads(nest: Nest) -> bool:
    return any(loop.axis in THREAD_AXES for _, n in nests_in(nest) for loop in n.loops)


def _barriers(nest: Nest) -> int:
    return _boundaries(nest) * _trips(nest.loops)


def _boundaries(nest: Nest) -> int:
    """Boundaries between siblings with thread loops inside, in one run of the body."""
    meeting = [s for s in nest.body if isinstance(s, Nest) and _has_threads(s)]
    return max(0, len(meeting) - 1) + sum(_barriers(s) for s in meeting)


def _at_once(nest: Nest) -> int:
    extents: dict[str, int] = {}
    for _, inner in nests_in(nest):
        for loop in inner.loops:
            if loop.axis is not None:
                extents[loop.axis] = max(extents.get(loop.axis, 1), loop.extent)
    return prod(extents.values()) * _parallel(nest)


def _parallel(nest: Nest) -> int:
    own = prod(loop.extent for loop in nest.loops if loop.kind == "P")
    return own * max([1, *(_parallel(s) for s in nest.body if isinstance(s, Nest))])
