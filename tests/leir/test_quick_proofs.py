"""Quick proofs agree with what they stand in for: types, extents, elements written before."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from steptp_dagster.leir import (
    apart,
    dependence,
    elements,
    nest_memory,
    regions,
    shapes,
    typing,
    updates,
)
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import type_violations, well_typed
from steptp_dagster.leir.walk import equations, iter_expr, map_expr
from tests.support.corpus import INVALID, VALID
from tests.support.programs import random_mutant, random_program
from tests.support.remembering import answers, without_memory
from tests.support.tangles import random_tangle
from tests.support.twins import random_twins

HEADER = "# input A f32[12,12]\n# input Y i64[12] in 0..11\n# output D f32[12]\n"
#: Layouts, tails and guards, with readers that do and do not fit them.
LAYOUTS = [
    HEADER
    + f"L^{{12}}_{{a=0}}L^{{9}}_{{c=0}}[X^{{f32,g}}_{{{written}}}=A^{{f32,g}}_{{a,c}}{guard};];"
    + f"L^{{{rows}}}_{{f=0}}L^{{9}}_{{g=0}}[D^{{f32,g}}_{{f}}=D^{{f32,g}}_{{f}}+"
    + f"X^{{f32,g}}_{{{read_}}};];"
    for rows in (12, 13)
    for guard in ("", ":a*9+c<100", ":c<8")
    for written, read_ in (
        ("a//5,a%5,c", "f//5,f%5,g"),
        ("a//5,a%5,c", "f//5,f%5,g//2"),
        ("a//5,a%5,c", "f//5,g%5,f%5"),
        ("c%4,c//4,a", "g%4,g//4,f"),
        ("c%4,a", "g%4,f"),
        ("a//5,a%5,c", "f//5,f%5,0"),
        ("a//7,a%7,c%5,c//5", "f//7,f%7,g%5,g//5"),
        ("a*2+c%2", "f*2+g%2"),
        ("(a*9+c)//7,(a*9+c)%7", "(f*9+g)//7,(f*9+g)%7"),
        ("11-a,c", "11-f,g"),
        ("a,0", "f,0"),
    )
]
#: Tiles and parts of sums with tails that are there, or not, and readers of all or too much.
TILES = [
    HEADER
    + f"L^{{3}}_{{p=0}}L^{{2}}_{{q=0}}L^{{4}}_{{a=0}}L^{{5}}_{{c=0}}[X^{{f32,g}}_{{{written}}}="
    + f"A^{{f32,g}}_{{p*4+a,q*5+c}}:p*4+a<{rows}&q*5+c<{columns};];"
    + f"L^{{{rows}}}_{{f=0}}L^{{{reach}}}_{{g=0}}[D^{{f32,g}}_{{f}}=D^{{f32,g}}_{{f}}+"
    + f"X^{{f32,g}}_{{{read_}}};];"
    for rows, columns, reach in ((12, 9, 9), (12, 9, 10), (11, 7, 7), (12, 8, 9), (12, 11, 10))
    for written, read_ in (
        ("p*4+a,q*5+c", "f,g"),
        ("q*5+c,p*4+a", "g,f"),
        ("p*4+a+q,c", "f,0"),
        ("p,a,q,c", "f//4,f%4,g//5,g%5"),
    )
] + [
    HEADER
    + "L^{12}_{f=0}L^{2}_{p=0}L^{5}_{q=0}"
    + f"[X^{{f32,g}}_{{f,p}}=X^{{f32,g}}_{{f,p}}+A^{{f32,g}}_{{f,p*5+q}}:{guard};];"
    + "L^{12}_{f=0}L^{2}_{p=0}[D^{f32,g}_{f}=D^{f32,g}_{f}+X^{f32,g}_{f,p};];"
    for guard in (
        *(f"p*5+q<{n}" for n in (9, 8, 7, 6, 5)),
        *("f+q<4", "f+q<12", "f+q<13", "f+q<16", "q>=p*4&p*5+q<9", "f>=q"),
    )
]
#: Rows as sums of two indices that tell iterations apart, or not, on two kinds of loops.
DIGITS = [
    HEADER
    + f"P^{{3}}_{{p=0}}L^{{{inner}}}_{{a=0}}L^{{9}}_{{g=0}}"
    + f"[D^{{f32,g}}_{{{row}}}=D^{{f32,g}}_{{{row}}}+A^{{f32,g}}_{{{row},g}};];"
    for inner in (2, 3, 4)
    for row in ("p*4+a", "p*3+a", "a*3+p", "11-p*4-a", "p+a")
]


def _programs(step: int, seeds: int) -> list[SignedProgram]:
    found = [read(text).signed for text in (*LAYOUTS, *TILES, *DIGITS)]
    found += [case.signed for case in (*VALID[::step], *INVALID[::step])]
    makers: tuple[Callable[[int], SignedProgram], ...]
    makers = (random_program, random_mutant, random_tangle, random_twins)
    return found + [make(seed) for seed in range(seeds) for make in makers]


#: Parts that break type rules in some places and none in others.
PARTS: tuple[Expr, ...] = (
    Int(127),
    Int(128),
    Int(1 << 40),
    Unary("-", Int(1)),
    Real("0.5"),
    Binary("**", Index("a"), Index("a")),
    Binary("**", Index("a"), Int(2)),
    Binary("&", Index("a"), Int(1)),
    Compare((Index("a"), Int(1)), ("<",)),
    Binary("|", Compare((Index("a"), Int(1)), ("<",)), Compare((Index("a"), Int(3)), ("==",))),
    Call("if_then_else", (Index("a"), Int(1), Int(2))),
    Call("max", (Index("a"), Int(300))),
    Access("Y", "i64", "g", (Index("a"),)),
    Access("F", "f32", "g", (Index("a"),)),
    Access("Z", "bool", "g", ()),
    Access("Q", "i8", "g", (Binary("*", Index("a"), Int(200)),)),
)


def _variants(equation: Equation, rng: random.Random) -> Iterator[Equation]:
    """The equation with one part put in the place of a node of its value, guard or subscripts."""
    yield equation
    for part in PARTS:
        yield replace(equation, guard=part)
        if equation.target.subscripts:
            subscripts = (*equation.target.subscripts[:-1], part)
            yield replace(equation, target=replace(equation.target, subscripts=subscripts))
        chosen = rng.choice(list(iter_expr(equation.value)))
        yield replace(equation, value=_with(equation.value, chosen, part))


def _with(value: Expr, old: Expr, new: Expr) -> Expr:
    """The value with a part in the place of one of its nodes."""

    def visit(node: Expr) -> Expr:
        return new if node is old else node

    return map_expr(value, visit)


def test_a_look_at_each_node_finds_no_type_rule_kept_that_is_broken() -> None:
    rng = random.Random(0)
    broken = plain = 0
    for program in _programs(12, 2):
        for located in equations(program.program):
            for equation in _variants(located.equation, rng):
                violations = type_violations(equation)
                assert well_typed(equation) == (not violations)
                broken += bool(violations)
                plain += typing.plain(equation)
    assert broken > 300
    assert plain > 200


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (shapes, "_witnessed"),
        (shapes, "_attained"),
        (updates, "_mirrors"),
        (apart, "_digits"),
        (regions, "_met_aside"),
        (elements, "_inside"),
        (elements, "_plain_box"),
        (dependence, "witnessed"),
    ],
)
def test_quick_proofs_say_what_isl_says(
    module: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = _programs(9, 5)
    proof = getattr(module, name)
    proved = 0

    def counted(*arguments: object) -> object:
        nonlocal proved
        found: object = proof(*arguments)
        proved += bool(found)
        return found

    monkeypatch.setattr(module, name, counted)
    nest_memory.forget()
    quick = [answers(program) for program in programs]
    assert proved >= 5
    monkeypatch.setattr(module, name, lambda *_: None)
    with without_memory():
        assert [answers(program) for program in programs] == quick
    nest_memory.forget()
