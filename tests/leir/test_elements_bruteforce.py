"""Bounds, first touch, unwritten reads, coverage and conflicts against the interpreter.

The programs are small random nests in which nothing depends on data, so that the checker must be
exact: no violation where no fault occurs in the only possible run, and one where a fault does.
"""

import random
from itertools import pairwise
from typing import TypeVar

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
    Kind,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.validity import check

T = TypeVar("T")


class Maker:
    """Random programs over intermediates X, Y and the output D, with little else."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rank = {"X": self.rng.choice((0, 1, 1, 2)), "Y": 1, "D": 1}
        self.scope = {"X": self.rng.choice("ggggls"), "Y": "g", "D": "g"}

    def pick(self, *options: T) -> T:
        return self.rng.choice(options)

    def subscript(self, names: str, *, wide: bool = True) -> Expr:
        if not names:
            return Int(self.pick(0, 0, 1))
        a, c = Index(self.rng.choice(names)), Index(self.rng.choice(names))
        wide = wide and self.rng.random() < 0.5
        options: list[Expr] = [
            a,
            a,
            a,
            Binary("+", Binary("*", a, Int(self.pick(2, 3, 4))), c),
            Binary("//", a, Int(2)),
            Binary("%", a, Int(self.pick(2, 3))),
            Binary("-", Int(self.pick(3, 4, 5)), a),
            Int(self.pick(0, 1)),
        ]
        if wide:
            options += [
                Binary("-", a, Int(1)),
                Binary("+", a, Int(1)),
                Binary("//", Binary("+", Binary("*", a, Int(2)), c), Int(3)),
                Binary("%", Binary("+", a, Int(1)), Int(4)),
                Binary("+", a, c),
            ]
        return self.rng.choice(options)

    def condition(self, names: str) -> Expr:
        left = self.subscript(names)
        if self.rng.random() < 0.15:
            left = Call(self.pick("min", "max"), (left, self.subscript(names)))
        one = Compare(
            (left, Int(self.pick(0, 1, 2, 3, 4, 5))), (self.pick("<", "<=", ">=", ">", "==", "!="),)
        )
        if self.rng.random() < 0.2:
            one = Compare((Int(self.pick(0, 1)), left, Int(self.pick(2, 4, 6))), ("<=", "<"))
        if self.rng.random() < 0.2:
            return Binary(self.pick("&", "|"), one, self.condition(names))
        return one

    def access(self, tensor: str, names: str, *, wide: bool = True) -> Access:
        places = tuple(self.subscript(names, wide=wide) for _ in range(self.rank[tensor]))
        return Access(tensor, "f32", self.scope[tensor], places)

    def value(self, names: str, readable: str) -> Expr:
        if not readable or self.rng.random() < 0.25:
            return Int(1)
        read: Expr = self.access(self.rng.choice(readable), names)
        if self.rng.random() < 0.4:
            other = self.value(names, readable) if self.rng.random() < 0.3 else Int(0)
            branches = [read, other]
            self.rng.shuffle(branches)
            read = Call("if_then_else", (self.condition(names), *branches))
        return read

    def equation(self, names: str, tensor: str, readable: str) -> Equation:
        target = self.access(tensor, names, wide=False)
        result = self.value(names, readable)
        if self.rng.random() < 0.3:
            result = Binary("+", target, Int(1) if self.rng.random() < 0.7 else result)
        guard = self.condition(names) if self.rng.random() < 0.3 else None
        return Equation(target, result, guard)

    def nest(self, depth: int, outer: str, tensors: str, readable: str) -> Nest:
        fresh = [n for n in "acdfgh" if n not in outer]
        count = self.pick(1, 1, 2)
        loops = []
        for name in fresh[:count]:
            kind: Kind = "P" if self.rng.random() < 0.2 else "L"
            if kind == "P" and outer:
                kind = "L"
            loops.append(Loop(kind, name, self.pick(1, 2, 3, 4, 5, 6), self.pick(0, 0, 0, 1)))
        kinds = [x.kind for x in loops]
        if kinds.count("P") > 1:
            loops = [Loop("L", x.index, x.extent, x.start) for x in loops]
        names = outer + "".join(x.index for x in loops)
        body: list[Statement] = []
        for _ in range(self.pick(1, 1, 2, 3)):
            if depth and self.rng.random() < 0.4:
                body.append(self.nest(depth - 1, names, tensors, readable))
            else:
                body.append(self.equation(names, self.rng.choice(tensors), readable))
        return Nest(tuple(loops), tuple(body))

    def prelude(self, tensor: str) -> Nest:
        """An initialisation of elements 0 .. 7, or nearly."""
        names = "ac"[: max(1, self.rank[tensor])]
        loops = tuple(Loop("L", n, self.pick(8, 8, 8, 7)) for n in names)
        places = tuple(Index(n) for n in names[: self.rank[tensor]])
        target = Access(tensor, "f32", self.scope[tensor], places)
        guard = self.condition(names) if self.rng.random() < 0.1 else None
        return Nest(loops, (Equation(target, Int(0), guard),))

    def program(self) -> SignedProgram:
        made = self.nests()
        for tensor in "DYX":
            if self.scope[tensor] == "g" and self.rng.random() < 0.75:
                made.insert(0, self.prelude(tensor))
        signature = Signature((Variable("output", "D", "f32", (self.pick(8, 8, 8, 7, 4),)),))
        return SignedProgram(Program(tuple(made)), signature)

    def nests(self) -> list[Nest]:
        if self.scope["X"] != "g":
            nest = self.nest(2, "", "XYD", "XY")
            tail = Equation(Access("D", "f32", "g", (Index("a"),)), Int(0))
            nests = [nest, Nest((Loop("L", "a", 2),), (tail,))]
        else:
            nests = [self.nest(1, "", "XY", "XY"), self.nest(1, "", "XYD", "XXYD")]
            if self.rng.random() < 0.5:
                nests.append(self.nest(0, "", "D", "XYD"))
        return nests


def verdicts(seed: int) -> tuple[SignedProgram, set[str], set[str]]:
    program = Maker(seed).program()
    found = {v.kind for v in check(program)}
    faults = {f.kind for f in interpret(program, {}).faults}
    return program, found, faults


@pytest.mark.parametrize("block", range(10))
def test_checker_and_interpreter_agree(block: int) -> None:
    """Both find something, or neither does; data plays no part, so nothing may be undecided."""
    for seed in range(block * 40, block * 40 + 40):
        program, found, faults = verdicts(seed)
        assert bool(found) == bool(faults), (seed, found, faults, to_text(program.program))
        assert "undecided" not in found, (seed, to_text(program.program))


def test_the_programs_are_worth_checking() -> None:
    """A fair share is valid, and every kind of element rule is broken by some."""
    seen: set[str] = set()
    valid = 0
    for seed in range(400):
        _, found, _ = verdicts(seed)
        seen |= found
        valid += not found
    assert valid >= 30
    assert seen >= {
        "out-of-bounds",
        "unwritten-read",
        "output-not-covered",
        "mixed-first-touch",
        "partial-value",
        "loop-conflict",
    }


@pytest.mark.parametrize("seed", range(60))
def test_inferred_shapes_are_the_largest_written_subscripts(seed: int) -> None:
    program = Maker(seed).program()
    written: dict[str, list[tuple[int, ...]]] = {}

    def run(statement: Statement, env: dict[str, int]) -> None:
        if isinstance(statement, Equation):
            if statement.guard is None or number(statement.guard, env):
                place = tuple(number(s, env) for s in statement.target.subscripts)
                written.setdefault(statement.target.name, []).append(place)
            return
        loop, rest = statement.loops[0], statement.loops[1:]
        for i in range(loop.start, loop.start + loop.extent):
            inner = {**env, loop.index: i}
            for child in (Nest(rest, statement.body),) if rest else statement.body:
                run(child, inner)

    for nest in program.program.nests:
        run(nest, {})
    shapes = infer_shapes(program)
    for name, places in written.items():
        if name != "D":
            expected = tuple(max(0, *(p[d] for p in places), 0) + 1 for d in range(len(places[0])))
            assert shapes[name] == expected, name


def number(expr: Expr, env: dict[str, int]) -> int:
    """Plain evaluation of index arithmetic and conditions."""
    match expr:
        case Int(v):
            return v
        case Index(name):
            return env[name]
        case Call(function, arguments):
            values = [number(a, env) for a in arguments]
            return max(values) if function == "max" else min(values)
        case Compare(operands, ops):
            numbers = [number(o, env) for o in operands]
            tests = {
                "<": int.__lt__,
                "<=": int.__le__,
                ">": int.__gt__,
                ">=": int.__ge__,
                "==": int.__eq__,
                "!=": int.__ne__,
            }
            return int(all(tests[o](*pair) for o, pair in zip(ops, pairwise(numbers), strict=True)))
        case Binary(op, a, b):
            x, y = number(a, env), number(b, env)
            if op in "//%":
                return x // y if op == "//" else x % y
            return {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y}[op]
    raise TypeError(type(expr).__name__)
