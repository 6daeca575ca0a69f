"""Loops over boxes in many forms, and what the makers of random nests share."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from steptp_dagster.leir.ast import (
    AXES,
    Access,
    Binary,
    Call,
    Compare,
    Expr,
    Index,
    Inf,
    Int,
    Kind,
    Loop,
    Unary,
)
from steptp_dagster.leir.walk import fresh_indices, fresh_tensors
from tests.support.random_values import FLOAT_BOUND, Coordinate, Ranged, Tensor, Values, plus, times

_EXTENTS = (1, 2, 3, 4, 4, 5, 6, 8)
#: Iterations of one nest stay near this.
ROOM = 90


@dataclass
class Space:
    """Loops over some dimensions: the coordinates they reach, and the guard they need."""

    loops: list[Loop]
    coordinates: list[Coordinate]
    guard: Expr | None


class Loops:
    """Names, tensors and loops of a program in the making."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = fresh_tensors(())
        self.sources: list[Tensor] = []
        self.written: list[Tensor] = []
        self.start_nest()
        for _ in range(rng.randint(1, 3)):
            self._add_source()

    # -- small choices

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def start_nest(self) -> None:
        self.indices = fresh_indices(())
        self.axes = self.rng.sample(AXES, len(AXES))
        self.has_parallel = False

    def shape(self, rank: int | None = None, room: int = ROOM) -> tuple[int, ...]:
        rank = self.rng.choice((1, 1, 2, 2, 3)) if rank is None else rank
        shape: list[int] = []
        for _ in range(rank):
            fitting = [n for n in _EXTENTS if n * prod(shape) <= room]
            shape.append(self.rng.choice(fitting))
        return tuple(shape)

    def float_dtype(self) -> str:
        return self.rng.choice(("f32", "f32", "f32", "f64", "f16", "bf16"))

    def _add_source(self) -> None:
        rng = self.rng
        shape = self.shape(rng.choice((0, 1, 2, 2)), 48)
        kind = rng.randrange(10)
        if kind <= 1:
            high = rng.choice((2, 3, 7))
            dtype = rng.choice(("i64", "i32"))
            tensor = Tensor(next(self.names), dtype, "g", shape, 0, high, table=True)
        elif kind == 2:
            tensor = Tensor(next(self.names), "bool", "g", shape, 0, 1)
        elif kind == 3:
            tensor = Tensor(next(self.names), self.float_dtype(), "g", shape, 0.5, 2)
        else:
            tensor = Tensor(next(self.names), self.float_dtype(), "g", shape, -2, 2)
        self.sources.append(tensor)

    def values(self, coordinates: Sequence[Coordinate], *more: Tensor) -> Values:
        return Values(self.rng, [*self.sources, *self.written, *more], coordinates)

    def new(self, shape: tuple[int, ...], value: Ranged, dtype: str, scope: str = "g") -> Tensor:
        tensor = Tensor(next(self.names), dtype, scope, shape, value.low, value.high)
        if scope == "g":
            self.written.append(tensor)
        return tensor

    # -- loops

    def _kind(self, extent: int, free: bool, innermost: bool, kinds: str) -> Kind:
        if not free or self.chance(0.3):
            return self.rng.choice(("L", "L", "U"))
        fitting: list[Kind] = ["L"]
        if "B" in kinds and self.axes:
            fitting += ["B", "B"]
        if "P" in kinds and not self.has_parallel:
            fitting.append("P")
        if "V" in kinds and innermost and extent in (2, 4):
            fitting += ["V", "V"]
        return self.rng.choice(fitting)

    def loop(
        self,
        extent: int,
        *,
        free: bool,
        innermost: bool = False,
        kinds: str = "BPV",
        start: int = 0,
    ) -> Loop:
        """A loop of a legal kind; ``free``: its iterations do not conflict."""
        kind = self._kind(extent, free, innermost, kinds)
        if kind == "B":
            suffix = next(self.indices) if self.chance(0.3) else ""
            return Loop("B", self.axes.pop() + suffix, extent, start)
        self.has_parallel = self.has_parallel or kind == "P"
        return Loop(kind, next(self.indices), extent, start)

    def space(
        self,
        extents: Sequence[int],
        *,
        free: bool = True,
        innermost: bool = False,
        kinds: str = "BPV",
        plain: bool = False,
    ) -> Space:
        """Loops over a box: each dimension plain, split, reversed, offset, or two fused.

        ``innermost``: the last loop has only one equation inside.
        """
        space = Space([], [], None)
        dims = list(extents)
        while dims:
            extent = dims.pop(0)
            last = innermost and not dims
            form = 0 if plain else self.rng.randrange(9)
            if form == 1 and extent > 1:
                self._split(space, extent, free, last, kinds)
            elif form == 2 and dims and extent * dims[0] > 1:
                second = dims.pop(0)
                loop = self.loop(
                    extent * second, free=free, innermost=innermost and not dims, kinds=kinds
                )
                space.loops.append(loop)
                fused = Index(loop.index)
                space.coordinates += [
                    Coordinate(Binary("//", fused, Int(second)), extent),
                    Coordinate(Binary("%", fused, Int(second)), second),
                ]
            elif form == 3:
                loop = self.loop(extent, free=free, innermost=last, kinds=kinds, start=1)
                space.loops.append(loop)
                space.coordinates.append(Coordinate(plus(Index(loop.index), -1), extent))
            else:
                loop = self.loop(extent, free=free, innermost=last, kinds=kinds)
                space.loops.append(loop)
                index: Expr = Index(loop.index)
                if form == 4:
                    index = Binary("-", Int(extent - 1), index)
                space.coordinates.append(Coordinate(index, extent))
        return space

    def _split(self, space: Space, extent: int, free: bool, last: bool, kinds: str) -> None:
        inner = self.rng.choice((2, 3, 4))
        outer = -(-extent // inner)
        loops = [
            self.loop(outer, free=free, kinds=kinds),
            self.loop(inner, free=free, innermost=last, kinds=kinds),
        ]
        space.loops += loops
        first, second = (Index(loop.index) for loop in loops)
        joined = Binary("+", times(first, inner), second)
        space.coordinates.append(Coordinate(joined, extent))
        if outer * inner > extent:
            inside = Compare((joined, Int(extent)), ("<",))
            space.guard = both(space.guard, inside)

    def target(self, tensor: Tensor, space: Space) -> Access:
        return tensor.at(*(c.expr for c in space.coordinates))

    def store_dtype(self, low: float, high: float) -> str:
        """A float dtype for values of this range."""
        return self.float_dtype() if max(abs(low), abs(high)) <= FLOAT_BOUND else "f64"

    def accumulated(self, value: Ranged, count: int) -> tuple[str, Ranged]:
        """An operator under which ``count`` such values stay in bounds, and the value."""
        op = self.rng.choice(("+", "+", "-", "*", "max", "min"))
        if op == "*" and value.size**count > FLOAT_BOUND:
            op = "+"
        if op in "+-" and value.size * count > FLOAT_BOUND:
            op = "max"
        return op, value

    def update(self, op: str, target: Access, value: Expr) -> Expr:
        if op in ("max", "min"):
            pair = (target, value) if self.chance(0.7) else (value, target)
            return Call(op, pair)
        if op == "-" or self.chance(0.7):
            return Binary(op, target, value)
        return Binary(op, value, target)


def both(one: Expr | None, two: Expr | None) -> Expr | None:
    if one is None or two is None:
        return two if one is None else one
    return Binary("&", one, two)


def identity(op: str) -> Expr:
    match op:
        case "max":
            return Unary("-", Inf())
        case "min":
            return Inf()
    return Int(1 if op == "*" else 0)


def reduced(op: str, value: Ranged, count: int) -> Ranged:
    """The range of ``count`` values accumulated from the identity."""
    match op:
        case "+":
            return Ranged(value.expr, min(0, value.low * count), max(0, value.high * count))
        case "-":
            return Ranged(value.expr, min(0, -value.high * count), max(0, -value.low * count))
        case "*":
            bound = max(1, value.size**count)
            return Ranged(value.expr, -bound, bound)
    return value
