"""Reading LEIR: what is accepted, how it is normalised, and where text of programs stands."""

import re

import pytest

from steptp_dagster.leir.annotations import definitions
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Index,
    Inf,
    Int,
    Nest,
    Real,
    Unary,
)
from steptp_dagster.leir.parser import MAX_BRACKETS, MAX_HEIGHT, ParseError, parse, parse_expr
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import Signature, Variable
from steptp_dagster.leir.walk import accesses_in, equations, expressions

A, C = Index("a"), Index("c")

PROGRAMS = {
    "matrix product": "B^{16}_{tx=0}L^{8}_{a=0}L^{12}_{c=0}L^{10}_{d=0}"
    "[D^{f32,g}_{tx,a,c}=D^{f32,g}_{tx,a,c}+A^{f32,g}_{tx,a,d}*C^{f32,g}_{d,c};];",
    "softmax": "B^{8}_{tx=0}L^{16}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},A^{f16,g}_{tx,a});];"
    "B^{8}_{tx=0}L^{16}_{a=0}[E^{f32,g}_{tx,a}=exp(A^{f16,g}_{tx,a}-M^{f32,g}_{tx});"
    "S^{f32,g}_{tx}=S^{f32,g}_{tx}+E^{f32,g}_{tx,a};];"
    "B^{8}_{tx=0}V^{4}_{a=0}L^{4}_{c=0}"
    "[O^{f16,g}_{tx,c*4+a}=E^{f32,g}_{tx,c*4+a}/S^{f32,g}_{tx};];",
    "streaming maximum": "B^{8}_{tx=0}L^{16}_{c=0}"
    "[N^{f32,g}_{tx,c}=max(if_then_else(c-1<0,-inf,N^{f32,g}_{tx,c-1}),S^{f32,g}_{tx,c});"
    "R^{f32,g}_{tx,c}=if_then_else(c-1<0,0,if_then_else(N^{f32,g}_{tx,c-1}==-inf,0,"
    "R^{f32,g}_{tx,c-1}*exp(N^{f32,g}_{tx,c-1}-N^{f32,g}_{tx,c})))"
    "+if_then_else(S^{f32,g}_{tx,c}==-inf,0,exp(S^{f32,g}_{tx,c}-N^{f32,g}_{tx,c}));];",
    "tile through shared memory": "B^{4}_{bx=0}L^{8}_{a=0}[B^{32}_{tx=0}"
    "[W^{f32,s}_{tx}=A^{f32,g}_{bx*32+tx,a};];B^{32}_{txc=0}"
    "[D^{f32,g}_{bx*32+txc,a}=W^{f32,s}_{31-txc}+W^{f32,s}_{(txc+1)%32};];];",
    "guarded tile": "P^{3}_{c=0}U^{4}_{a=0}"
    "[D^{f32,g}_{c*4+a}=A^{f32,g}_{c*4+a}**2+1e-5:c*4+a<10;];",
    "padding": "B^{6}_{tx=0}L^{6}_{a=0}L^{3}_{c=0}L^{3}_{d=0}[D^{f16,g}_{tx,a}="
    "max(D^{f16,g}_{tx,a},if_then_else(1<=tx+c<7&1<=a+d<7,A^{f16,g}_{tx+c-1,a+d-1},-inf));];",
    "indirect": "B^{16}_{tx=0}L^{8}_{a=0}[D^{f32,g}_{tx,a}=W^{f32,g}_{Y^{i64,g}_{tx},a};];",
    "mask": "L^{4}_{a=0}[M^{bool,g}_{a}=a<=2|A^{f32,g}_{a}!=0;"
    "D^{f32,g}_{a}=if_then_else(M^{bool,g}_{a},-inf,A^{f32,g}_{a}*(1/2)**-2);];",
    "scalar": "B^{1}_{tx=0}[C^{f16,g}=sqrt(E^{f16,g});];",
    "imperfect": "L^{4}_{a=0}[K^{f32,l}=0;L^{8}_{c=0}[K^{f32,l}=K^{f32,l}+A^{f32,g}_{a,c};];"
    "D^{f32,g}_{a}=K^{f32,l}/8;];",
    "start": "L^{4}_{a=1}[D^{i32,g}_{a-1}=a//2*2-a%3;];",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_canonical_programs_are_fixed_points(name: str) -> None:
    parsed = parse(PROGRAMS[name])
    assert to_text(parsed.program) == PROGRAMS[name]
    assert parsed.notes == ()


@pytest.mark.parametrize("name", PROGRAMS)
def test_white_space_is_allowed_between_all_tokens(name: str) -> None:
    text = PROGRAMS[name]
    plain = parse(text).program
    spaced = text
    for token in ("^{", "_{", "}", ",", "(", ")", "[", "]", ";", ":", "+", "=0}", "%"):
        spaced = spaced.replace(token, f" {token}\n\t")
    spaced = re.sub(r"(?<!\de)-", " -\n", spaced)
    spaced = spaced.replace("^{", "^ {").replace("_{", "_\r\n{")
    assert parse(spaced).program == plain


@pytest.mark.parametrize("name", PROGRAMS)
def test_subscripts_may_come_first(name: str) -> None:
    def swapped(text: str) -> str:
        # The innermost pairs suffice: KIND^{n}_{i=0} and scalars' neighbours with plain indices.
        out, i = "", 0
        while i < len(text):
            if text.startswith("^{", i):
                close = text.index("}", i)
                after = text[close + 1 :]
                if after.startswith("_{") and "^" not in after[: after.index("}")]:
                    end = close + 1 + after.index("}")
                    out += text[close + 1 : end + 1] + text[i : close + 1]
                    i = end + 1
                    continue
            out += text[i]
            i += 1
        return out

    text = PROGRAMS[name]
    other = swapped(text)
    assert ("_{" in text) == (other != text)
    assert parse(other).program == parse(text).program
    assert parse(other).notes == ()


def test_the_tree_is_what_was_written() -> None:
    nest = parse(
        "B^{4}_{tx=0}L^{3}_{a=1}[D^{f32,g}_{a}=(A^{f16,s}+1)*.5:a<2;];".replace(".5", "0.50")
    )
    (found,) = nest.program.nests
    assert [(lp.kind, lp.index, lp.extent, lp.start) for lp in found.loops] == [
        ("B", "tx", 4, 0),
        ("L", "a", 3, 1),
    ]
    assert found.body == (
        Equation(
            Access("D", "f32", "g", (A,)),
            Binary("*", Binary("+", Access("A", "f16", "s"), Int(1)), Real("0.5")),
            Compare((A, Int(2)), ("<",)),
        ),
    )


def test_precedence() -> None:
    assert parse_expr("a+c*2") == Binary("+", A, Binary("*", C, Int(2)))
    assert parse_expr("-a**2") == Unary("-", Binary("**", A, Int(2)))
    assert parse_expr("a**-c**2") == Binary("**", A, Unary("-", Binary("**", C, Int(2))))
    assert parse_expr("a|c&a") == Binary("|", A, Binary("&", C, A))
    both = parse_expr("a<1&c>=2")
    assert both == Binary("&", Compare((A, Int(1)), ("<",)), Compare((C, Int(2)), (">=",)))
    assert parse_expr("0<=a+1<c!=2") == Compare(
        (Int(0), Binary("+", A, Int(1)), C, Int(2)), ("<=", "<", "!=")
    )
    assert parse_expr("a-c-1") == Binary("-", Binary("-", A, C), Int(1))
    assert parse_expr("-inf") == Unary("-", Inf())
    assert parse_expr("max(a,if_then_else(c<1,0,1))") == Call(
        "max", (A, Call("if_then_else", (Compare((C, Int(1)), ("<",)), Int(0), Int(1))))
    )


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("007", Int(7)),
        ("1.", Real("1.0")),
        ("01.50", Real("1.5")),
        ("1E-05", Real("1e-5")),
        ("1.0e+3", Real("1e3")),
        (str(10**30), Int(10**30)),
        ("((a))", A),
    ],
)
def test_tolerant_spellings(text: str, node: object) -> None:
    assert parse_expr(text) == node


