"""Points of a loop nest where a copy can be made, and the region of a tensor used below them.

A *point* lies inside a nest behind some of its loops: what stands below it runs once per
iteration of the loops above. The *region* of a tensor there is, per dimension, an offset that the
loops above fix and an interval that the loops below sweep.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import Bounds, Form, Interval, add
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import THREAD_AXES, Loop, Nest, Program, Statement
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, all_nests, loops_around, nests_in
from steptp_dagster.strategies.forms import split

#: Name of the point before all loops of a nest, where others are named by the loop above them.
NO_LOOP = "-"


@dataclass(frozen=True, slots=True)
class Point:
    """Behind the first ``depth`` loops of the nest at ``path``.

    ``above`` are all loops around the point, outermost first; ``nest`` is the nest itself.
    """

    path: Path
    depth: int
    above: tuple[Loop, ...]
    nest: Nest

    @property
    def under(self) -> str:
        """Index of the nest's loop right above the point, or ``NO_LOOP``."""
        return self.nest.loops[self.depth - 1].index if self.depth else NO_LOOP

    @property
    def below(self) -> tuple[Statement, ...]:
        """The statements that run at the point."""
        rest = self.nest.loops[self.depth :]
        return (Nest(rest, self.nest.body),) if rest else self.nest.body

    def loops_below(self) -> tuple[Loop, ...]:
        """All loops below the point, in text order."""
        return tuple(
            loop
            for statement in self.below
            for _, nest in nests_in(statement)
            for loop in nest.loops
        )


def points(program: Program) -> Iterator[Point]:
    """All points in text order, outer ones first.

    The point before all loops of an only child is the one at the end of its parent's loops, and
    comes once.
    """
    for path, nest in all_nests(program):
        around = loops_around(program, path)
        for depth in range(len(nest.loops) + 1):
            if depth or _has_siblings(program, path):
                yield Point(path, depth, (*around, *nest.loops[:depth]), nest)


def point_at(program: Program, path: Path, under: str) -> Point:
    """The point named by a nest and a loop. Raises LookupError where there is none."""
    for point in points(program):
        if point.path == path and point.under == under:
            return point
    raise LookupError(f"no point under {under!r} at {path}")


def _has_siblings(program: Program, path: Path) -> bool:
    if len(path) == 1:
        return True
    parent: Statement = program.nests[path[0]]
    for step in path[1:-1]:
        if isinstance(parent, Nest):
            parent = parent.body[step]
    return isinstance(parent, Nest) and len(parent.body) > 1


@dataclass(frozen=True, slots=True)
class Dimension:
    """``offset + low .. offset + low + size - 1``; ``offset`` has no constant.

    ``least`` and ``most`` are the smallest and largest subscript that the interval can reach.
    """

    offset: Form
    low: int
    size: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Region:
    """What is read of a tensor below a point: a box, and how often it is read in one visit.

    ``reads`` respects conditions as far as they bound single indices.
    """

    dimensions: tuple[Dimension, ...]
    uses: tuple[Use, ...]
    reads: int

    @property
    def elements(self) -> int:
        """Number of elements of the box."""
        return prod(d.size for d in self.dimensions)


def reads_below(program: SignedProgram, point: Point, tensor: str) -> tuple[Use, ...]:
    """The reads of a tensor by what stands below a point."""
    count = len(point.path)
    return tuple(
        use
        for use in Analysis.of(program).accesses.by_tensor.get(tensor, [])
        if not use.write and use.statement.path[:count] == point.path
    )


def region(program: SignedProgram, point: Point, tensor: str) -> Region | str:
    """The region of a tensor below a point, or in words why it has none.

    The tensor must be read below the point.
    """
    uses = reads_below(program, point, tensor)
    bounds_above = {x.index: (x.start, x.start + x.extent - 1) for x in point.above}
    parts: list[list[tuple[Form, int, int]]] = []
    reads = 0
    for use in uses:
        inner = use.chain[len(point.above) :]
        reads += prod(high - low + 1 for low, high in (use.bounds.box[x.name] for x in inner))
        names = frozenset(ref.name for ref in inner)
        row = []
        for form in use.subscripts:
            halves = split(form, names)
            if halves is None:
                return f"a subscript of {tensor} cannot be split into offset and local part"
            low, high = use.bounds.interval(halves[1])
            if low > high:
                return f"a read of {tensor} never happens"
            row.append((halves[0], halves[0].const + low, halves[0].const + high))
        parts.append(row)
    dimensions = []
    for column in zip(*parts, strict=True):
        offset = Form(0, column[0][0].terms)
        if any(outside.terms != offset.terms for outside, _, _ in column):
            return f"the reads of {tensor} do not share an offset"
        low, high = min(x for _, x, _ in column), max(x for _, _, x in column)
        least, most = _span(offset, bounds_above)
        dimensions.append(Dimension(offset, low, high - low + 1, least + low, most + high))
    return Region(tuple(dimensions), uses, reads)


def _span(form: Form, box: dict[str, Interval]) -> Interval:
    return Bounds(box).interval(form)


def local_form(form: Form, dimension: Dimension) -> Form:
    """The coordinate within the box of a subscript that lies in it."""
    return add(Form(form.const - dimension.low, form.terms), dimension.offset, -1)


def thread_loops(point: Point) -> tuple[Loop, ...]:
    """One loop per thread axis used below a point, by first use, with the largest extent."""
    found: dict[str, Loop] = {}
    for loop in point.loops_below():
        axis = loop.axis
        if axis in THREAD_AXES and (axis not in found or found[axis].extent < loop.extent):
            found[axis] = loop
    return tuple(found.values())
