"""Random nests that accumulate: reductions, reused accumulators, recurrences."""

from math import prod

from steptp_dagster.leir.ast import (
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Statement,
    Unary,
)
from steptp_dagster.leir.walk import substitute
from tests.support.random_loops import Loops, Space, both, identity, reduced
from tests.support.random_values import FLOAT_BOUND, Coordinate, Ranged, Tensor, plus


class Accumulations(Loops):
    """Makes nests with pure updates and recurrences."""

    def reduction(self) -> list[Nest]:
        """A pure update; the identity implicit, or written in a nest before, or in this nest."""
        self.start_nest()
        rng = self.rng
        shape = self.shape(rng.choice((0, 1, 1, 2)), 20)
        form = rng.choice(("implicit", "implicit", "implicit", "nest", "inside"))
        outer = self.space(shape, plain=form == "inside")
        inner = self.space(self.shape(rng.choice((1, 1, 2)), 12), free=False)
        if form != "inside" and not any(x.kind == "V" for x in outer.loops) and self.chance(0.3):
            inner.loops = self._to_threads(inner.loops, inner)
        values = self.values([*outer.coordinates, *inner.coordinates])
        count = prod(c.extent for c in inner.coordinates)
        op, value = self.accumulated(values.real(2), count)
        result = reduced(op, value, count)
        if form != "implicit":
            result = Ranged(result.expr, min(result.low, 0), max(result.high, 1))
        dtype = "f64" if result.size > FLOAT_BOUND else rng.choice(("f32", "f64"))
        tensor = self.new(shape, result, dtype)
        target = self.target(tensor, outer)
        guard = both(outer.guard, inner.guard)
        update = Equation(target, self.update(op, target, value.expr), guard)
        if form == "inside":
            start = Equation(target, identity(op))
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
        self.start_nest()
        space = self.space(shape, innermost=True)
        first = Equation(self.target(tensor, space), identity(op), space.guard)
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

    def rows(self) -> list[Nest]:
        """An accumulator used again in every row, with its start written there."""
        self.start_nest()
        scope = self.rng.choice("gl")
        shape = self.shape(self.rng.choice((1, 2)), 16)
        outer = self.space(shape, free=scope == "l", kinds="B", plain=True)
        inner = self.space(self.shape(1, 8), free=False, plain=True)
        values = self.values([*outer.coordinates, *inner.coordinates])
        count = prod(c.extent for c in inner.coordinates)
        op, value = self.accumulated(values.real(2), count)
        result = reduced(op, value, count)
        result = Ranged(result.expr, min(result.low, 0), max(result.high, 1))
        accumulator = Tensor(next(self.names), "f64", scope, (), result.low, result.high)
        update = Equation(accumulator.at(), self.update(op, accumulator.at(), value.expr))
        finish = self.values(outer.coordinates, accumulator).real(2)
        final = Ranged(
            Binary("+", accumulator.at(), finish.expr),
            result.low + finish.low,
            result.high + finish.high,
        )
        tensor = self.new(shape, final, "f64" if final.size > FLOAT_BOUND else "f32")
        body = (
            Equation(accumulator.at(), identity(op)),
            Nest(tuple(inner.loops), (update,)),
            Equation(self.target(tensor, outer), final.expr),
        )
        return [Nest(tuple(outer.loops), body)]

    def recurrence(self) -> list[Nest]:
        """A running sum or maximum along the last dimension, with its own guard."""
        self.start_nest()
        shape = self.shape(self.rng.choice((1, 2, 2)), 40)
        outer = self.space(shape[:-1])
        along = Loop("L", next(self.indices), shape[-1])
        c: Expr = Index(along.index)
        coordinates = [*outer.coordinates, Coordinate(c, shape[-1])]
        value = self.values(coordinates).real(2)
        op = "+" if value.size * shape[-1] <= FLOAT_BOUND and self.chance(0.6) else "max"
        result = reduced(op, value, shape[-1])
        result = Ranged(value.expr, min(result.low, 0), max(result.high, 0))
        tensor = self.new(shape, result, "f32")
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