def test_malformed_siblings_nest() -> None:
    text = "L^{4}_{a=0}[D^{f32,g}_{a}=0;]L^{2}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+1;];"
    parsed = parse(text)
    assert to_text(parsed.program) == (
        "L^{4}_{a=0}[D^{f32,g}_{a}=0;L^{2}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+1;];];"
    )
    (note,) = parsed.notes
    assert (note.line, note.column, note.pos) == (1, 30, 29)
    three = parse(
        "L^{4}_{a=0}[D^{f32,g}=0;]L^{2}_{c=0}[D^{f32,g}=1;]L^{2}_{d=0}[D^{f32,g}=2;];"
        "L^{2}_{d=0}[D^{f32,g}=3;];"
    )
    assert len(three.program.nests) == 2
    assert [e.path for e in equations(three.program)] == [(0, 0), (0, 1, 0), (0, 1, 1, 0), (1, 0)]
    assert len(three.notes) == 2


def test_conflicting_reads_take_the_first_write() -> None:
    text = (
        "L^{2}_{a=0}[R^{f64,g}=16;];\n"
        "L^{2}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*R^{i32,s}+R^{f64,g};];"
    )
    parsed = parse(text)
    reads = [
        a
        for e in equations(parsed.program)
        for x in expressions(e.equation)
        for a in accesses_in(x)
        if a.name == "R"
    ]
    assert {(a.dtype, a.scope) for a in reads} == {("f64", "g")}
    (note,) = parsed.notes
    assert (note.line, note.column) == (2, 41)
    assert text[note.pos] == "R"
    assert "i32,s" in note.message
    assert "f64,g" in note.message


