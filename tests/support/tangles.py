"""Random small nests that nothing keeps valid: loops, kinds, scopes, subscripts at random.

Unlike the mutants they are not near a sensible program, so they reach corners of the rules on
dependence, first touch and threads. Global tensors are mostly initialised before, and the output
is always covered, so that a fair share is valid.
"""

import random
from dataclasses import dataclass, field

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable

_SIZE = 6


@dataclass
class _Tangle:
    rng: random.Random
    axes: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=lambda: list("acdfghijkmno"))

    def access(self, name: str, loops: list[Loop], pool: dict[str, tuple[str, int]]) -> Access:
        scope, rank = pool[name]
        return Access(name, "f32", scope, tuple(self.subscript(loops) for _ in range(rank)))

    def subscript(self, loops: list[Loop]) -> Expr:
        rng = self.rng
        if not loops or rng.random() < 0.12:
            return Int(rng.randrange(3))
        loop = rng.choice(loops)
        index = Index(loop.index)
        if rng.random() < 0.04:
            place = Index(rng.choice(loops).index)
            return Access("Y", "i64", "g", (Binary("%", place, Int(_SIZE)),))
        match rng.randrange(12):
            case 0:
                return Binary("+", index, Int(1))
            case 1:
                return Binary("-", Int(loop.extent - 1), index)
            case 2:
                return Binary("//", index, Int(2))
            case 3:
                return Binary(
                    "%", Binary("+", index, Int(rng.randrange(3))), Int(rng.randint(2, 4))
                )
            case 4 | 5:
                other = rng.choice(loops)
                return Binary("+", Binary("*", index, Int(other.extent)), Index(other.index))
            case 6:
                return Binary("+", index, Index(rng.choice(loops).index))
        return index

    def equation(self, loops: list[Loop], pool: dict[str, tuple[str, int]]) -> Equation:
        rng = self.rng
        target = self.access(rng.choice(sorted(pool)), loops, pool)
        read: Expr = self.access(rng.choice(sorted(pool)), loops, pool)
        if rng.random() < 0.4:
            read = Access("A", "f32", "g", tuple(self.subscript(loops) for _ in range(2)))
        value: Expr
        match rng.randrange(6):
            case 0 | 1:
                value = Binary("+", target, read)
            case 2:
                value = Call("max", (read, target))
            case 3:
                value = Binary("*", read, Int(2))
            case 4:
                value = Call("if_then_else", (self.condition(loops), read, Int(1)))
            case _:
                value = read
        guard = self.condition(loops) if rng.random() < 0.3 else None
        return Equation(target, value, guard)

    def condition(self, loops: list[Loop]) -> Expr:
        loop = self.rng.choice(loops)
        bound = Int(self.rng.randrange(loop.extent + 1))
        op = self.rng.choice(("<", ">=", "==", "!="))
        if self.rng.random() < 0.15:
            place = Binary("%", Index(loop.index), Int(_SIZE))
            return Compare((Access("A", "f32", "g", (place, Int(0))), Int(0)), ("<",))
        return Compare((Index(loop.index), bound), (op,))

    def loop(self, outer: list[Loop]) -> Loop:
        rng = self.rng
        extent = rng.randint(1, 4)
        free = [a for a in self.axes if all(x.axis != a for x in outer)]
        kind = rng.choice("LLLLPUBBBB")
        if kind == "B" and free:
            return Loop("B", rng.choice(free), extent)
        kinds = {"P": "P", "U": "U"}
        name = self.fresh.pop(0)
        if kinds.get(kind) == "P":
            return Loop("P", name, extent)
        return Loop("U" if kind == "U" else "L", name, extent)

    def nest(self, outer: list[Loop], pool: dict[str, tuple[str, int]], depth: int) -> Nest:
        rng = self.rng
        loops: list[Loop] = []
        for _ in range(rng.choice((1, 1, 2))):
            loops.append(self.loop(outer + loops))
        inner = outer + loops
        body: list[Statement] = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            if depth and len(self.fresh) > 3 and rng.random() < 0.5:
                body.append(self.nest(inner, pool, depth - 1))
            else:
                body.append(self.equation(inner, pool))
        return Nest(tuple(loops), tuple(body))


def tangle(rng: random.Random) -> SignedProgram:
    """A program of up to two tangled nests between an initialisation and a copy to the output."""
    pools = {
        "C": ("g", 1),
        "E": ("g", 2),
        "F": ("g", 0),
        "G": ("s", 1),
        "H": ("l", 0),
        "I": ("s", 0),
    }
    names = rng.sample(sorted(pools), rng.randint(1, 3))
    pool = {name: pools[name] for name in names}
    shared = [n for n in names if pool[n][0] == "g"]
    nests: list[Nest] = []
    ready: list[str] = []
    for name in shared:
        if rng.random() < 0.6:
            ready.append(name)
            loops = tuple(Loop("L", x, _SIZE) for x in ("a", "c", "d")[: max(1, pool[name][1])])
            subscripts = tuple(Index(x.index) for x in loops[: pool[name][1]])
            nests.append(Nest(loops, (Equation(Access(name, "f32", "g", subscripts), Int(1)),)))
    for _ in range(rng.choice((1, 1, 2))):
        usable = pool if not nests or rng.random() < 0.7 else {n: pool[n] for n in shared} or pool
        maker = _Tangle(rng, rng.sample(("tx", "ty", "bx", "by"), rng.randint(0, 2)))
        nests.append(maker.nest([], usable, 2))
    value: Expr = Int(1)
    for name in ready:
        last = tuple(Index(x) for x in ("a", "c")[: pool[name][1]])
        value = Binary("+", value, Access(name, "f32", "g", last))
    copy = Equation(Access("D", "f32", "g", (Index("a"), Index("c"))), value)
    nests.append(Nest((Loop("L", "a", _SIZE), Loop("L", "c", _SIZE)), (copy,)))
    signature = Signature(
        (
            Variable("input", "A", "f32", (_SIZE, _SIZE)),
            Variable("input", "Y", "i64", (_SIZE,), 0, 2),
            Variable("output", "D", "f32", (_SIZE, _SIZE)),
        )
    )
    return SignedProgram(Program(tuple(nests)), signature)


def random_tangle(seed: int) -> SignedProgram:
    """The tangle with this seed."""
    return tangle(random.Random(f"tangle {seed}"))
