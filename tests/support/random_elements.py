"""Random nests that compute every element on its own."""

from dataclasses import replace

from steptp_dagster.leir.ast import (
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Int,
    Nest,
    Real,
)
from steptp_dagster.leir.dtypes import DTYPES
from tests.support.random_loops import Loops, Space, both
from tests.support.random_values import FLOAT_BOUND, Ranged, Values, plus


class Elements(Loops):
    """Makes elementwise nests."""

    def elementwise(self) -> list[Nest]:
        """One or two tensors, every element on its own."""
        self.start_nest()
        shape = self.shape()
        single = self.chance(0.7)
        space = self.space(shape, innermost=single)
        if not any(loop.kind == "V" for loop in space.loops):
            self.rng.shuffle(space.loops)
        values = self.values(space.coordinates)
        value = values.real(3)
        second = None if single else values.real(2)
        tensor = self.new(shape, value, self.store_dtype(value.low, value.high))
        body = [Equation(self.target(tensor, space), value.expr, space.guard)]
        if second is not None and second.size + value.size < FLOAT_BOUND:
            both = Binary("+", second.expr, self.target(tensor, space))
            value = Ranged(both, second.low + value.low - 1, second.high + value.high + 1)
            other = self.new(shape, value, "f32")
            body.append(Equation(self.target(other, space), both, space.guard))
        return [Nest(tuple(space.loops), tuple(body))]

    def scratch(self) -> list[Nest]:
        """A temporary in local memory between reading and writing."""
        self.start_nest()
        shape = self.shape()
        space = self.space(shape, kinds="B")
        values = self.values(space.coordinates)
        first, second = values.real(2), values.real(1)
        temporary = self.new((), first, "f32", "l")
        joined = Call("max", (temporary.at(), second.expr))
        value = Ranged(joined, max(first.low, second.low) - 1, max(first.high, second.high) + 1)
        tensor = self.new(shape, value, "f32")
        body = (
            Equation(temporary.at(), first.expr, space.guard),
            Equation(self.target(tensor, space), joined, space.guard),
        )
        return [Nest(tuple(space.loops), body)]

    def integers(self) -> list[Nest]:
        """Integer arithmetic, sometimes an affine table for indirect reads."""
        self.start_nest()
        shape = self.shape(self.rng.choice((1, 2)))
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
            value = self.values(space.coordinates).whole(3)
        dtype = self.rng.choice(("i64", "i32", "i16", "i8"))
        tensor = replace(self.new(shape, value, dtype), table=table)
        self.written[-1] = tensor
        body = Equation(self.target(tensor, space), value.expr, space.guard)
        return [Nest(tuple(space.loops), (body,))]

    def mask(self) -> list[Nest]:
        """A bool tensor."""
        self.start_nest()
        shape = self.shape(self.rng.choice((1, 2)))
        space = self.space(shape, innermost=True)
        value = Ranged(self.values(space.coordinates).condition(), 0, 1)
        tensor = self.new(shape, value, "bool")
        body = Equation(self.target(tensor, space), value.expr, space.guard)
        return [Nest(tuple(space.loops), (body,))]

    def concatenation(self) -> list[Nest]:
        """One tensor written in two parts by two nests, or by two guarded equations."""
        shape = self.shape(self.rng.choice((1, 2)), 40)
        if shape[0] == 1 or self.chance(0.4):
            return self._by_guards(shape)
        cut = self.rng.randrange(1, shape[0])
        nests: list[Nest] = []
        parts: list[tuple[Space, Ranged]] = []
        for extent in (cut, shape[0] - cut):
            self.start_nest()
            space = self.space((extent, *shape[1:]), innermost=True)
            parts.append((space, self.values(space.coordinates).real(2)))
        low, high = min(v.low for _, v in parts), max(v.high for _, v in parts)
        tensor = self.new(shape, Ranged(Int(0), low, high), self.store_dtype(low, high))
        for (space, value), offset in zip(parts, (0, cut), strict=True):
            first, *rest = (c.expr for c in space.coordinates)
            target = tensor.at(plus(first, offset), *rest)
            nests.append(Nest(tuple(space.loops), (Equation(target, value.expr, space.guard),)))
        return nests

    def _by_guards(self, shape: tuple[int, ...]) -> list[Nest]:
        self.start_nest()
        space = self.space(shape)
        values = self.values(space.coordinates)
        one, two = values.real(2), values.real(2)
        c = self.rng.choice(space.coordinates)
        if self.chance(0.5):
            residue = Binary("%", c.expr, Int(2))
            yes, no = (Compare((residue, Int(0)), (op,)) for op in ("==", "!="))
        else:
            cut = Int(self.rng.randrange(c.extent + 1))
            yes, no = (Compare((c.expr, cut), (op,)) for op in ("<", ">="))
        low, high = min(one.low, two.low), max(one.high, two.high)
        tensor = self.new(shape, Ranged(Int(0), low, high), self.store_dtype(low, high))
        target = self.target(tensor, space)
        body = tuple(
            Equation(target, value.expr, both(space.guard, when))
            for value, when in ((one, yes), (two, no))
        )
        return [Nest(tuple(space.loops), body)]

    def again(self) -> list[Nest]:
        """A tensor that is written already is updated, purely or not."""
        old = [t for t in self.written if DTYPES[t.dtype].is_float and t.shape]
        if not old:
            return self.elementwise()
        self.start_nest()
        tensor = self.rng.choice(old)
        space = self.space(tensor.shape, innermost=True)
        here = self.target(tensor, space)
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
