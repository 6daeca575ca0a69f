"""What the rest of a program needs to know of a top-level nest, read off its text.

The outline of a nest says which tensors it touches, how they are annotated, and whether it reads
or writes them. It depends on the nest alone and is made once per nest.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from steptp_dagster.leir.ast import BLOCK_AXES, Access, Equation, Expr, Index, Nest
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.records import quickly_made
from steptp_dagster.leir.typing import plain
from steptp_dagster.leir.walk import children

#: Dtype, scope and rank of an access.
Annotation = tuple[str, str, int]


@quickly_made
@dataclass(frozen=True, slots=True)
class Touched:
    """One tensor that a nest touches.

    ``annotation`` is that of all accesses and ``blocks`` the block axes around all of them; None
    where they differ. ``is_global``: all accesses agree, and on global memory.
    """

    name: str
    annotation: Annotation | None
    blocks: frozenset[str] | None
    read: bool
    written: bool
    is_global: bool


@quickly_made
@dataclass(frozen=True, slots=True)
class Outline:
    """The tensors of one nest in the order of their first use.

    ``order`` and ``names`` name all of them, ``written`` those that are written, ``tables`` those
    that are accessed as integers. ``closed``: every index that occurs is bound by a loop around it.
    ``distinct``: no loop stands inside another one with its index or its axis. ``plain``: every
    equation is ``typing.plain``. ``kinds`` are those of the loops. ``ranks`` holds the rank of each
    tensor, None where its annotations differ.
    """

    touched: tuple[Touched, ...]
    order: tuple[str, ...]
    names: frozenset[str]
    written: tuple[str, ...]
    tables: tuple[str, ...]
    closed: bool
    distinct: bool
    plain: bool
    kinds: frozenset[str]
    ranks: Mapping[str, int | None]


class _Seen:
    """What the accesses to one tensor have in common so far."""

    __slots__ = ("annotation", "blocks", "read", "written")

    def __init__(self, annotation: Annotation, blocks: frozenset[str]) -> None:
        self.annotation: Annotation | None = annotation
        self.blocks: frozenset[str] | None = blocks
        self.read = self.written = False


class _Reader:
    """Collects the accesses of a nest."""

    def __init__(self) -> None:
        self.seen: dict[str, _Seen] = {}
        self.tables: dict[str, None] = {}
        self.kinds: set[str] = set()
        self.closed = self.distinct = self.plain = True
        self._bound: frozenset[str] = frozenset()
        self._axes: frozenset[str] = frozenset()

    def nest(self, nest: Nest, outer: frozenset[str]) -> None:
        """All equations of a nest that stands under the block axes ``outer``."""
        blocks = outer
        axes_around = self._axes
        for loop in nest.loops:
            self.kinds.add(loop.kind)
            if loop.kind == "B" and (axis := loop.axis) is not None:
                if axis in self._axes:
                    self.distinct = False
                self._axes = self._axes | {axis}
                if axis in BLOCK_AXES:
                    blocks = blocks | {axis}
        around = self._bound
        self._bound = around.union([loop.index for loop in nest.loops])
        if len(self._bound) < len(around) + len(nest.loops):
            self.distinct = False
        for child in nest.body:
            if isinstance(child, Nest):
                self.nest(child, blocks)
            else:
                self.equation(child, blocks)
        self._bound = around
        self._axes = axes_around

    def equation(self, equation: Equation, blocks: frozenset[str]) -> None:
        """The target, then what is read."""
        target = equation.target
        self.plain = self.plain and plain(equation)
        self.access(target, blocks).written = True
        for subscript in target.subscripts:
            self.reads(subscript, blocks)
        self.reads(equation.value, blocks)
        if equation.guard is not None:
            self.reads(equation.guard, blocks)

    def reads(self, expr: Expr, blocks: frozenset[str]) -> None:
        """All accesses in an expression."""
        if isinstance(expr, Index):
            self.closed = self.closed and expr.name in self._bound
            return
        if isinstance(expr, Access):
            self.access(expr, blocks).read = True
        for child in children(expr):
            if isinstance(child, Index):  # by far the most frequent node
                self.closed = self.closed and child.name in self._bound
            else:
                self.reads(child, blocks)

    def access(self, access: Access, blocks: frozenset[str]) -> _Seen:
        """Note one access."""
        name = access.name
        annotation = (access.dtype, access.scope, len(access.subscripts))
        seen = self.seen.get(name)
        if seen is None:
            seen = self.seen[name] = _Seen(annotation, blocks)
        else:
            if seen.annotation != annotation:
                seen.annotation = None
            if seen.blocks != blocks:
                seen.blocks = None
        if DTYPES[access.dtype].is_integer:
            self.tables[name] = None
        return seen


def outline_of(nest: Nest) -> Outline:
    """The outline of a top-level nest."""
    reader = _Reader()
    reader.nest(nest, frozenset())
    touched = tuple(
        Touched(
            name,
            seen.annotation,
            seen.blocks,
            seen.read,
            seen.written,
            seen.annotation is not None and seen.annotation[1] == "g",
        )
        for name, seen in reader.seen.items()
    )
    written = tuple(t.name for t in touched if t.written)
    tables, kinds = tuple(reader.tables), frozenset(reader.kinds)
    return Outline(
        touched,
        tuple(reader.seen),
        frozenset(reader.seen),
        written,
        tables,
        reader.closed,
        reader.distinct,
        reader.plain,
        kinds,
        {t.name: None if t.annotation is None else t.annotation[2] for t in touched},
    )
