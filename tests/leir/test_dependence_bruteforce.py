"""Dependence answers against enumeration of all iterations of small random nests.

NONE must never hide a conflict and DEPENDENCE must never be invented; UNKNOWN may only stand
where a subscript or condition depends on data, of which these nests have none.
"""

import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

from steptp_dagster.leir import apart, dependence
from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.analysis import Analysis
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
    Unary,
)
from steptp_dagster.leir.dependence import Answer
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable

Env = dict[str, int]


def value(expr: Expr, env: Env) -> int:
    """Plain evaluation of index arithmetic and conditions."""
    match expr:
        case Int(v):
            return v
        case Index(name):
            return env[name]
        case Unary(_, e):
            return -value(e, env)
        case Binary(op, a, b):
            x, y = value(a, env), value(b, env)
            table = {"+": x + y, "-": x - y, "*": x * y, "&": x and y, "|": x or y}
            if op in table:
                return int(table[op])
            return x // y if op == "//" else x % y
        case Compare(operands, ops):
            numbers = [value(o, env) for o in operands]
            compare = {
                "<": lambda x, y: x < y,
                "<=": lambda x, y: x <= y,
                "==": lambda x, y: x == y,
                "!=": lambda x, y: x != y,
                ">=": lambda x, y: x >= y,
                ">": lambda x, y: x > y,
            }
            return int(
                all(compare[o](x, y) for o, x, y in zip(ops, numbers, numbers[1:], strict=False))
            )
    raise TypeError(type(expr).__name__)


Touch = tuple[int, tuple[int, ...], bool, Env]  # statement, place, write, iteration


def touches(statement: Equation, number: int, loops: tuple[Loop, ...]) -> Iterator[Touch]:
    """Everything that the instances of one equation touch of X."""
    ranges = [range(x.start, x.start + x.extent) for x in loops]
    for point in itertools.product(*ranges):
        env = dict(zip((x.index for x in loops), point, strict=True))
        if statement.guard is not None and not value(statement.guard, env):
            continue
        place = tuple(value(s, env) for s in statement.target.subscripts)
        yield number, place, True, env
        yield from reads(statement.value, number, env)


def reads(expr: Expr, number: int, env: Env) -> Iterator[Touch]:
    """Lazily taken reads of X."""
    match expr:
        case Access(name) if name == "X":
            yield number, tuple(value(s, env) for s in expr.subscripts), False, env
        case Call("if_then_else", (condition, yes, no)):
            yield from reads(yes if value(condition, env) else no, number, env)
        case Binary(_, a, b):
            yield from reads(a, number, env)
            yield from reads(b, number, env)
        case Call(_, arguments):
            for argument in arguments:
                yield from reads(argument, number, env)


