"""Where a statement of a kernel stands: indices, hardware axes, and which threads take part.

All threads of a kernel run through all its serial loops; who has nothing to do is kept out at the
single equation. So every barrier is reached by every thread, whatever the extents of sibling
thread loops are. A ``B`` index *is* its axis: threads below its start or from its end on sit out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

from tvm import tirx

from steptp_dagster.leir.ast import BLOCK_AXES, THREAD_AXES, Loop
from steptp_dagster.lowering.cuda.program import Geometry
from steptp_dagster.lowering.tir import Node, Variable, integer

#: LEIR axis -> name of the CUDA variable.
CUDA_NAMES = {
    **{axis: f"blockIdx.{axis[1]}" for axis in BLOCK_AXES},
    **{axis: f"threadIdx.{axis[1]}" for axis in THREAD_AXES},
}


@dataclass(frozen=True, slots=True)
class Team:
    """The threads of one kernel: how many along each axis, and the variables that count them."""

    extents: Mapping[str, int]
    variables: Mapping[str, Variable]

    @classmethod
    def of(cls, loops: list[Loop]) -> "Team":
        """The team that all bound loops of a kernel fit into."""
        extents: dict[str, int] = {}
        for loop in loops:
            if loop.axis is not None:
                extents[loop.axis] = max(extents.get(loop.axis, 1), loop.start + loop.extent)
        ordered: dict[str, int] = {
            axis: extents[axis] for axis in (*BLOCK_AXES, *THREAD_AXES) if axis in extents
        }
        return cls(ordered, {axis: tirx.Var(CUDA_NAMES[axis], "int32") for axis in ordered})

    @property
    def geometry(self) -> Geometry:
        """Blocks and threads of the launch."""
        grid = tuple(self.extents.get(axis, 1) for axis in BLOCK_AXES)
        block = tuple(self.extents.get(axis, 1) for axis in THREAD_AXES)
        return Geometry(grid, block)  # type: ignore[arg-type]  # three of each

    @property
    def thread_axes(self) -> tuple[str, ...]:
        """The thread axes, x first."""
        return tuple(axis for axis in self.extents if axis in THREAD_AXES)

    def index(self, axis: str) -> Node:
        """The number of this block or thread along an axis, as an int64."""
        return tirx.Cast("int64", self.variables[axis])

    def thread(self, instead: Mapping[str, Node] = MappingProxyType({})) -> Node:
        """The number of this thread in its block, x fastest, as an int64.

        ``instead`` gives numbers along some axes other than this thread's own.
        """
        number: Node = None
        for axis in reversed(self.thread_axes):
            place = instead.get(axis, self.index(axis))
            extent = integer("int64", self.extents[axis])
            number = place if number is None else tirx.Add(tirx.Mul(number, extent), place)
        return integer("int64", 0) if number is None else number


@dataclass(frozen=True, slots=True)
class Standing:
    """The loops around a statement: TIR values by index, bound axes, and conditions to take part.

    ``conditions`` hold the axis each speaks of, so that a reduction over an axis can leave its
    own out.
    """

    team: Team
    indices: Mapping[str, Node]
    axes: Mapping[str, Loop]
    conditions: tuple[tuple[str, Node], ...] = ()

    def within(self, loop: Loop, variable: Variable | None = None) -> "Standing":
        """Inside a loop: a serial one with its TIR variable, or a bound one."""
        if loop.axis is None:
            return replace(self, indices={**self.indices, loop.index: variable})
        value = self.team.index(loop.axis)
        found = list(self.conditions)
        if loop.start > 0:
            found.append((loop.axis, tirx.GE(value, integer("int64", loop.start))))
        end = loop.start + loop.extent
        if end < self.team.extents[loop.axis]:
            found.append((loop.axis, tirx.LT(value, integer("int64", end))))
        return replace(
            self,
            indices={**self.indices, loop.index: value},
            axes={**self.axes, loop.axis: loop},
            conditions=tuple(found),
        )

    def taking_part(self, *without: str) -> Node | None:
        """Whether this thread runs the statement, conditions on some axes left out; None: always.

        Along an axis that has no loop around the statement, the first block or thread does.
        """
        zero = integer("int64", 0)
        own = [node for axis, node in self.conditions if axis not in without]
        own += [
            tirx.EQ(self.team.index(axis), zero)
            for axis in self.team.extents
            if axis not in self.axes and axis not in without
        ]
        return reduce(tirx.And, own) if own else None

    @property
    def threads_meet(self) -> bool:
        """Whether thread loops still open below here, so that data can pass between threads."""
        return any(axis not in self.axes for axis in self.team.thread_axes)
