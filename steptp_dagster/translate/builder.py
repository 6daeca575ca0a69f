"""Writing a program: nests with bound and serial loops, tensors, and their final names.

``Builder`` collects the nests in the order in which operators emit them. Tensors get provisional
names; ``finish`` gives them their published order: inputs, intermediates, outputs, constants,
parameters.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, Literal

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Program,
)
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import (
    fresh_indices,
    fresh_tensors,
    map_expr,
    map_program,
    tensor_names,
)
from steptp_dagster.translate.coords import Axis, Coord, Coords, loop
from steptp_dagster.translate.scalars import compare
from steptp_dagster.translate.squeezing import squeezed
from steptp_dagster.translate.values import Value, access, stored

#: Largest number of threads in a block; longer loops are split into blocks and threads.
THREADS: Final = 1024

#: How running sums and products are written: one after the other, or each from all before it.
Scan = Literal["recurrence", "triangular"]
Body = Callable[[Coords, Coords], Iterable[tuple[Access, Expr]]]
Reduce = Callable[[Coords, Coords], Expr]
#: The element at the coordinates that are given one by one.
Element = Callable[..., Expr]


@dataclass(slots=True)
class Builder:
    """A program under construction.

    ``variables`` are the known variables so far; ``ranges`` the bounds (inclusive) that
    operators put on the values of integer inputs which they use as subscripts. ``scan`` is the form
    of running sums and products, ``bounded`` whether subscripts that the program computes are moved
    into range, and ``computed_indices`` becomes true where there are any. ``examples`` holds the
    least and the largest element of integer inputs in the caller's example. With ``naive`` what an
    operator computes in several steps takes a nest for each of them (``step``).
    """

    nests: list[Nest] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    examples: dict[str, tuple[int, int]] = field(default_factory=dict)
    scan: Scan = "recurrence"
    bounded: bool = False
    naive: bool = False
    computed_indices: bool = False
    _numbers: "count[int]" = field(default_factory=count)
    _around: tuple[str, ...] = ()

    def declare(self, variable: Callable[[str], Variable]) -> Value:
        """Declare a known variable under a provisional name and return its value."""
        name = self._provisional()
        made = self.variables[name] = variable(name)
        return stored(name, made.dtype, made.shape)

    def nest(self, shape: tuple[int, ...], reduction: tuple[int, ...], body: Body) -> None:
        """Emit one nest over ``shape`` (spatial) and ``reduction`` (serial, innermost).

        ``body(coords, taps)`` gives the equations as pairs of target and value. The first spatial
        dimension longer than 1 is bound to ``tx``, in blocks where it is longer than ``THREADS``;
        dimensions of extent 1 get no loop (their coordinate is 0), except that a reduction keeps
        at least one loop, and a nest without any spatial loop binds ``tx`` with extent 1.
        """
        names = fresh_indices(self._around)
        bound, guard, coords = _spatial(shape, names)
        kept = [i for i, extent in enumerate(reduction) if extent > 1] or list(
            range(min(1, len(reduction)))
        )
        taps = [Coord()] * len(reduction)
        serial = []
        for i in kept:
            name = next(names)
            serial.append(Loop("L", name, reduction[i]))
            taps[i] = loop(name, reduction[i])
        equations = tuple(
            Equation(target, value, guard) for target, value in body(coords, tuple(taps))
        )
        self.nests.append(Nest((*bound, *serial), equations))

    @contextmanager
    def repeated(self, extent: int) -> Iterator[Coord]:
        """Run the nests emitted inside one after the other, ``extent`` times.

        Gives the index of the serial loop that is put around them all, where each of them is
        launched anew: what one wrote, all threads of the next see.
        """
        name = next(iter(fresh_indices(self._around)))
        outer, around = self.nests, self._around
        self.nests, self._around = [], (*around, name)
        try:
            yield loop(name, extent)
            outer.append(Nest((Loop("L", name, extent),), tuple(self.nests)))
        finally:
            self.nests, self._around = outer, around

    def tensor(self, shape: tuple[int, ...], dtype: str) -> Value:
        """A new intermediate tensor in global memory, which nothing has written yet."""
        return stored(self._provisional(), dtype, shape)

    def compute(self, shape: tuple[int, ...], dtype: str, element: Element) -> Value:
        """A new tensor of ``element(*coords)``, in one nest."""
        new = self.tensor(shape, dtype)
        self.nest(shape, (), lambda c, _: [(target(new, c), element(*c))])
        return new

    def step(self, shape: tuple[int, ...], dtype: str, element: Element) -> Element:
        """A part of what an operator computes, in the naive form read from a nest of its own."""
        return self.compute(shape, dtype, element) if self.naive else element

    def reduce(
        self,
        shape: tuple[int, ...],
        dtype: str,
        extents: tuple[int, ...],
        combine: Callable[[Expr, Expr], Expr],
        element: Reduce,
    ) -> Value:
        """A new tensor of ``X = combine(X, element(coords, taps))`` from the identity.

        ``extents`` are the numbers of iterations of the reduction loops that give ``taps``.
        """
        new = self.tensor(shape, dtype)

        def body(coords: Coords, taps: Coords) -> list[tuple[Access, Expr]]:
            at = target(new, coords)
            return [(at, combine(at, element(coords, taps)))]

        self.nest(shape, extents, body)
        return new

    def recurrence(
        self,
        shape: tuple[int, ...],
        dtype: str,
        dim: int,
        step: Callable[[Coords, Expr], Expr],
    ) -> Value:
        """A new tensor filled along ``dim`` in a serial loop.

        ``step(coords, before)`` gives the element at ``coords`` from the one before it on
        ``dim``; at the first position it must not use ``before``.
        """
        new = self.tensor(shape, dtype)

        def body(coords: Coords, taps: Coords) -> list[tuple[Access, Expr]]:
            at = (*coords[:dim], taps[0], *coords[dim:])
            earlier = (*coords[:dim], taps[0] - 1, *coords[dim:])
            return [(target(new, at), step(at, target(new, earlier)))]

        self.nest((*shape[:dim], *shape[dim + 1 :]), (shape[dim],), body)
        return new

    def write_part(self, whole: Value, part: Value, dim: int, start: int) -> None:
        """Write ``part`` into ``whole`` from position ``start`` of dimension ``dim`` on."""

        def body(coords: Coords, _: Coords) -> list[tuple[Access, Expr]]:
            at = (*coords[:dim], coords[dim] + start, *coords[dim + 1 :])
            return [(target(whole, at), part(*coords))]

        self.nest(part.shape, (), body)

    def store(self, value: Value, dtype: str | None = None) -> Value:
        """The value as a tensor of its own (of ``dtype``): itself, or a copy in a new nest."""
        dtype = dtype or value.dtype
        if value.tensor is not None and value.dtype == dtype:
            return value
        return self.compute(value.shape, dtype, value)

    def restrict_source(self, value: Value, low: int, high: int) -> None:
        """Record that the program relies on ``low <= x <= high`` for the input ``value`` reads."""
        read = value(*(Coord() for _ in value.shape))
        if isinstance(read, Access) and read.name in self.variables:
            now = self.ranges.get(read.name, (low, high))
            self.ranges[read.name] = (max(low, now[0]), min(high, now[1]))

    def seen(self, value: Value) -> tuple[int, int] | tuple[None, None]:
        """The least and largest element of what an integer value reads, where that is known.

        Of constants all elements are known, of inputs those of the example.
        """
        read = value(*(Coord() for _ in value.shape))
        if not isinstance(read, Access):
            return None, None
        known = self.variables.get(read.name)
        if known is not None and known.values:
            return int(min(known.values)), int(max(known.values))
        return self.examples.get(read.name, (None, None))

    def known(self, value: Value) -> bool:
        """Whether a value is a known variable (an input, parameter, constant or output)."""
        return value.tensor in self.variables

    def output(self, value: Value) -> str:
        """Make a value the next output, copying it where it is not an intermediate tensor.

        Returns its provisional name.
        """
        if value.tensor is None or self.known(value):
            value = self.compute(value.shape, value.dtype, value)
        assert value.tensor is not None
        self.variables[value.tensor] = Variable("output", value.tensor, value.dtype, value.shape)
        return value.tensor

    def finish(self) -> tuple[SignedProgram, Mapping[str, str]]:
        """The program under its final names, and the final name of each provisional one."""
        program = squeezed(Program(tuple(self.nests)), self.variables)
        for name, (low, high) in self.ranges.items():
            known = self.variables[name]
            self.variables[name] = replace(
                known,
                low=low if known.low is None else max(low, int(known.low)),
                high=high if known.high is None else min(high, int(known.high)),
            )
        used = tensor_names(program)
        by_role: dict[str, list[Variable]] = {"input": [], "output": [], "const": [], "param": []}
        for variable in self.variables.values():
            if variable.name in used or variable.role == "input":
                by_role[variable.role].append(variable)
        written = [a.name for nest in program.nests for a in _targets(nest)]
        order = [
            *(v.name for v in by_role["input"]),
            *(name for name in dict.fromkeys(written) if name not in self.variables),
            *(v.name for role in ("output", "const", "param") for v in by_role[role]),
        ]
        final = dict(zip(order, fresh_tensors(()), strict=False))

        def renamed(expr: Expr) -> Expr:
            return replace(expr, name=final[expr.name]) if isinstance(expr, Access) else expr

        variables = tuple(
            replace(v, name=final[v.name])
            for role in ("input", "param", "const", "output")
            for v in by_role[role]
        )
        whole = map_program(program, lambda expr: map_expr(expr, renamed))
        return SignedProgram(whole, Signature(variables)), final

    def _provisional(self) -> str:
        digits = f"{next(self._numbers):06d}"
        return "X" + "".join("acdfghijkm"[int(d)] for d in digits)


def target(value: Value, coords: Coords) -> Access:
    """The place of one element of a stored value. Raises ValueError for a view."""
    if value.tensor is None:
        raise ValueError("a view cannot be written")
    return access(value.tensor, value.dtype, coords)


def _spatial(
    shape: tuple[int, ...], names: Iterable[str]
) -> tuple[tuple[Loop, ...], Expr | None, Coords]:
    """Loops over a shape (bound ones first), the guard they need, and the coordinates."""
    free = iter(names)
    coords = [Coord()] * len(shape)
    long = [i for i, extent in enumerate(shape) if extent > 1]
    if not long:
        return (Loop("B", "tx", 1),), None, tuple(coords)
    guard: Expr | None = None
    first, extent = long[0], shape[long[0]]
    if extent <= THREADS:
        loops = [Loop("B", "tx", extent)]
        coords[first] = loop("tx", extent)
    else:
        blocks = -(-extent // THREADS)
        loops = [Loop("B", "bx", blocks), Loop("B", "tx", THREADS)]
        flat = Binary("+", Binary("*", Index("bx"), Int(THREADS)), Index("tx"))
        coords[first] = Coord(((Axis(flat, extent), 1),))
        if blocks * THREADS != extent:
            guard = compare(flat, "<", Int(extent))
    for i in long[1:]:
        name = next(free)
        loops.append(Loop("L", name, shape[i]))
        coords[i] = loop(name, shape[i])
    return tuple(loops), guard, tuple(coords)


def _targets(nest: Nest) -> Iterable[Access]:
    for statement in nest.body:
        if isinstance(statement, Equation):
            yield statement.target
        else:
            yield from _targets(statement)
