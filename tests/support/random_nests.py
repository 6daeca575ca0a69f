"""Random nests that are valid by construction: one method per shape of nest."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from steptp_dagster.leir.ast import (
    AXES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Kind,
    Loop,
    Nest,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.walk import fresh_indices, fresh_tensors, substitute
from tests.support.random_values import (
    FLOAT_BOUND,
    Coordinate,
    Ranged,
    Tensor,
    Values,
    plus,
    times,
)

_EXTENTS = (1, 2, 3, 4, 4, 5, 6, 8)
#: Iterations of one nest stay near this.
_ROOM = 90


@dataclass
class Space:
    """Loops over some dimensions: the coordinates they reach, and the guard they need."""

    loops: list[Loop]
    coordinates: list[Coordinate]
    guard: Expr | None


class Nests:
    """Makes nests one after the other; what one writes, the next may read."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = fresh_tensors(())
        self.sources: list[Tensor] = []
        self.written: list[Tensor] = []
        self._start_nest()
        for _ in range(rng.randint(1, 3)):
            self._add_source()

    # -- small choices

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def _start_nest(self) -> None:
        self.indices = fresh_indices(())
        self.axes = self.rng.sample(AXES, len(AXES))
        self.has_parallel = False

    def _shape(self, rank: int | None = None, room: int = _ROOM) -> tuple[int, ...]:
        rank = self.rng.choice((1, 1, 2, 2, 3)) if rank is None else rank
        shape: list[int] = []
        for _ in range(rank):
            fitting = [n for n in _EXTENTS if n * prod(shape) <= room]
            shape.append(self.rng.choice(fitting))
        return tuple(shape)

    def _float_dtype(self) -> str:
        return self.rng.choice(("f32", "f32", "f32", "f64", "f16", "bf16"))

    def _add_source(self) -> None:
        rng = self.rng
        shape = self._shape(rng.choice((0, 1, 2, 2)), 48)
        kind = rng.randrange(8)
        if kind == 0:
            high = rng.choice((2, 3, 7))
            dtype = rng.choice(("i64", "i32"))
            tensor = Tensor(next(self.names), dtype, "g", shape, 0, high, table=True)
        elif kind == 1:
            tensor = Tensor(next(self.names), "bool", "g", shape, 0, 1)
        elif kind == 2:
            tensor = Tensor(next(self.names), self._float_dtype(), "g", shape, 0.5, 2)
        else:
            tensor = Tensor(next(self.names), self._float_dtype(), "g", shape, -2, 2)
        self.sources.append(tensor)

    def _values(self, coordinates: Sequence[Coordinate], *more: Tensor) -> Values:
        return Values(self.rng, [*self.sources, *self.written, *more], coordinates)

    def _new(self, shape: tuple[int, ...], value: Ranged, dtype: str, scope: str = "g") -> Tensor:
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
            fitting.append("V")
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
            space.guard = _both(space.guard, inside)

    def _target(self, tensor: Tensor, space: Space) -> Access:
        return tensor.at(*(c.expr for c in space.coordinates))

    def _store(self, low: float, high: float) -> str:
        """A float dtype for values of this range."""
        return self._float_dtype() if max(abs(low), abs(high)) <= FLOAT_BOUND else "f64"

    # -- kinds of nests

    def elementwise(self) -> list[Nest]:
        """One or two tensors, every element on its own."""
        self._start_nest()
        shape = self._shape()
        single = self.chance(0.7)
        space = self.space(shape, innermost=single)
        if not any(loop.kind == "V" for loop in space.loops):
            self.rng.shuffle(space.loops)
        values = self._values(space.coordinates)
        value = values.real(3)
        second = None if single else values.real(2)
        tensor = self._new(shape, value, self._store(value.low, value.high))
        body = [Equation(self._target(tensor, space), value.expr, space.guard)]
        if second is not None and second.size + value.size < FLOAT_BOUND:
            both = Binary("+", second.expr, self._target(tensor, space))
            value = Ranged(both, second.low + value.low - 1, second.high + value.high + 1)
            other = self._new(shape, value, "f32")
            body.append(Equation(self._target(other, space), both, space.guard))
        return [Nest(tuple(space.loops), tuple(body))]

    def scratch(self) -> list[Nest]:
        """A temporary in local memory between reading and writing."""
        self._start_nest()
        shape = self._shape()
        space = self.space(shape, kinds="B")
        values = self._values(space.coordinates)
        first, second = values.real(2), values.real(1)
        temporary = self._new((), first, "f32", "l")
        joined = Call("max", (temporary.at(), second.expr))
        value = Ranged(joined, max(first.low, second.low) - 1, max(first.high, second.high) + 1)
        tensor = self._new(shape, value, "f32")
        body = (
            Equation(temporary.at(), first.expr, space.guard),
            Equation(self._target(tensor, space), joined, space.guard),
        )
        return [Nest(tuple(space.loops), body)]

    def integers(self) -> list[Nest]:
        """Integer arithmetic, sometimes an affine table for indirect reads."""
        self._start_nest()
        shape = self._shape(self.rng.choice((1, 2)))
        space = self.space(shape, innermost=True)
        table = self.chance(0.5)
        if table:
            c = self.rng.choice(space.coordinates)
            factor = self.rng.randint(2, 3)
            value = self.rng.choice(
                (
                    Ranged(c.expr, 0, c.extent - 1),
                    Ranged(Binary("//", c.expr, Int(factor)), 0, (c.extent - 1) // factor),
                    Ranged(Binary("%", c.expr, Int(factor)), 0, factor - 1),
                    Ranged(plus(c.expr, 1), 1, c.extent),
                )
            )
        else:
            value = self._values(space.coordinates).whole(3)
        dtype = self.rng.choice(("i64", "i32", "i16", "i8"))
        tensor = replace(self._new(shape, value, dtype), table=table)
        self.written[-1] = tensor
        body = Equation(self._target(tensor, space), value.expr, space.guard)
        return [Nest(tuple(space.loops), (body,))]

    def mask(self) -> list[Nest]:
        """A bool tensor."""
        self._start_nest()
        shape = self._shape(self.rng.choice((1, 2)))
        space = self.space(shape, innermost=True)
        value = Ranged(self._values(space.coordinates).condition(), 0, 1)
        tensor = self._new(shape, value, "bool")
        body = Equation(self._target(tensor, space), value.expr, space.guard)
        return [Nest(tuple(space.loops), (body,))]

    def reduction(self) -> list[Nest]:
        """A pure update; the identity implicit, or written in a nest before, or in this nest."""
        self._start_nest()
        rng = self.rng
        shape = self._shape(rng.choice((0, 1, 1, 2)), 20)
        form = rng.choice(("implicit", "implicit", "implicit", "nest", "inside"))
        outer = self.space(shape, plain=form == "inside")
        inner = self.space(self._shape(rng.choice((1, 1, 2)), 12), free=False)
        if form != "inside" and not any(x.kind == "V" for x in outer.loops) and self.chance(0.3):
            inner.loops = self._to_threads(inner.loops, inner)
        values = self._values([*outer.coordinates, *inner.coordinates])
        count = prod(c.extent for c in inner.coordinates)
        op, value = self._accumulated(values.real(2), count)
        result = _reduced(op, value, count)
        if form != "implicit":
            result = Ranged(result.expr, min(result.low, 0), max(result.high, 1))
        dtype = "f64" if result.size > FLOAT_BOUND else rng.choice(("f32", "f64"))
        tensor = self._new(shape, result, dtype)
        target = self._target(tensor, outer)
        guard = _both(outer.guard, inner.guard)
        update = Equation(target, self._update(op, target, value.expr), guard)
        if form == "inside":
            start = Equation(target, _identity(op))
            body: tuple[Statement, ...] = (start, Nest(tuple(inner.loops), (update,)))
            loops = tuple(outer.loops) or (Loop("L", next(self.indices), 1),)
            return [Nest(loops, body)]
        loops = (*outer.loops, *inner.loops)
        if not any(x.kind == "V" for x in loops):
            loops = tuple(rng.sample(loops, len(loops)))
        else:  # a vector loop stays last
            loops = tuple(sorted(loops, key=lambda x: x.kind == "V"))
        nest = Nest(loops, (update,))
        if form == "implicit":
            return [nest]
        self._start_nest()
        space = self.space(shape, innermost=True)
        first = Equation(self._target(tensor, space), _identity(op), space.guard)
        loops = tuple(space.loops) or (Loop("L", "a", 1),)
        return [Nest(loops, (first,)), nest]

    def _to_threads(self, loops: list[Loop], space: Space) -> list[Loop]:
        """The same loops, one of them bound to a thread axis: a block reduction."""
        axes = [a for a in self.axes if a.startswith("t")]
        if not axes:
            return loops
        self.axes.remove(axes[0])
        old = loops[0]
        new = Loop("B", axes[0], old.extent, old.start)
        by: dict[str, Expr] = {old.index: Index(new.index)}
        space.coordinates = [
            Coordinate(substitute(c.expr, by), c.extent) for c in space.coordinates
        ]
        space.guard = None if space.guard is None else substitute(space.guard, by)
        return [new, *loops[1:]]

    def _accumulated(self, value: Ranged, count: int) -> tuple[str, Ranged]:
        """An operator under which ``count`` such values stay in bounds, and the value."""
        op = self.rng.choice(("+", "+", "-", "*", "max", "min"))
        if op == "*" and value.size**count > FLOAT_BOUND:
            op = "+"
        if op in "+-" and value.size * count > FLOAT_BOUND:
            op = "max"
        return op, value

    def _update(self, op: str, target: Access, value: Expr) -> Expr:
        if op in ("max", "min"):
            pair = (target, value) if self.chance(0.7) else (value, target)
            return Call(op, pair)
        if op == "-" or self.chance(0.7):
            return Binary(op, target, value)
        return Binary(op, value, target)

    def rows(self) -> list[Nest]:
        """An accumulator used again in every row, with its start written there."""
        self._start_nest()
        scope = self.rng.choice("gl")
        shape = self._shape(self.rng.choice((1, 2)), 16)
        outer = self.space(shape, free=scope == "l", kinds="B", plain=True)
        inner = self.space(self._shape(1, 8), free=False, plain=True)
        values = self._values([*outer.coordinates, *inner.coordinates])
        count = prod(c.extent for c in inner.coordinates)
        op, value = self._accumulated(values.real(2), count)
        result = _reduced(op, value, count)
        result = Ranged(result.expr, min(result.low, 0), max(result.high, 1))
        accumulator = Tensor(next(self.names), "f64", scope, (), result.low, result.high)
        update = Equation(accumulator.at(), self._update(op, accumulator.at(), value.expr))
        finish = self._values(outer.coordinates, accumulator).real(2)
        final = Ranged(
            Binary("+", accumulator.at(), finish.expr),
            result.low + finish.low,
            result.high + finish.high,
        )
        tensor = self._new(shape, final, "f64" if final.size > FLOAT_BOUND else "f32")
        body = (
            Equation(accumulator.at(), _identity(op)),
            Nest(tuple(inner.loops), (update,)),
            Equation(self._target(tensor, outer), final.expr),
        )
        return [Nest(tuple(outer.loops), body)]

    def recurrence(self) -> list[Nest]:
        """A running sum or maximum along the last dimension, with its own guard."""
        self._start_nest()
        shape = self._shape(self.rng.choice((1, 2, 2)), 40)
        outer = self.space(shape[:-1])
        along = Loop("L", next(self.indices), shape[-1])
        c: Expr = Index(along.index)
        coordinates = [*outer.coordinates, Coordinate(c, shape[-1])]
        value = self._values(coordinates).real(2)
        op = "+" if value.size * shape[-1] <= FLOAT_BOUND and self.chance(0.6) else "max"
        result = _reduced(op, value, shape[-1])
        result = Ranged(value.expr, min(result.low, 0), max(result.high, 0))
        tensor = self._new(shape, result, "f32")
        here = tensor.at(*(x.expr for x in coordinates))
        before = tensor.at(*(x.expr for x in outer.coordinates), plus(c, -1))
        start: Expr = Int(0) if op == "+" else Unary("-", Inf())
        first = Compare((plus(c, -1), Int(0)), ("<",))
        carried = Call("if_then_else", (first, start, before))
        whole: Expr = (
            Binary("+", carried, value.expr) if op == "+" else Call("max", (carried, value.expr))
        )
        loops = [x for x in outer.loops if x.kind != "V"]
        loops += [Loop("L", x.index, x.extent, x.start) for x in outer.loops if x.kind == "V"]
        return [Nest((*loops, along), (Equation(here, whole, outer.guard),))]

    def concatenation(self) -> list[Nest]:
        """One tensor written in two parts by two nests, or by two guarded equations."""
        shape = self._shape(self.rng.choice((1, 2)), 40)
        if shape[0] == 1 or self.chance(0.4):
            return self._by_guards(shape)
        cut = self.rng.randrange(1, shape[0])
        nests: list[Nest] = []
        parts: list[tuple[Space, Ranged]] = []
        for extent in (cut, shape[0] - cut):
            self._start_nest()
            space = self.space((extent, *shape[1:]), innermost=True)
            parts.append((space, self._values(space.coordinates).real(2)))
        low, high = min(v.low for _, v in parts), max(v.high for _, v in parts)
        tensor = self._new(shape, Ranged(Int(0), low, high), self._store(low, high))
        for (space, value), offset in zip(parts, (0, cut), strict=True):
            first, *rest = (c.expr for c in space.coordinates)
            target = tensor.at(plus(first, offset), *rest)
            nests.append(Nest(tuple(space.loops), (Equation(target, value.expr, space.guard),)))
        return nests

    def _by_guards(self, shape: tuple[int, ...]) -> list[Nest]:
        self._start_nest()
        space = self.space(shape)
        if any(x.kind == "V" for x in space.loops):
            raise AssertionError("two equations never share a vector loop here")
        values = self._values(space.coordinates)
        one, two = values.real(2), values.real(2)
        c = self.rng.choice(space.coordinates)
        if self.chance(0.5):
            residue = Binary("%", c.expr, Int(2))
            yes, no = (Compare((residue, Int(0)), (op,)) for op in ("==", "!="))
        else:
            cut = Int(self.rng.randrange(c.extent + 1))
            yes, no = (Compare((c.expr, cut), (op,)) for op in ("<", ">="))
        low, high = min(one.low, two.low), max(one.high, two.high)
        tensor = self._new(shape, Ranged(Int(0), low, high), self._store(low, high))
        target = self._target(tensor, space)
        body = tuple(
            Equation(target, value.expr, _both(space.guard, when))
            for value, when in ((one, yes), (two, no))
        )
        return [Nest(tuple(space.loops), body)]

    def again(self) -> list[Nest]:
        """A tensor that is written already is updated, purely or not."""
        old = [t for t in self.written if DTYPES[t.dtype].is_float and t.shape]
        if not old:
            return self.elementwise()
        self._start_nest()
        tensor = self.rng.choice(old)
        space = self.space(tensor.shape, innermost=True)
        here = self._target(tensor, space)
        others = [t for t in (*self.sources, *self.written) if t.name != tensor.name]
        value = Values(self.rng, others, space.coordinates).real(1)
        pure = self.chance(0.6)
        scaled: Expr = here if pure else Binary("*", here, Real("0.5"))
        joined = Binary("+", scaled, value.expr)
        low, high = tensor.low + value.low, tensor.high + value.high
        if not pure:
            low, high = min(0, tensor.low) + value.low, max(0, tensor.high) + value.high
        if max(abs(low), abs(high)) > FLOAT_BOUND:
            return self.elementwise()
        at = self.written.index(tensor)
        self.written[at] = replace(tensor, low=low, high=high, table=False)
        return [Nest(tuple(space.loops), (Equation(here, joined, space.guard),))]

    def exchange(self) -> list[Nest]:
        """Threads of a block pass values on through shared memory, between sibling loops."""
        self._start_nest()
        rng = self.rng
        launch = [Loop("L", next(self.indices), 2)] if self.chance(0.3) else []
        block = Loop("B", "bx", rng.randint(1, 3))
        threads, readers = rng.randint(1, 6), rng.randint(1, 6)
        base = [Coordinate(Index(x.index), x.extent) for x in (*launch, block)]
        write, read = Loop("B", "tx", threads), Loop("B", "tx", readers)
        value = self._values([*base, Coordinate(Index("tx"), threads)]).real(2)
        shared = Tensor(next(self.names), "f32", "s", (threads,), value.low - 1, value.high + 1)
        thread = [*base, Coordinate(Index("tx"), readers)]
        reader = self._values(thread, shared)
        one, two = reader.read(shared), reader.real(2)
        total = Ranged(Binary("-", one, two.expr), shared.low - two.high, shared.high - two.low)
        shape = tuple(c.extent for c in thread)
        tensor = self._new(shape, total, "f32")
        copy = Equation(shared.at(Index("tx")), value.expr)
        use = Equation(tensor.at(*(c.expr for c in thread)), total.expr)
        body = (Nest((write,), (copy,)), Nest((read,), (use,)))
        return [Nest((*launch, block), body)]

    def block_sum(self) -> list[Nest]:
        """A block reduction into shared memory, used by all threads afterwards."""
        self._start_nest()
        block, thread = Loop("B", "bx", self.rng.randint(1, 3)), Loop("B", "tx", 4)
        coordinates = [Coordinate(Index(x.index), x.extent) for x in (block, thread)]
        value = self._values(coordinates).real(2)
        op = self.rng.choice(("+", "max", "min"))
        if value.size * 4 > FLOAT_BOUND:
            op = "max"
        result = _reduced(op, value, 4)
        total = Tensor(next(self.names), "f64", "s", (), result.low - 1, result.high + 1)
        update = Equation(total.at(), self._update(op, total.at(), value.expr))
        finish = self._values(coordinates).real(1)
        final = Ranged(
            Call("max", (total.at(), finish.expr)),
            max(total.low, finish.low),
            max(total.high, finish.high),
        )
        tensor = self._new((block.extent, 4), final, "f64" if final.size > 6e4 else "f32")
        use = Equation(tensor.at(*(c.expr for c in coordinates)), final.expr)
        return [Nest((block,), (Nest((thread,), (update,)), Nest((thread,), (use,))))]

    def tiled_sum(self) -> list[Nest]:
        """A sum in local memory over tiles that the block copies to shared memory."""
        self._start_nest()
        rng = self.rng
        block, thread = Loop("B", "bx", rng.randint(1, 2)), Loop("B", "tx", rng.randint(1, 4))
        tiles, along = (
            Loop("L", next(self.indices), rng.randint(1, 3)),
            Loop(rng.choice(("L", "U")), next(self.indices), thread.extent),
        )
        place = [Coordinate(Index(x.index), x.extent) for x in (block, thread)]
        step = Coordinate(Index(tiles.index), tiles.extent)
        source = self._values([*place, step]).real(1)
        tile = Tensor(next(self.names), "f32", "s", (thread.extent,), source.low, source.high)
        total = Tensor(next(self.names), "f32", "l", (), 0, 0)
        factor = self._values([*place, step, Coordinate(Index(along.index), along.extent)]).real(1)
        if source.size * factor.size * tiles.extent * along.extent > FLOAT_BOUND:
            factor = Ranged(Int(1), 1, 1)
        product = Binary("*", tile.at(Index(along.index)), factor.expr)
        bound = max(source.size * factor.size * tiles.extent * along.extent, 1)
        result = Ranged(total.at(), -bound - 1, bound + 1)
        tensor = self._new(tuple(c.extent for c in place), result, "f64")
        clear = Nest((thread,), (Equation(total.at(), Int(0)),))
        copy = Nest((thread,), (Equation(tile.at(Index("tx")), source.expr),))
        add = Equation(total.at(), Binary("+", total.at(), product))
        store = Equation(tensor.at(*(c.expr for c in place)), total.at())
        inner = Nest((tiles,), (copy, Nest((thread, along), (add,))))
        return [Nest((block,), (clear, inner, Nest((thread,), (store,))))]

    def any(self) -> list[Nest]:
        """A nest, or two, of some shape."""
        makers = (
            self.elementwise,
            self.elementwise,
            self.scratch,
            self.integers,
            self.mask,
            self.reduction,
            self.reduction,
            self.rows,
            self.recurrence,
            self.concatenation,
            self.again,
            self.exchange,
            self.block_sum,
            self.tiled_sum,
        )
        return self.rng.choice(makers)()


def _both(one: Expr | None, two: Expr | None) -> Expr | None:
    if one is None or two is None:
        return two if one is None else one
    return Binary("&", one, two)


def _identity(op: str) -> Expr:
    match op:
        case "max":
            return Unary("-", Inf())
        case "min":
            return Inf()
    return Int(1 if op == "*" else 0)


def _reduced(op: str, value: Ranged, count: int) -> Ranged:
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
