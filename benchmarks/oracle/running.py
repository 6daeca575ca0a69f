"""Programs as Python functions over cells, one a nest, and what a run of them leaves behind."""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.oracle.arithmetic import unordered
from benchmarks.oracle.cells import Cells, decoded
from steptp_dagster.leir.ast import Equation, Loop, Nest
from steptp_dagster.leir.signature import SignedProgram


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place in an equation where a tensor is used. ``own``: the old value of an update."""

    log: int
    tensor: str
    scope: str
    write: bool
    own: bool


@dataclass(frozen=True, slots=True)
class Node:
    """An equation with its surroundings. ``before`` counts instances that run before it.

    For every loop: its identity (path of its nest and place in it), and how many instances of the
    nest's equations one iteration runs (``strides``).
    """

    path: tuple[int, ...]
    equation: Equation
    loops: tuple[Loop, ...]
    where: tuple[tuple[tuple[int, ...], int], ...]
    strides: tuple[int, ...]
    before: int
    launch: int
    update: str | None
    occurrences: tuple[Occurrence, ...]


class Meaningless(Exception):
    """A program breaks a rule that leaves it without meaning: its kind and where."""


@dataclass(frozen=True, slots=True)
class NestCode:
    """One nest as Python: ``run(cells, logs)`` with one log for each occurrence, or none."""

    nest: Nest
    nodes: tuple[Node, ...]
    run: Callable[[dict[str, Cells], Sequence[list[int]]], None]
    logs: int

    @property
    def written(self) -> frozenset[str]:
        """The tensors that the nest writes."""
        return frozenset(n.equation.target.name for n in self.nodes)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program as Python."""

    signed: SignedProgram
    nests: tuple[NestCode, ...]
    names: tuple[str, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All equations in text order."""
        return tuple(n for nest in self.nests for n in nest.nodes)

    def run(self, inputs: Mapping[str, Cells], logged: Container[int] = ()) -> "Outcome":
        """Run over cells of all sources; all others begin empty. ``logged``: numbers of nests."""
        cells = {n: dict(inputs[n]) if n in inputs else {} for n in self.names}
        logs: dict[int, list[list[int]]] = {}
        fault = None
        unordered.clear()
        for i, nest in enumerate(self.nests):
            if i in logged:
                logs[i] = [[] for _ in range(nest.logs)]
            try:
                nest.run(cells, logs.get(i, ()))
            except KeyError as error:
                fault = f"reads an element that nobody wrote: {decoded(error.args[0])}"
                break
        return Outcome(cells, logs, fault, bool(unordered))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind. ``unordered``: ``max`` or ``min`` saw NaN, outside the contract."""

    cells: dict[str, Cells]
    logs: dict[int, list[list[int]]]
    fault: str | None
    unordered: bool

    def largest(self) -> float:
        """The greatest finite magnitude of all cells."""
        each = (abs(v) for cells in self.cells.values() for v in cells.values())
        return float(max((v for v in each if v < math.inf), default=0.0))
