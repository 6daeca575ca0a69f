"""Assignments, pure updates and recurrences, and how updates start."""

from collections.abc import Mapping

import pytest

from steptp_dagster.leir.ast import Equation
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.updates import Update, classify, pure_form
from tests.support.corpus import long_form

HEADER = "input A f32[8]; input C f32[8]; output D f32[8]"


def updates(short: str, temps: str = "", header: str = HEADER) -> Mapping[tuple[int, ...], Update]:
    return classify(read(long_form(header, short, temps)).signed)


def one(equation: str) -> Update:
    return updates(f"L^8_a[K=0;{equation};];")[(0, 1)]


@pytest.mark.parametrize(
    ("equation", "op", "operand", "subtract"),
    [
        ("K=K+A_{a}", "+", "A^{f32,g}_{a}", False),
        ("K=A_{a}+K", "+", "A^{f32,g}_{a}", False),
        ("K=K-A_{a}", "+", "A^{f32,g}_{a}", True),
        ("K=K-A_{a}-C_{a}", "+", "A^{f32,g}_{a}+C^{f32,g}_{a}", True),
        ("K=K+A_{a}+C_{a}", "+", "A^{f32,g}_{a}+C^{f32,g}_{a}", False),
        ("K=K-A_{a}+C_{a}", "+", "-A^{f32,g}_{a}+C^{f32,g}_{a}", False),
        ("K=A_{a}+K-C_{a}", "+", "A^{f32,g}_{a}-C^{f32,g}_{a}", False),
        ("K=K*A_{a}*2", "*", "A^{f32,g}_{a}*2", False),
        ("K=max(A_{a},K)", "max", "A^{f32,g}_{a}", False),
        ("K=min(min(K,A_{a}),2)", "min", "min(A^{f32,g}_{a},2)", False),
        ("K=K+A_{a}*C_{a}", "+", "A^{f32,g}_{a}*C^{f32,g}_{a}", False),
    ],
)
def test_pure_updates(equation: str, op: str, operand: str, subtract: bool) -> None:
    update = one(equation)
    assert update.kind == "update"
    assert update.operand is not None
    assert (update.op, expr_text(update.operand), update.subtract) == (op, operand, subtract)


@pytest.mark.parametrize(
    "equation",
    [
        "K=K+K",
        "K=A_{a}-K",
        "K=K/A_{a}",
        "K=K*A_{a}+1",
        "K=K+A_{a}*K",
        "K=max(K,A_{a})+1",
        "K=if_then_else(a<3,K,A_{a})",
        "K=K+A_{a}:K<3",
        "K=-K",
        "K=K",
    ],
)
def test_other_self_references_are_recurrences(equation: str) -> None:
    assert one(equation).kind == "recurrence"


def test_a_shifted_read_is_a_recurrence_and_an_equal_form_is_not() -> None:
    found = updates("L^8_a[K_{a+1}=K_{a}+1;K_{a+0}=K_{a}+1;];")
    assert found[0, 0].kind == "recurrence"
    assert found[0, 1].kind == "update"


def test_reduction_loops_are_those_the_target_does_not_use() -> None:
    found = updates("B^2_tx L^3_a L^4_c[K_{a}=K_{a}+A_{c};];")[0, 0]
    assert found.reduction_loops == ("tx", "c")
    assert found.repeating_loops == ("tx", "c")
    assert found.init_depth == 0
    local = updates("B^2_tx L^3_a L^4_c[K_{a}=K_{a}+A_{c};];", "K f32 l")[0, 0]
    assert local.reduction_loops == ("c",)
    assert local.init_depth == 2


def test_loops_that_come_back_repeat() -> None:
    found = updates("L^8_a[K_{a//2}=K_{a//2}+A_{a};];")[0, 0]
    assert found.reduction_loops == ()
    assert found.repeating_loops == ("a",)
    assert found.init_depth == 0
    split = updates("L^2_a L^4_c[K_{a*4+c}=K_{a*4+c}+1;];")[0, 0]
    assert split.repeating_loops == ()
    assert split.init_depth == 2


@pytest.mark.parametrize(
    ("program", "path", "init"),
    [
        ("L^8_a[K=K+A_{a};];", (0, 0), "identity"),
        ("L^8_a[K=0;];L^8_a[K=K+A_{a};];", (1, 0), "continue"),
        ("L^2_c[K=0;L^8_a[K=K+A_{a};];];", (0, 1, 0), "continue"),
        ("L^8_a[K_{a}=K_{a}+A_{a};];L^8_a[K_{a}=K_{a}*2;];", (0, 0), "identity"),
        ("L^8_a[K_{a}=K_{a}+A_{a};];L^8_a[K_{a}=K_{a}*2;];", (1, 0), "continue"),
        ("L^4_a[K_{a}=0;];L^8_a[K_{a}=K_{a}+A_{a};];", (1, 0), "ambiguous"),
        ("L^4_a[K_{a+4}=0;];L^4_a[K_{a}=K_{a}+A_{a};];", (1, 0), "identity"),
        ("L^4_a[K_{a*2}=0;];L^4_a[K_{a*2+1}=K_{a*2+1}+A_{a};];", (1, 0), "identity"),
        ("L^8_a[K_{a}=0:a<6;];L^8_a[K_{a}=K_{a}+A_{a}:a<6;];", (1, 0), "continue"),
        ("L^8_a[K_{a}=0:A_{a}<0;];L^8_a[K_{a}=K_{a}+A_{a};];", (1, 0), "ambiguous"),
        ("L^4_a L^2_c[K_{a*2+c}=0;];L^8_a[K_{a}=K_{a}+A_{a};];", (1, 0), "continue"),
        ("L^8_a[K_{a//4,a%4}=0;];L^2_a L^4_c[K_{a,c}=K_{a,c}+1;];", (1, 0), "continue"),
        ("L^3_c[L^8_a[K=K+A_{a};];K=0;];", (0, 0, 0), "identity"),
    ],
)
def test_first_touch(program: str, path: tuple[int, ...], init: str) -> None:
    assert updates(program)[path].init == init


def test_ambiguity_is_told_from_doubt() -> None:
    proved = updates("L^4_a[K_{a}=0;];L^8_a[K_{a}=K_{a}+A_{a};];")[1, 0]
    assert proved.decided
    doubtful = updates("L^8_a[K_{a}=0:A_{a}<0;];L^8_a[K_{a}=K_{a}+A_{a};];")[1, 0]
    assert not doubtful.decided


def test_a_scatter_starts_from_the_identity_only_where_nothing_was_written() -> None:
    header = "input Y i64[8] in 0..3; output D f32[4]"
    fresh = updates("L^8_a[D_{Y_{a}}=D_{Y_{a}}+1;];", header=header)[0, 0]
    assert fresh.init == "identity"
    assert fresh.repeating_loops == ("a",)
    filled = updates("L^4_a[D_{a}=0;];L^8_a[D_{Y_{a}}=D_{Y_{a}}+1;];", header=header)[1, 0]
    assert filled.init == "continue"
    half = updates("L^3_a[D_{a}=0;];L^8_a[D_{Y_{a}}=D_{Y_{a}}+1;];", header=header)[1, 0]
    assert half.init == "ambiguous"


def test_pure_form_needs_no_analysis() -> None:
    program = read(long_form(HEADER, "L^8_a[K=K+A_{a};D_{a}=1;];")).signed.program
    first, second = program.nests[0].body
    assert isinstance(first, Equation)
    assert isinstance(second, Equation)
    form = pure_form(first)
    assert form is not None
    assert form.op == "+"
    assert pure_form(second) is None
