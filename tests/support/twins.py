"""Random chains of nests with alike loops: producers and consumers, for fusing and inlining.

Intermediates are written by one nest each and read by later ones at plain, shifted, mirrored and
constant subscripts; bodies are assignments, reductions and guarded writes. Nothing keeps them
valid; about half are.
"""

import random

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Kind,
    Loop,
    Nest,
    Program,
    Statement,
    Unary,
)
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable

_LETTERS = "acdf"


class _Twins:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.extents = [rng.choice((1, 2, 3, 4)) for _ in range(rng.choice((1, 2, 2)))]
        bound = rng.random() < 0.3
        self.kinds: list[Kind] = ["B" if bound and k == 0 else "L" for k in range(2)]
        if not bound and rng.random() < 0.15:
            self.kinds[0] = "P"
        #: Intermediates that a nest has written so far, with their ranks.
        self.known: list[tuple[str, str, int]] = []

    def loops(self, salt: int) -> tuple[Loop, ...]:
        names = [_LETTERS[(k + salt) % len(_LETTERS)] for k in range(len(self.extents))]
        if self.kinds[0] == "B":
            names[0] = "tx"
        parts = zip(self.kinds, names, self.extents, strict=False)
        return tuple(Loop(kind, name, extent) for kind, name, extent in parts)

    def subscript(self, loop: Loop) -> Expr:
        index = Index(loop.index)
        match self.rng.randrange(10):
            case 0:
                return Binary("-", Int(loop.extent - 1), index)
            case 1:
                return Int(self.rng.randrange(loop.extent))
            case 2:
                return Binary("%", Binary("+", index, Int(1)), Int(loop.extent))
            case _:
                return index

    def read(self, loops: tuple[Loop, ...]) -> Expr:
        if self.known and self.rng.random() < 0.8:
            name, dtype, rank = self.rng.choice(self.known)
            if rank <= len(loops):
                picked = loops[:rank] if self.rng.random() < 0.85 else loops[-rank or len(loops) :]
                return Access(name, dtype, "g", tuple(self.subscript(x) for x in picked))
        subscripts = tuple(self.subscript(loop) for loop in loops)
        return Access("A", "f32", "g", subscripts)

    def value(self, loops: tuple[Loop, ...]) -> Expr:
        left = self.read(loops)
        match self.rng.randrange(5):
            case 0:
                return left
            case 1:
                return Unary("-", left)
            case 2:
                return Call("max", (left, self.read(loops)))
            case 3:
                return Binary("*", left, Index(loops[-1].index))
            case _:
                return Binary(self.rng.choice("+-*"), left, self.read(loops))

    def nest(self, name: str, salt: int) -> Nest:
        rng, loops = self.rng, self.loops(salt)
        dtype = rng.choice(("f32", "f32", "f16"))
        value = self.value(loops)
        body: tuple[Statement, ...]
        guard: Expr | None = None
        if len(loops) > 1 and rng.random() < 0.35:
            target = Access(name, dtype, "g", (Index(loops[0].index),))
            update = Equation(target, Call("max", (target, value)))
            if rng.random() < 0.5:
                update = Equation(target, Binary("+", target, value))
            body = (update,)
            if rng.random() < 0.5:
                start = Equation(target, Int(0))
                self.known.append((name, dtype, 1))
                return Nest(loops[:1], (start, Nest(loops[1:], body)))
        else:
            target = Access(name, dtype, "g", tuple(Index(loop.index) for loop in loops))
            if rng.random() < 0.15:
                guard = Compare((Index(loops[0].index), Int(loops[0].extent - 1)), ("<",))
            body = (Equation(target, value, guard),)
        self.known.append((name, dtype, len(target.subscripts)))
        if rng.random() < 0.2 and isinstance(body[0], Equation) and len(loops) > 1:
            return Nest(loops[:1], (Nest(loops[1:], body),))
        return Nest(loops, body)


def random_twins(seed: int) -> SignedProgram:
    """A program of two to four nests that share their loops; often but not always valid."""
    rng = random.Random(seed)
    twins = _Twins(rng)
    names = "CEFG"[: rng.choice((1, 2, 2, 3))]
    nests = [twins.nest(name, rng.randrange(2)) for name in names]
    if rng.random() < 0.2:
        nests.append(twins.nest(names[0], rng.randrange(2)))
    loops = twins.loops(rng.randrange(2))
    target = Access("D", "f32", "g", tuple(Index(loop.index) for loop in loops))
    nests.append(Nest(loops, (Equation(target, twins.value(loops)),)))
    shape = tuple(twins.extents)
    variables = (Variable("input", "A", "f32", shape), Variable("output", "D", "f32", shape))
    return SignedProgram(Program(tuple(nests)), Signature(variables))
