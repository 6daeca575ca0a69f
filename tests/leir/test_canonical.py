"""Content ids and structural hashes: what they ignore and what they tell apart."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptp_dagster.leir.ast import Access, Binary, Call, Expr, Loop, Nest, Program
from steptp_dagster.leir.canonical import (
    canonical_nest,
    canonical_text,
    leir_id,
    structural_hash,
)
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import map_expr, map_program
from tests.support.syntax import SLOW, TENSORS, programs

HEADER = "# input A f32[4,8]\n# param W f32[8]\n# const K f32[] = 2\n# output D f32[4]\n"
BASE = (
    "B^{4}_{tx=0}L^{8}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},A^{f32,g}_{tx,a});];"
    "B^{4}_{tx=0}L^{8}_{a=0}[S^{f32,g}_{tx}=S^{f32,g}_{tx}+A^{f32,g}_{tx,a}*W^{f32,g}_{a};];"
    "B^{4}_{tx=0}[D^{f32,g}_{tx}=M^{f32,g}_{tx}-S^{f32,g}_{tx}*K^{f32,g}:tx!=3;];"
)


def signed(text: str, header: str = HEADER) -> SignedProgram:
    return read(header + text).signed


def test_ids_do_not_move() -> None:
    assert leir_id(signed(BASE)) == leir_id(signed(BASE.replace(";", " ;\n")))
    assert leir_id(signed(BASE)) == "91c80e994228fc2bf8a1e645fa47349c"
    assert structural_hash(signed(BASE)) == "b8a5783675781faba1ef63d6884e1e23"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("M^", "Xc^"),
        ("S^", "N^"),
        ("{a=0}", "{a=1}"),
        ("*K", "+K"),
        ("!=3", "!=2"),
        ("B^{4}_{tx=0}[D", "B^{4}_{tx=1}[D"),
        ("W^{f32,g}_{a}", "W^{f32,g}_{a+0}"),
    ],
)
def test_ids_tell_texts_apart(old: str, new: str) -> None:
    assert leir_id(signed(BASE.replace(old, new))) != leir_id(signed(BASE))


def test_ids_depend_on_signature_and_constants() -> None:
    ids = {
        leir_id(signed(BASE, header))
        for header in (
            HEADER,
            HEADER.replace("= 2", "= 3"),
            HEADER.replace("[4,8]", "[4,9]"),
            HEADER.replace("W f32[8]", "W f32[8] in 0..1"),
            HEADER.replace("param", "input"),
        )
    }
    assert len(ids) == 5


@pytest.mark.parametrize(
    "pairs",
    [
        [("M^", "Xc^")],
        [("M^", "Zz^"), ("S^", "M^"), ("Zz^", "S^")],
        [("{a=0}", "{ghi=0}"), ("{tx,a}", "{tx,ghi}"), ("_{a}", "_{ghi}")],
        [("{tx=0}", "{txq=0}"), ("{tx}", "{txq}"), ("{tx,", "{txq,"), (":tx!", ":txq!")],
        [("A^{f32,g}_{tx,a}*W^{f32,g}_{a}", "W^{f32,g}_{a}*A^{f32,g}_{tx,a}")],
        [("max(M^{f32,g}_{tx},A^{f32,g}_{tx,a})", "max(A^{f32,g}_{tx,a},M^{f32,g}_{tx})")],
        [("S^{f32,g}_{tx}*K^{f32,g}", "K^{f32,g}*S^{f32,g}_{tx}"), ("tx!=3", "3!=tx")],
    ],
)
def test_structure_ignores_names_and_order_of_operands(pairs: list[tuple[str, str]]) -> None:
    text = BASE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    assert structural_hash(signed(text)) == structural_hash(signed(BASE))
    assert leir_id(signed(text)) != leir_id(signed(BASE))


def test_structure_ignores_the_names_of_known_variables() -> None:
    renamed = signed(BASE.replace("A^", "R^"), HEADER.replace("input A", "input R"))
    assert structural_hash(renamed) == structural_hash(signed(BASE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("M^{f32,g}_{tx}-S^{f32,g}_{tx}*K", "S^{f32,g}_{tx}-M^{f32,g}_{tx}*K"),
        ("max(", "min("),
        ("tx!=3", "tx!=2"),
        ("tx!=3", "tx==3"),
        ("_{tx,a}*", "_{tx,0}*"),
        ("B^{4}_{tx=0}[", "B^{4}_{bx=0}["),
        ("B^{4}_{tx=0}[", "L^{4}_{tx=0}["),
        ("K^{f32,g}:tx!=3", "K^{f32,g}"),
        ("W^{f32,g}_{a};", "W^{f32,g}_{a}+0;"),
        ("S^{f32,g}_{tx}=S^{f32,g}_{tx}+", "S^{f32,g}_{tx}=M^{f32,g}_{tx}+"),
        ("B^{4}_{tx=0}L^{8}_{a=0}[S", "L^{8}_{a=0}B^{4}_{tx=0}[S"),
        ("L^{8}_{a=0}[S", "L^{8}_{a=0}L^{1}_{c=0}[S"),
    ],
)
def test_structure_tells_programs_apart(old: str, new: str) -> None:
    assert old in BASE
    text = BASE.replace(old, new)
    if "L^{4}_{tx" in text:
        text = text.replace("L^{4}_{tx=0}[D", "L^{4}_{c=0}[D")
        last = text.index("L^{4}_{c")
        text = text[:last] + text[last:].replace("{tx}", "{c}").replace(":tx", ":c")
    assert structural_hash(signed(text)) != structural_hash(signed(BASE))


def test_structure_depends_on_constants() -> None:
    other = signed(BASE, HEADER.replace("= 2", "= 3"))
    assert structural_hash(other) != structural_hash(signed(BASE))


OUTPUT = Signature((Variable("output", TENSORS[0], "f16", (2,)),))


def _commuted(program: Program, flip: bool) -> Program:
    def swap(node: Expr) -> Expr:
        if isinstance(node, Binary) and node.op in ("+", "*", "&", "|") and flip:
            return replace(node, left=node.right, right=node.left)
        if isinstance(node, Call) and node.function in ("max", "min"):
            return replace(node, arguments=node.arguments[::-1])
        return node

    return map_program(program, lambda expr: map_expr(expr, swap))


def _written(program: Program) -> Program:
    """The program after nests that write every tensor: hashes of others may depend on order."""
    first = parse("L^{1}_{q=0}[" + "".join(f"{name}^{{f32,l}}=0;" for name in TENSORS) + "];")
    return Program((*first.program.nests, *program.nests))


@given(programs(), st.booleans(), st.permutations(TENSORS[1:]))
@settings(suppress_health_check=SLOW)
def test_structure_of_random_programs(program: Program, flip: bool, names: list[str]) -> None:
    start = SignedProgram(_written(program), OUTPUT)
    by = dict(zip(TENSORS[1:], names, strict=True))

    def rename(node: Expr) -> Expr:
        return (
            replace(node, name=by.get(node.name, node.name)) if isinstance(node, Access) else node
        )

    renamed = map_program(_commuted(start.program, flip), lambda expr: map_expr(expr, rename))
    assert structural_hash(SignedProgram(renamed, OUTPUT)) == structural_hash(start)


@given(programs(), programs())
@settings(suppress_health_check=SLOW)
def test_different_programs_differ(one: Program, other: Program) -> None:
    first, second = SignedProgram(one, OUTPUT), SignedProgram(other, OUTPUT)
    assert (leir_id(first) == leir_id(second)) == (one == other)
    if [_shape(n) for n in one.nests] != [_shape(n) for n in other.nests]:
        assert structural_hash(first) != structural_hash(second)


def _shape(nest: Nest) -> list[object]:
    def loop(one: Loop) -> tuple[object, ...]:
        return one.kind, one.extent, one.start, one.axis

    return [
        *map(loop, nest.loops),
        *(_shape(s) if isinstance(s, Nest) else "=" for s in nest.body),
    ]


def test_canonical_text() -> None:
    assert canonical_text(signed(BASE)) == BASE
    assert canonical_text(signed(BASE).program) == BASE


def test_canonical_nests() -> None:
    first, second, _ = signed(BASE).program.nests
    found = canonical_nest(second)
    assert found.tensors == ("S", "A", "W")
    assert found.text == (
        "B^{4}_{txa=0}L^{8}_{c=0}"
        "[A^{f32,g}_{txa}=A^{f32,g}_{txa}+C^{f32,g}_{txa,c}*D^{f32,g}_{c};];"
    )
    again = parse(found.text).program.nests[0]
    assert canonical_nest(again).text == found.text
    assert canonical_nest(first).text != found.text
    siblings = parse(
        "L^{2}_{i=0}[K^{f32,l}=0;B^{4}_{tyz=0}[K^{f32,l}=tyz;];L^{4}_{z=0}[K^{f32,l}=i+z;];];"
    ).program.nests[0]
    assert canonical_nest(siblings).text == (
        "L^{2}_{a=0}[A^{f32,l}=0;B^{4}_{tyc=0}[A^{f32,l}=tyc;];L^{4}_{c=0}[A^{f32,l}=a+c;];];"
    )


@given(programs())
@settings(suppress_health_check=SLOW)
def test_canonical_nests_are_stable(program: Program) -> None:
    for nest in program.nests:
        found = canonical_nest(nest)
        assert canonical_nest(parse(found.text).program.nests[0]).text == found.text