class Maker:
    """Random nests over one tensor X of rank 1 or 2."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rank = self.rng.choice((1, 1, 2))

    def loops(self, names: str) -> tuple[Loop, ...]:
        pick = self.rng.choice
        return tuple(Loop("L", n, pick((1, 2, 3, 4, 5)), pick((0, 0, 0, 1))) for n in names)

    def affine(self, names: str) -> Expr:
        pick = self.rng.choice
        result: Expr = Int(pick((0, 1, 2, 5)))
        for name in self.rng.sample(names, self.rng.randint(0, len(names))):
            term: Expr = Index(name)
            factor = pick((1, 1, 1, 2, 3, 4, 6))
            if factor > 1:
                term = Binary("*", term, Int(factor))
            result = Binary(pick("++-"), result, term)
        return result

    def subscript(self, names: str) -> Expr:
        expr = self.affine(names)
        kind = self.rng.random()
        if kind < 0.15:
            return Binary("//", expr, Int(self.rng.choice((2, 3, 4))))
        if kind < 0.3:
            return Binary("%", expr, Int(self.rng.choice((2, 3, 4))))
        return expr

    def place(self, names: str) -> tuple[Expr, ...]:
        shift = [Binary("+", self.subscript(names), Int(40)) for _ in range(self.rank)]
        return tuple(shift)

    def condition(self, names: str) -> Expr:
        pick = self.rng.choice
        one = Compare((self.affine(names), Int(pick((0, 2, 4)))), (pick(("<", ">=", "==", "!=")),))
        if self.rng.random() < 0.3:
            return Binary(pick("&|"), one, self.condition(names))
        return one

    def equation(self, names: str) -> Equation:
        target = Access("X", "f32", "g", self.place(names))
        roll = self.rng.random()
        if roll < 0.25:
            operand: Expr = Access("A", "f32", "g", ())
            result: Expr = Binary("+", target, operand)
        elif roll < 0.7:
            result = Access("X", "f32", "g", self.place(names))
        else:
            result = Int(1)
        if self.rng.random() < 0.3:
            result = Call("if_then_else", (self.condition(names), result, Int(0)))
        guard = self.condition(names) if self.rng.random() < 0.25 else None
        return Equation(target, result, guard)


def signed(*nests: Nest) -> SignedProgram:
    signature = Signature((Variable("input", "A", "f32", ()), Variable("output", "D", "f32", ())))
    return SignedProgram(Program(nests), signature)


def is_reduction(
    program: SignedProgram, one: Touch, other: Touch, paths: Sequence[tuple[int, ...]]
) -> bool:
    if one[0] != other[0]:
        return False
    return Analysis.of(program).updates[paths[one[0]]].kind == "update"


def agree(answer: Answer, truth: bool, what: str) -> None:
    assert answer is (Answer.DEPENDENCE if truth else Answer.NONE), (what, answer, truth)


@pytest.mark.parametrize("seed", range(70))
def test_carried_conflicts_are_exact(seed: int) -> None:
    make = Maker(seed)
    loops = make.loops("acd"[: make.rng.randint(1, 3)])
    names = "".join(x.index for x in loops)
    body = tuple(make.equation(names) for _ in range(make.rng.randint(1, 2)))
    program = signed(Nest(loops, body))
    paths = [(0, i) for i in range(len(body))]
    everything = [t for i, e in enumerate(body) for t in touches(e, i, loops)]
    for k, loop in enumerate(loops):
        plain = reduction = False
        for one, other in itertools.combinations(everything, 2):
            if one[1] != other[1] or not (one[2] or other[2]):
                continue
            outer = names[:k]
            if any(one[3][n] != other[3][n] for n in outer):
                continue
            if one[3][loop.index] == other[3][loop.index]:
                continue
            if is_reduction(program, one, other, paths):
                reduction = True
            else:
                plain = True
        found = dependence.carried(program, (0,), loop.index)
        agree(found.answer, plain, f"loop {loop.index}")
        agree(found.reduction, reduction, f"reduction over {loop.index}")


@pytest.mark.parametrize("seed", range(70))
def test_permutations_are_exact(seed: int) -> None:
    make = Maker(1000 + seed)
    loops = make.loops("acd"[: make.rng.randint(2, 3)])
    names = "".join(x.index for x in loops)
    body = tuple(make.equation(names) for _ in range(make.rng.randint(1, 2)))
    program = signed(Nest(loops, body))
    paths = [(0, i) for i in range(len(body))]
    everything = [t for i, e in enumerate(body) for t in touches(e, i, loops)]
    for order in itertools.permutations(names):

        def time(t: Touch, by: tuple[str, ...] = order) -> tuple[int, ...]:
            return (*(t[3][n] for n in by), t[0])

        def before(t: Touch) -> tuple[int, ...]:
            return (*(t[3][n] for n in names), t[0])

        broken = reassociated = False
        for one, other in itertools.combinations(everything, 2):
            if one[1] != other[1] or not (one[2] or other[2]) or before(one) == before(other):
                continue
            if (before(one) < before(other)) != (time(one) < time(other)):
                if is_reduction(program, one, other, paths):
                    reassociated = True
                else:
                    broken = True
        verdict = dependence.can_permute(program, (0,), order)
        expected = "illegal" if broken else "reassociated" if reassociated else "exact"
        assert verdict == expected, (order, verdict, expected)


@pytest.mark.parametrize("seed", range(70))
def test_fusion_and_moves_are_exact(seed: int) -> None:
    make = Maker(2000 + seed)
    first = make.loops("acd"[: make.rng.randint(1, 3)])
    common = make.rng.randint(1, len(first))
    other_names = make.rng.choice(("acd", "fgh", "caf"))
    rest = make.loops("jk"[: make.rng.randint(0, 2)])
    second = (
        *(
            Loop("L", n, x.extent, x.start)
            for n, x in zip(other_names, first[:common], strict=False)
        ),
        *rest,
    )
    names = ["".join(x.index for x in loops) for loops in (first, second)]
    one_body, two_body = make.equation(names[0]), make.equation(names[1])
    program = signed(Nest(first, (one_body,)), Nest(second, (two_body,)))
    ones, twos = list(touches(one_body, 0, first)), list(touches(two_body, 1, second))
    reversed_pair = conflict = False
    for a, b in itertools.product(ones, twos):
        if a[1] == b[1] and (a[2] or b[2]):
            conflict = True
            mine = tuple(a[3][n] for n in names[0][:common])
            yours = tuple(b[3][n] for n in names[1][:common])
            reversed_pair = reversed_pair or yours < mine
    agree(dependence.can_fuse(program, (0,), (1,), common), reversed_pair, "fusion")
    agree(dependence.can_move(program, (1,), (0,)), conflict, "move")


def test_the_fast_test_decides_most_questions() -> None:
    """The share of absences that need isl stays small, and the fast test never lies."""
    fast = absent = 0
    for seed in range(100):
        make = Maker(5000 + seed)
        loops = make.loops("ac")
        program = signed(Nest(loops, (make.equation("ac"), make.equation("ac"))))
        uses = [u for u in Analysis.of(program).accesses.uses if u.tensor == "X"]
        for one, other in dependence.conflicting_pairs(uses):
            relations = [("a", "a", "!="), ("c", "c", "*")]
            proved = apart.proved_apart(one, other, relations)
            truth = _touching(one, other, loops)
            assert not (proved and truth)
            absent += not truth
            fast += proved
    assert absent > 40
    assert fast >= 0.7 * absent, (fast, absent)


def _touching(one: Use, other: Use, loops: tuple[Loop, ...]) -> bool:
    def of(use: Use) -> set[tuple[tuple[int, ...], int]]:
        equation = use.statement.equation
        found = set()
        for _, place, write, env in touches(equation, 0, loops):
            if write == use.write:
                found.add((place, env["a"]))
        return found

    return any(p == q and a != b for p, a in of(one) for q, b in of(other))
