"""A maximum of the same two values in other words is no new question about data."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.parser import parse_expr
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify.branches import own_questions
from steptp_dagster.verify.rewritten import is_rewritten


def _expr(text: str) -> str:
    return text.replace("A", "A^{f32,g}_{tx}").replace("C", "C^{f32,g}_{tx}")


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ("abs(A)**0.5", "sqrt(abs(A))", True),
        ("A*A*A", "A**3", True),
        ("A*(C+2)", "A*C+2*A", True),
        ("exp(2*C)", "exp(C)**2", True),
        ("A*0.999999", "A", False),
        ("1e-10", "1e-12", False),
        ("1e-10", "0", False),
        ("6/6", "1", True),
        ("A+1e-10", "A+1e-12", False),
        ("C", "A", False),
        ("if_then_else(A>3,A+1,A)", "A", False),
        ("A+1e6*max(A-400,0)", "A", False),
        ("log(-abs(A))", "log(-abs(A))", False),  # no numbers to tell by
    ],
)
def test_functions_are_told_apart(new: str, old: str, same: bool) -> None:
    assert is_rewritten(parse_expr(_expr(new)), parse_expr(_expr(old))) == same


def _program(value: str) -> SignedProgram:
    return read(f"""
# input A f32[4]
# input C f32[4]
# output E f32[4]
B^{{4}}_{{tx=0}}[E^{{f32,g}}_{{tx}}={_expr(value)};];
""").signed


def test_only_other_values_are_asked_about() -> None:
    original = _program("max(sqrt(A**2+0.1)+C**2,0.1*A)")
    assert own_questions(original, _program("max((A**2+0.1)**0.5+C*C,0.1*A)")) == []
    for wrong in (
        "min((A**2+0.1)**0.5+C*C,0.1*A)",
        "max((A**2+0.1)**0.5+C*C,0.2*A)",
        "max((C**2+0.1)**0.5+A*A,0.1*A)",
        "max(0.5*A,max((A**2+0.1)**0.5+C*C,0.1*A))",
    ):
        assert len(own_questions(original, _program(wrong))) >= 1, wrong