def test_the_signature_defines_annotations() -> None:
    signature = Signature(
        (Variable("input", "A", "f32", (4,)), Variable("output", "D", "f16", (4,)))
    )
    text = "L^{4}_{a=0}[D^{f32,s}_{a}=A^{f16,l}_{a}:D^{f64,g}_{a}<1;];"
    parsed = parse(text, signature)
    assert to_text(parsed.program) == ("L^{4}_{a=0}[D^{f32,s}_{a}=A^{f32,g}_{a}:D^{f16,g}_{a}<1;];")
    assert len(parsed.notes) == 2
    assert definitions(parsed.program, signature)["D"] == ("f16", "g")
    assert to_text(parse(text).program) == (
        "L^{4}_{a=0}[D^{f32,s}_{a}=A^{f16,l}_{a}:D^{f32,s}_{a}<1;];"
    )


def test_conflicts_inside_subscripts_are_normalised() -> None:
    text = (
        "L^{2}_{a=0}[I^{i32,g}_{a}=a;];L^{2}_{a=0}[D^{f32,g}_{I^{i64,g}_{a}}=0;];"
        "L^{2}_{a=0}[D^{f16,g}_{a}=1;];"
    )
    parsed = parse(text)
    assert "D^{f32,g}_{I^{i32,g}_{a}}" in to_text(parsed.program)
    assert "D^{f16,g}_{a}=1" in to_text(parsed.program)
    assert len(parsed.notes) == 1


def test_reading_does_not_check() -> None:
    for text in (
        "L^{4}_{a=0}[D^{f32,g}_{c}=A^{f32,g}_{a/2,1.5};];",
        "L^{4}_{a=0}L^{4}_{a=0}[D^{f32,g}_{a}=D^{f32,g}_{a,a};];",
        "B^{4096}_{tx=0}B^{4}_{txa=0}[D^{f32,g}=1&2:3;];",
    ):
        assert to_text(parse(text).program) == text


def test_positions_of_nodes() -> None:
    text = "\n L^{4}_{a=0} [ D^{f32,g}_{a} = -(a + 2)*max(a, 3.0) : a < 2 ; ] ;"
    nest = parse(text).program.nests[0]
    equation = nest.body[0]
    assert isinstance(equation, Equation)
    assert text[nest.pos] == "L"
    assert nest.loops[0].pos == nest.pos
    assert equation.pos == equation.target.pos == text.index("D")
    product = equation.value
    assert isinstance(product, Binary)
    assert product.pos == text.index("-")
    assert product.left.pos == text.index("-")
    assert product.right.pos == text.index("max")
    assert equation.guard is not None
    assert equation.guard.pos == text.index("a < 2")


def test_long_programs_have_no_limit() -> None:
    nest = PROGRAMS["softmax"]
    parsed = parse(nest * 300)
    assert len(parsed.program.nests) == 900
    wide = "L^{2}_{a=0}[" + "D^{f32,g}_{a}=a;" * 3000 + "];"
    (only,) = parse(wide).program.nests
    assert isinstance(only, Nest)
    assert len(only.body) == 3000


def test_nesting_up_to_the_limits() -> None:
    def text(terms: int) -> str:
        return f"L^{{2}}_{{a=0}}[D^{{f32,g}}={'+'.join(['a'] * terms)};];"

    assert to_text(parse(text(MAX_HEIGHT)).program) == text(MAX_HEIGHT)
    with pytest.raises(ParseError, match="at most 200 operators and calls"):
        parse(text(MAX_HEIGHT + 1))
    assert parse_expr(f"{'(' * MAX_BRACKETS}a{')' * MAX_BRACKETS}") == A
    with pytest.raises(ParseError, match="at most 100 levels of brackets") as caught:
        parse_expr(f"{'(' * (MAX_BRACKETS + 1)}a{')' * (MAX_BRACKETS + 1)}")
    assert caught.value.column == MAX_BRACKETS + 2
