"""The canonical text: unique, minimal parentheses, and the parser's inverse."""

import pytest
from hypothesis import given, settings

from steptp_dagster.leir.ast import (
    Access,
    Binary,
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
from steptp_dagster.leir.parser import parse, parse_expr
from steptp_dagster.leir.printer import expr_text, loops_text, statement_text, to_text
from tests.support.syntax import SLOW, expressions, programs

A, C, D = Index("a"), Index("c"), Index("d")


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Binary("-", A, Binary("-", C, D)), "a-(c-d)"),
        (Binary("-", Binary("-", A, C), D), "a-c-d"),
        (Binary("+", A, Binary("+", C, D)), "a+(c+d)"),
        (Binary("*", Binary("+", A, C), D), "(a+c)*d"),
        (Binary("/", A, Binary("*", C, D)), "a/(c*d)"),
        (Binary("*", Binary("//", A, C), D), "a//c*d"),
        (Binary("%", A, Binary("%", C, D)), "a%(c%d)"),
        (Unary("-", Binary("*", A, C)), "-(a*c)"),
        (Binary("*", Unary("-", A), C), "-a*c"),
        (Binary("*", A, Unary("-", C)), "a*-c"),
        (Binary("-", A, Unary("-", Unary("-", C))), "a---c"),
        (Unary("-", Binary("**", A, Int(2))), "-a**2"),
        (Binary("**", Unary("-", A), Int(2)), "(-a)**2"),
        (Binary("**", A, Unary("-", Int(2))), "a**-2"),
        (Binary("**", A, Binary("**", C, D)), "a**c**d"),
        (Binary("**", Binary("**", A, C), D), "(a**c)**d"),
        (Binary("**", A, Unary("-", Binary("**", C, D))), "a**-c**d"),
        (Binary("**", A, Binary("/", Int(1), Int(2))), "a**(1/2)"),
        (Binary("|", A, Binary("&", C, D)), "a|c&d"),
        (Binary("&", A, Binary("|", C, D)), "a&(c|d)"),
        (Binary("&", Compare((A, C), ("<",)), Compare((C, D), ("==",))), "a<c&c==d"),
        (Compare((Binary("&", A, C), D), ("<",)), "(a&c)<d"),
        (Compare((A, C, D), ("<", "<=")), "a<c<=d"),
        (Compare((Compare((A, C), ("<",)), D), ("<=",)), "(a<c)<=d"),
        (Compare((A, Compare((C, D), ("<=",))), ("<",)), "a<(c<=d)"),
        (Binary("+", A, Compare((C, D), ("<",))), "a+(c<d)"),
        (Access("A", "f32", "g", (Binary("+", A, Int(1)), Int(0))), "A^{f32,g}_{a+1,0}"),
        (Access("A", "bool", "s"), "A^{bool,s}"),
    ],
)
def test_minimal_parentheses(tree: Expr, text: str) -> None:
    assert expr_text(tree) == text
    assert parse_expr(text) == tree


def test_statements() -> None:
    loops = (Loop("B", "tx", 4), Loop("V", "a", 2, 1))
    target = Access("D", "f32", "l", (A,))
    equation = Equation(target, Int(0), Compare((A, Int(9)), ("<",)))
    nest = Nest(loops, (equation, Nest((Loop("U", "c", 3),), (Equation(target, A),))))
    assert loops_text(loops) == "B^{4}_{tx=0}V^{2}_{a=1}"
    assert statement_text(equation) == "D^{f32,l}_{a}=0:a<9;"
    expected = "B^{4}_{tx=0}V^{2}_{a=1}[D^{f32,l}_{a}=0:a<9;U^{3}_{c=0}[D^{f32,l}_{a}=a;];];"
    assert to_text(nest) == expected
    assert to_text(Program((nest, nest))) == expected * 2


@given(expressions())
@settings(suppress_health_check=SLOW)
def test_expressions_round_trip(expr: Expr) -> None:
    text = expr_text(expr)
    assert parse_expr(text) == expr
    assert expr_text(parse_expr(text)) == text
    assert parse_expr(f" ( {text} ) ") == expr


@given(expressions())
@settings(suppress_health_check=SLOW)
def test_no_parenthesis_is_redundant(expr: Expr) -> None:
    text = expr_text(expr)
    for n, char in enumerate(text):
        if char == "(" and (n == 0 or not text[n - 1].isalpha()):
            depth, end = 1, n
            while depth:
                end += 1
                depth += {"(": 1, ")": -1}.get(text[end], 0)
            without = f"{text[:n]}{text[n + 1 : end]}{text[end + 1 :]}"
            assert parse_expr(without) != expr


@given(programs())
@settings(suppress_health_check=SLOW)
def test_programs_round_trip(program: Program) -> None:
    text = to_text(program)
    parsed = parse(text)
    writes_conflict = any("defined as" in note.message for note in parsed.notes)
    assert not writes_conflict
    assert parsed.program == program
    assert to_text(parsed.program) == text
