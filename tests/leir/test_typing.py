"""Evaluation types, and the rules about them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Equation, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.parser import parse, parse_expr
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.typing import (
    Typing,
    expr_dtype,
    type_violations,
    typed_equation,
    typed_expr,
)
from steptp_dagster.leir.walk import children, with_children
from tests.support.syntax import SLOW, expressions

F16, F32, F64, BF = "A^{f16,g}_{a}", "C^{f32,g}_{a}", "D^{f64,g}_{a}", "E^{bf16,g}_{a}"
I8, U8, I16, I32, I64 = "F^{i8,g}", "G^{u8,g}", "H^{i16,g}", "I^{i32,g}", "J^{i64,g}"
M = "M^{bool,g}"


@pytest.mark.parametrize(
    ("expr", "target", "dtype"),
    [
        # tensors, indices, literals
        (F16, "f64", "f32"),
        (BF, "f64", "f32"),
        (F64, "f16", "f64"),
        ("a", "f32", "i64"),
        (M, "f32", "bool"),
        ("1", "f16", "f32"),
        ("1", "f64", "f64"),
        ("1", "i8", "i8"),
        ("1", "bool", "i64"),
        ("0.5", "bf16", "f32"),
        ("0.5", "i32", "f64"),
        ("-inf", "f32", "f32"),
        # floats: the widest of the float operands
        (f"{F16}+{F32}", "f64", "f32"),
        (f"{F32}+{F64}", "f16", "f64"),
        (f"{F16}*0.5", "f64", "f32"),
        (f"{F32}*a", "f64", "f32"),
        (f"{F32}*{I64}", "f64", "f32"),
        (f"{M}*{F64}", "f32", "f64"),
        (f"{F64}**2", "f32", "f64"),
        # no float operand, but a real operation: the target's type
        ("a*0.5", "f16", "f32"),
        ("a*0.5", "f64", "f64"),
        ("a*0.5", "i32", "f64"),
        ("a/2", "f64", "f64"),
        (f"{I32}/{I32}", "f32", "f32"),
        ("exp(a)", "f64", "f64"),
        (f"sqrt({I8})", "i8", "f64"),
        (f"{M}/2", "f32", "f32"),
        # literals alone
        ("1/2", "f32", "f32"),
        ("3//2", "f64", "f64"),
        ("2**3", "i16", "i16"),
        ("exp(1)", "f64", "f64"),
        ("if_then_else(a<1,1,0)", "f32", "f32"),
        ("if_then_else(a<1,1,0)", "i8", "i8"),
        ("max(1,2.0)", "i8", "f64"),
        # integers
        ("a+1", "f32", "i64"),
        ("a//2%3", "f32", "i64"),
        (f"{I8}+1", "f32", "i8"),
        (f"{I8}+{I32}", "f32", "i32"),
        (f"{I8}+{U8}", "f32", "i16"),
        (f"{I16}+{U8}", "f32", "i16"),
        (f"{U8}+{U8}", "f32", "u8"),
        (f"{I32}+a", "i32", "i64"),
        (f"{M}+{M}", "f32", "i64"),
        (f"{M}+1", "f32", "i64"),
        (f"{M}*{I8}", "f32", "i8"),
        (f"-{M}", "f32", "i64"),
        (f"-{I8}", "f32", "i8"),
        (f"abs({I32})", "f32", "i32"),
        ("floor(a)", "f32", "i64"),
        (f"max({I8},2)", "f32", "i8"),
        (f"{I32}**2", "f32", "i32"),
        # bool
        ("a<1", "f32", "bool"),
        (f"a<1&{M}", "f32", "bool"),
        (f"if_then_else(a<1,{M},a<2)", "f32", "bool"),
        (f"if_then_else(a<1,{M},1)", "f32", "i64"),
        (f"if_then_else({M},-inf,{F16})", "f64", "f32"),
        (f"if_then_else({M},{I8},{F16})", "f64", "f32"),
    ],
)
def test_types(expr: str, target: str, dtype: str) -> None:
    assert expr_dtype(parse_expr(expr), target) == DTYPES[dtype]


def test_conditions_have_their_own_context() -> None:
    typed = typed_expr(parse_expr(f"if_then_else(a*0.5<0.3,a*0.5,{F32})"), "f32")
    condition, scaled, _ = typed.operands
    assert typed.dtype.name == "f32"
    assert [o.dtype.name for o in condition.operands] == ["f64", "f64"]
    assert [c.name for c in condition.comparisons] == ["f64"]
    assert scaled.dtype.name == "f32"
    assert [c.name for c in typed.converted] == ["bool", "f32", "f32"]
    as_value = typed_expr(parse_expr(f"(a*0.5<0.3)*{F32}"), "f32")
    assert [o.dtype.name for o in as_value.operands[0].operands] == ["f64", "f64"]


def test_chains_are_compared_pair_by_pair() -> None:
    typed = typed_expr(parse_expr(f"a<{F32}<={F64}"), "f32")
    assert [c.name for c in typed.comparisons] == ["f32", "f64"]
    assert [o.dtype.name for o in typed.operands] == ["i64", "f32", "f64"]
    literal = typed_expr(parse_expr(f"a<7<{F32}"), "f32")
    assert [c.name for c in literal.comparisons] == ["i64", "f32"]
    assert literal.operands[1].dtype.name == "i64"
    only = typed_expr(parse_expr("0<1<0.5"), "f32")
    assert [c.name for c in only.comparisons] == ["i64", "f64"]


def test_literals_take_the_neighbour_all_the_way_down() -> None:
    typed = typed_expr(parse_expr(f"{F64}*(1/2-3)"), "f32")
    assert {node.dtype.name for node in typed.operands[1].walk()} == {"f64"}
    integers = typed_expr(parse_expr(f"{I8}+(2*3)"), "f32")
    assert {node.dtype.name for node in integers.walk()} == {"i8"}


def test_equations() -> None:
    program = parse(
        "L^{4}_{a=0}[D^{f16,g}_{a+1}=a*0.5+1:a/2<1;L^{2}_{c=0}[I^{i32,g}_{J^{i64,g}_{c}}=2.5;];];"
    ).program
    typing = Typing(program)
    first, second = typing.equation((0, 0)), typing.equation((0, 1, 0))
    assert first.value.dtype.name == "f32"
    assert first.target.operands[0].dtype.name == "i64"
    assert first.guard is not None
    assert first.guard.operands[0].dtype.name == "f64"
    assert second.value.dtype.name == "f64"
    assert second.target.converted == (DTYPES["i64"],)
    assert typing.violations() == ()
    with pytest.raises(KeyError):
        typing.equation((0,))


@pytest.mark.parametrize(
    ("statement", "kinds", "at"),
    [
        ("D^{f32,g}_{a//2-(a%3+1)*-2}=1;", [], ""),
        ("D^{f32,g}_{I^{i32,g}_{a}+1,J^{i64,g}}=1;", [], ""),
        ("D^{f32,g}_{a/2}=1;", ["subscript-not-integer"], "a/2"),
        ("D^{f32,g}_{1.0}=1;", ["subscript-not-integer"], "1.0"),
        ("D^{f32,g}_{inf}=1;", ["subscript-not-integer"], "inf"),
        ("D^{f32,g}_{a<1}=1;", ["subscript-not-integer"], "a<1"),
        ("D^{f32,g}_{A^{f32,g}_{a}}=1;", ["subscript-not-integer"], "A^"),
        ("D^{f32,g}_{M^{bool,g}_{a}}=1;", ["subscript-not-integer"], "M^"),
        ("D^{f32,g}_{exp(a)}=1;", ["subscript-not-integer"], "exp"),
        ("D^{f32,g}_{max(a,1)}=1;", ["subscript-form"], "max"),
        ("D^{f32,g}_{a**2}=1;", ["subscript-form"], "a**2"),
        ("D^{f32,g}=A^{f32,g}_{I^{i32,g}_{a/2}};", ["subscript-not-integer"], "a/2"),
        ("D^{f32,g}=if_then_else(1,2,3);", ["condition-not-bool"], "1,2"),
        ("D^{f32,g}=if_then_else(A^{i32,g},2,3);", ["condition-not-bool"], "A^"),
        ("D^{f32,g}=if_then_else(M^{bool,g},2,3);", [], ""),
        ("D^{f32,g}=1:a;", ["guard-not-bool"], "a;"),
        ("D^{f32,g}=1:M^{bool,g};", [], ""),
        ("D^{bool,g}=a&1<2;", ["logical-not-bool"], "a&"),
        ("D^{bool,g}=a|c;", ["logical-not-bool", "logical-not-bool"], "a|"),
        ("D^{f32,g}=a**a;", ["integer-power"], "a;"),
        ("D^{f32,g}=a**-1;", ["integer-power"], "-1"),
        ("D^{f32,g}=a**2;", [], ""),
        ("D^{f32,g}=A^{f32,g}**a+2**-1+a**0.5;", [], ""),
        ("D^{i8,g}=A^{i8,g}+128;", ["literal-out-of-range"], "128"),
        ("D^{i8,g}=A^{i8,g}+127;", [], ""),
        ("D^{i8,g}=A^{i8,g}+-128;", [], ""),
        ("D^{u8,g}=A^{u8,g}+255;", [], ""),
        ("D^{f32,g}=A^{f32,g}+99999999999999999999;", [], ""),
        (f"D^{{f32,g}}=A^{{f32,g}}+{10**308};", [], ""),
        (f"D^{{f32,g}}=A^{{f32,g}}+{10**309};", ["literal-out-of-range"], "1000"),
        (f"D^{{f32,g}}={10**309};", ["literal-out-of-range"], "1000"),
        ("D^{f32,g}=a+9223372036854775808;", ["literal-out-of-range"], "9223"),
    ],
)
def test_violations(statement: str, kinds: list[str], at: str) -> None:
    text = f"L^{{4}}_{{a=0}}[{statement}];"
    equation = parse(text).program.nests[0].body[0]
    assert isinstance(equation, Equation)
    found = type_violations(equation, (0, 0))
    assert [v.kind for v in found] == kinds
    if found:
        assert text[found[0].pos :].startswith(at)
        assert found[0].path == (0, 0)
        assert found[0].found
        assert found[0].required


@given(expressions())
@settings(suppress_health_check=SLOW)
def test_every_node_has_a_definite_type(expr: Expr) -> None:
    typed = typed_expr(expr, "f32")
    for node in typed.walk():
        assert node.dtype is DTYPES[node.dtype.name]
        assert tuple(o.expr for o in node.operands) == children(node.expr)
        assert len(node.converted) == len(node.operands)
        assert bool(node.comparisons) == isinstance(node.expr, Compare)
        if isinstance(node.expr, Binary | Call) and node.dtype.kind != "bool":
            for operand, wanted in zip(node.operands, node.converted, strict=True):
                condition = wanted.kind == "bool"
                narrows = operand.dtype.is_float and not wanted.is_float and not condition
                assert not narrows, expr_text(node.expr)


@given(expressions(), st.sampled_from(["f32", "f64", "i8", "bool"]))
@settings(suppress_health_check=SLOW)
def test_naming_a_part_changes_no_type(expr: Expr, target: str) -> None:
    """A temporary of a part's own type leaves the types of the whole as they were."""
    typed = typed_expr(expr, target)
    parts = children(expr)
    for n, operand in enumerate(typed.operands):
        if isinstance(expr, Compare) and 0 < n < len(parts) - 1:
            continue  # a literal in the middle of a chain takes part in pairs of two types
        temporary = Access("Ktmp", operand.dtype.name, "l")
        named = with_children(expr, (*parts[:n], temporary, *parts[n + 1 :]))
        again = typed_expr(named, target)
        assert again.dtype == typed.dtype
        assert again.comparisons == typed.comparisons
        assert again.converted == typed.converted


def test_typed_equation_is_total() -> None:
    equation = parse("L^{2}_{a=0}[D^{f32,g}_{1.5}=a&1:2;];").program.nests[0].body[0]
    assert isinstance(equation, Equation)
    assert typed_equation(equation).value.dtype.name == "bool"
