"""One loop as two: kinds, names and places of the outer and the inner loop."""

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from steptp_dagster.leir.ast import Binary, Expr, Index, Int, Kind, Loop
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.rewrite import fresh_index, nest_at

_INNER_KIND: Final[dict[str, Kind]] = {"L": "L", "U": "U", "V": "V", "P": "L"}
_OUTER_KIND: Final[dict[str, Kind]] = {"L": "L", "U": "L", "V": "L", "P": "P"}


@dataclass(frozen=True, slots=True)
class Split:
    """The loop that goes, the two that come, and whether a guard cuts the tail."""

    loop: Loop
    outer: Loop
    inner: Loop
    factor: int
    tail: bool

    @property
    def index(self) -> Expr:
        """The old index in terms of the new ones: ``outer*factor+inner``."""
        outer = Binary("*", Index(self.outer.index), Int(self.factor))
        return Binary("+", outer, Index(self.inner.index))

    def header(self, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        """The new header; a serial inner loop goes inside the bound loops that follow."""
        i = next(k for k, loop in enumerate(loops) if loop.index == self.loop.index)
        rest = loops[i + 1 :]
        bound: tuple[Loop, ...] = ()
        if self.loop.axis is not None and self.inner.axis is None:
            bound = tuple(takewhile(lambda loop: loop.kind == "B", rest))
        return (*loops[:i], self.outer, *bound, self.inner, *rest[len(bound) :])


def split_at(program: SignedProgram, site: Site) -> Split:
    """What a site of ``loop_split`` asks for."""
    nest = nest_at(program.program, site.path)
    index, factor = site.text("loop"), site.integer("factor")
    loop = next(loop for loop in nest.loops if loop.index == index)
    outer, inner = site.text("outer"), site.text("inner")
    parts = -(-loop.extent // factor)
    fresh = fresh_index(program.program, site.path)
    if loop.axis is None:
        first = Loop(_OUTER_KIND[loop.kind], fresh, parts)
        second = replace(loop, kind=_INNER_KIND[loop.kind], extent=factor)
    elif inner == "L":
        first = Loop("B", loop.index, parts)
        second = Loop("L", fresh, factor, loop.start)
    elif outer == loop.axis:  # a block loop that gets threads inside
        first = Loop("B", loop.index, parts)
        second = Loop("B", inner, factor, loop.start)
    else:
        first = Loop("B", outer, parts)
        second = Loop("B", loop.index, factor, loop.start)
    return Split(loop, first, second, factor, site.text("tail") == "guard")


def forms(loop: Loop) -> tuple[tuple[str, str], ...]:
    """What the outer and inner loop can be: a kind, or an axis for bound loops."""
    axis = loop.axis
    if axis is None:
        return ((_OUTER_KIND[loop.kind], _INNER_KIND[loop.kind]),)
    return (("b" + axis[1], "t" + axis[1]), (axis, "L"))
