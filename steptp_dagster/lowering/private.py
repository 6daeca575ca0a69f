"""Memory of ``l`` and ``s`` tensors on a machine without threads.

A thread's tensor is an array with one instance per thread, a block's one per block. Since the
lowering runs loops serially, instances that cannot be alive together share memory: an axis whose
loop stands around *all* accesses, with nothing but launch loops and other such axes outside it,
runs one instance from its first access to its last before the next begins. Launches share memory
for the same reason. (That no instance reads what an earlier one left is the static checker's to
guarantee, ``leir.validity``.)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steptp_dagster.leir.ast import BLOCK_AXES, Equation, Loop, Nest, Program
from steptp_dagster.leir.walk import Path, accesses_in, expressions

#: A loop with its identity: path of its nest, position in it. (Equal loops may stand twice.)
Placed = tuple[Path, int, Loop]


@dataclass(frozen=True, slots=True)
class Instances:
    """The leading dimensions that a private tensor's array has: hardware axes and extents."""

    axes: tuple[str, ...]
    extents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlacedEquation:
    """An equation with its path and its enclosing loops, outermost first."""

    path: Path
    loops: tuple[Placed, ...]
    equation: Equation


def placed_equations(
    nest: Nest, path: Path, outer: tuple[Placed, ...] = ()
) -> Iterator[PlacedEquation]:
    """The equations of a nest in text order, their loops told apart by place."""
    loops = outer + tuple((path, depth, loop) for depth, loop in enumerate(nest.loops))
    for position, child in enumerate(nest.body):
        below = (*path, position)
        if isinstance(child, Nest):
            yield from placed_equations(child, below, loops)
        else:
            yield PlacedEquation(below, loops, child)


def private_instances(program: Program) -> dict[str, Instances]:
    """For every ``l`` and ``s`` tensor, the axes that its array is extended by."""
    return {
        name: found
        for position, nest in enumerate(program.nests)
        for name, found in _of_nest(nest, (position,))
    }


def launch_depth(nest: Nest) -> int:
    """How many of the outermost loops of a top-level nest launch its kernel.

    They are the loops around the lowest common ancestor of all ``B`` loops (0 without any).
    """
    chains = [
        chain for placed in placed_equations(nest, ()) if (chain := _down_to_axis(placed.loops))
    ]
    if not chains:
        return 0
    common = _common_prefix(chains)
    first = next((i for i, (_, _, loop) in enumerate(common) if loop.axis is not None), None)
    return len(common) if first is None else first


def _of_nest(nest: Nest, path: Path) -> Iterator[tuple[str, Instances]]:
    users: dict[str, tuple[str, list[tuple[Placed, ...]]]] = {}
    extents: dict[str, int] = {}
    for placed in placed_equations(nest, path):
        for _, _, loop in placed.loops:
            if loop.axis is not None:
                extents[loop.axis] = max(extents.get(loop.axis, 0), loop.start + loop.extent)
        for expr in expressions(placed.equation):
            for access in accesses_in(expr):
                if access.scope != "g":
                    users.setdefault(access.name, (access.scope, []))[1].append(placed.loops)
    launches = launch_depth(nest)
    for name, (scope, chains) in users.items():
        axes = {axis for chain in chains for axis in instance_axes(scope, chain)}
        for _, _, loop in _common_prefix(chains)[launches:]:
            if loop.axis not in axes:
                break
            axes.discard(loop.axis)
        kept = tuple(sorted(axes))
        yield name, Instances(kept, tuple(extents[axis] for axis in kept))


def instance_axes(scope: str, loops: Iterable[Placed]) -> Iterator[str]:
    """The axes that tell the instances of a tensor of this scope apart."""
    for _, _, loop in loops:
        if loop.axis is not None and (scope == "l" or (scope == "s" and loop.axis in BLOCK_AXES)):
            yield loop.axis


def _down_to_axis(loops: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """The loops down to the innermost one that is bound to an axis."""
    last = max((i for i, (_, _, loop) in enumerate(loops) if loop.axis is not None), default=-1)
    return loops[: last + 1]


def _common_prefix(chains: list[tuple[Placed, ...]]) -> tuple[Placed, ...]:
    """The loops that stand around all of the statements with these chains of loops."""
    common = chains[0]
    for chain in chains[1:]:
        same = 0
        while same < min(len(common), len(chain)) and common[same][:2] == chain[same][:2]:
            same += 1
        common = common[:same]
    return common
