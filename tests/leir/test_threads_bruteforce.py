"""Threads, blocks, launches and scopes against the interpreter, on small random kernels."""

import random

import pytest

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
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.validity import check

SCOPES = {"S": "s", "X": "l", "E": "g", "D": "g", "R": "s"}
RANKS = {"S": 1, "X": 0, "E": 2, "D": 2, "R": 0}
#: Rules that look at the text where the interpreter looks at one run: the checker may be stricter.
STRICTER = {"thread-communication", "cross-block"}


class Maker:
    """Random kernels: launch loop, block loop, serial loop, sibling thread loops."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.threads = self.rng.choice((2, 3, 4))
        self.blocks = self.rng.choice((0, 2, 3))
        self.written: list[str] = []

    def subscript(self, names: list[str]) -> Expr:
        a = Index(self.rng.choice(names)) if names else Int(0)
        roll = self.rng.random()
        if roll < 0.6:
            return a
        if roll < 0.75:
            return Binary("-", Int(self.threads - 1), a)
        if roll < 0.85:
            return Binary("%", Binary("+", a, Int(1)), Int(self.threads))
        if roll < 0.9:
            return Binary("//", a, Int(2))
        return Int(self.rng.choice((0, 1)))

    def places(self, tensor: str, names: list[str]) -> tuple[Expr, ...]:
        threads = [n for n in names if n.startswith("t")]
        blocks = [n for n in names if n.startswith("b")]
        others = [n for n in names if n[0] not in "tb"]
        if RANKS[tensor] == 0:
            return ()
        inner = self.subscript(threads if self.rng.random() < 0.85 else others or threads)
        if RANKS[tensor] == 1:
            return (inner,)
        outer = self.subscript(blocks or others) if self.rng.random() < 0.9 else Int(0)
        return outer, inner

    def access(self, tensor: str, names: list[str]) -> Access:
        return Access(tensor, "f32", SCOPES[tensor], self.places(tensor, names))

    def equation(self, names: list[str]) -> Equation:
        tensor = self.rng.choice("SSXXEDR")
        target = self.access(tensor, names)
        value: Expr = Int(1)
        if self.written and self.rng.random() < 0.8:
            value = self.access(self.rng.choice(self.written), names)
            if self.rng.random() < 0.2:
                limit = Int(self.rng.choice((1, 2, 3)))
                condition = Compare((Index(self.rng.choice(names)), limit), ("<",))
                value = Call("if_then_else", (condition, value, Int(0)))
        if self.rng.random() < 0.3:
            value = Binary("+", target, value)
        guard = None
        if self.rng.random() < 0.15:
            limit = Int(self.rng.choice((0, 1, 2)))
            guard = Compare((Index(self.rng.choice(names)), limit), (self.rng.choice(("==", "<")),))
        self.written.append(tensor)
        return Equation(target, value, guard)

    def thread_loop(self, names: list[str]) -> Nest:
        extent = self.threads if self.rng.random() < 0.85 else self.threads - 1
        loops = [Loop("B", "tx", extent)]
        inner = [*names, "tx"]
        if self.rng.random() < 0.3:
            loops.append(Loop("L", "f", self.rng.choice((1, 2, 3))))
            inner.append("f")
        body = tuple(self.equation(inner) for _ in range(self.rng.choice((1, 1, 2))))
        return Nest(tuple(loops), body)

    def items(self, names: list[str], depth: int) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            if depth and self.rng.random() < 0.3:
                loop = Loop("L", "k", self.rng.choice((1, 2)))
                made.append(Nest((loop,), self.items([*names, "k"], 0)))
            else:
                made.append(self.thread_loop(names))
        return tuple(made)

    def program(self) -> SignedProgram:
        loops: list[Loop] = []
        if self.rng.random() < 0.4:
            loops.append(Loop("L", "a", self.rng.choice((1, 2, 3))))
        if self.blocks:
            loops.append(Loop("B", "bx", self.blocks))
        if not loops:
            loops.append(Loop("L", "a", 1))
        names = [x.index for x in loops]
        kernel = Nest(tuple(loops), self.items(names, 1))
        size = (4, 4)
        box = (Loop("L", "a", 4), Loop("L", "c", 4))
        first = [
            Nest(box, (Equation(Access(t, "f32", "g", (Index("a"), Index("c"))), Int(0)),))
            for t in "ED"
        ]
        signature = Signature((Variable("output", "D", "f32", size),))
        return SignedProgram(Program((*first, kernel)), signature)


def verdicts(seed: int) -> tuple[SignedProgram, set[str], set[str]]:
    program = Maker(seed).program()
    return (
        program,
        {v.kind for v in check(program)},
        {f.kind for f in interpret(program, {}).faults},
    )


@pytest.mark.parametrize("block", range(10))
def test_checker_and_interpreter_agree(block: int) -> None:
    for seed in range(block * 40, block * 40 + 40):
        program, found, faults = verdicts(seed)
        text = to_text(program.program)
        assert not (faults and not found), (seed, faults, text)
        assert faults or not found - STRICTER, (seed, found, text)
        assert "undecided" not in found, (seed, text)


def test_many_kernels_are_valid() -> None:
    valid = sum(not verdicts(seed)[1] for seed in range(300))
    assert valid >= 30
