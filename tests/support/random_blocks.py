"""Random nests whose threads work together through shared memory."""

from steptp_dagster.leir.ast import Binary, Call, Equation, Index, Int, Loop, Nest
from tests.support.random_loops import Loops, reduced
from tests.support.random_values import FLOAT_BOUND, Coordinate, Ranged, Tensor


class Blocks(Loops):
    """Makes nests of thread blocks."""

    def exchange(self) -> list[Nest]:
        """Threads of a block pass values on through shared memory, between sibling loops."""
        self.start_nest()
        rng = self.rng
        launch = [Loop("L", next(self.indices), 2)] if self.chance(0.3) else []
        block = Loop("B", "bx", rng.randint(1, 3))
        threads, readers = rng.randint(1, 6), rng.randint(1, 6)
        base = [Coordinate(Index(x.index), x.extent) for x in (*launch, block)]
        write, read = Loop("B", "tx", threads), Loop("B", "tx", readers)
        value = self.values([*base, Coordinate(Index("tx"), threads)]).real(2)
        shared = Tensor(next(self.names), "f32", "s", (threads,), value.low - 1, value.high + 1)
        thread = [*base, Coordinate(Index("tx"), readers)]
        reader = self.values(thread, shared)
        one, two = reader.read(shared), reader.real(2)
        total = Ranged(Binary("-", one, two.expr), shared.low - two.high, shared.high - two.low)
        shape = tuple(c.extent for c in thread)
        tensor = self.new(shape, total, "f32")
        copy = Equation(shared.at(Index("tx")), value.expr)
        use = Equation(tensor.at(*(c.expr for c in thread)), total.expr)
        body = (Nest((write,), (copy,)), Nest((read,), (use,)))
        return [Nest((*launch, block), body)]

    def block_sum(self) -> list[Nest]:
        """A block reduction into shared memory, used by all threads afterwards."""
        self.start_nest()
        block, thread = Loop("B", "bx", self.rng.randint(1, 3)), Loop("B", "tx", 4)
        coordinates = [Coordinate(Index(x.index), x.extent) for x in (block, thread)]
        value = self.values(coordinates).real(2)
        op = self.rng.choice(("+", "max", "min"))
        if value.size * 4 > FLOAT_BOUND:
            op = "max"
        result = reduced(op, value, 4)
        total = Tensor(next(self.names), "f64", "s", (), result.low - 1, result.high + 1)
        update = Equation(total.at(), self.update(op, total.at(), value.expr))
        finish = self.values(coordinates).real(1)
        final = Ranged(
            Call("max", (total.at(), finish.expr)),
            max(total.low, finish.low),
            max(total.high, finish.high),
        )
        tensor = self.new((block.extent, 4), final, "f64" if final.size > 6e4 else "f32")
        use = Equation(tensor.at(*(c.expr for c in coordinates)), final.expr)
        return [Nest((block,), (Nest((thread,), (update,)), Nest((thread,), (use,))))]

    def tiled_sum(self) -> list[Nest]:
        """A sum in local memory over tiles that the block copies to shared memory."""
        self.start_nest()
        rng = self.rng
        block, thread = Loop("B", "bx", rng.randint(1, 2)), Loop("B", "tx", rng.randint(1, 4))
        tiles, along = (
            Loop("L", next(self.indices), rng.randint(1, 3)),
            Loop(rng.choice(("L", "U")), next(self.indices), thread.extent),
        )
        place = [Coordinate(Index(x.index), x.extent) for x in (block, thread)]
        step = Coordinate(Index(tiles.index), tiles.extent)
        source = self.values([*place, step]).real(1)
        tile = Tensor(next(self.names), "f32", "s", (thread.extent,), source.low, source.high)
        total = Tensor(next(self.names), "f32", "l", (), 0, 0)
        factor = self.values([*place, step, Coordinate(Index(along.index), along.extent)]).real(1)
        if source.size * factor.size * tiles.extent * along.extent > FLOAT_BOUND:
            factor = Ranged(Int(1), 1, 1)
        product = Binary("*", tile.at(Index(along.index)), factor.expr)
        bound = max(source.size * factor.size * tiles.extent * along.extent, 1)
        result = Ranged(total.at(), -bound - 1, bound + 1)
        tensor = self.new(tuple(c.extent for c in place), result, "f64")
        clear = Nest((thread,), (Equation(total.at(), Int(0)),))
        copy = Nest((thread,), (Equation(tile.at(Index("tx")), source.expr),))
        add = Equation(total.at(), Binary("+", total.at(), product))
        store = Equation(tensor.at(*(c.expr for c in place)), total.at())
        inner = Nest((tiles,), (copy, Nest((thread, along), (add,))))
        return [Nest((block,), (clear, inner, Nest((thread,), (store,))))]
