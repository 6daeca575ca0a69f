"""Matching up to index names, subscripts that tell indices apart, forms as expressions."""

import pytest

from steptp_dagster.leir.affine import Form, Modulo, Opaque
from steptp_dagster.leir.ast import Equation, Expr, Loop, Nest
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.strategies.forms import split, to_expr
from steptp_dagster.strategies.matching import distinguishes, instantiate, same_domain, unify

LOOPS = "L^{9}_{a=0}L^{9}_{c=0}L^{9}_{d=0}L^{9}_{f=0}"


def _expr(text: str) -> Expr:
    nest = parse(f"{LOOPS}[D^{{f32,g}}={text};];").program.nests[0]
    assert isinstance(nest, Nest)
    equation = nest.body[0]
    assert isinstance(equation, Equation)
    return equation.value


@pytest.mark.parametrize(
    ("pattern", "other", "renaming"),
    [
        ("A^{f32,g}_{a,c}", "A^{f32,g}_{d,f}", {"d": "a", "f": "c"}),
        ("A^{f32,g}_{a,a}", "A^{f32,g}_{d,f}", None),
        ("A^{f32,g}_{a,c}", "A^{f32,g}_{d,d}", None),
        ("A^{f32,g}_{a,c}", "A^{f32,g}_{c,a}", {"c": "a", "a": "c"}),
        ("A^{f32,g}_{a}", "C^{f32,g}_{a}", None),
        ("A^{f32,g}_{a}", "A^{f16,g}_{a}", None),
        ("A^{f32,g}_{a}", "A^{f32,g}_{3}", None),
        ("A^{f32,g}_{a}*2", "A^{f32,g}_{c}*2", {"c": "a"}),
        ("A^{f32,g}_{a}*2", "A^{f32,g}_{c}*3", None),
        ("A^{f32,g}_{a}-1", "A^{f32,g}_{a}+1", None),
        ("exp(A^{f32,g}_{a})", "log(A^{f32,g}_{a})", None),
        ("if_then_else(a<c,1,2)", "if_then_else(c<a,1,2)", {"c": "a", "a": "c"}),
        ("if_then_else(a<c,1,2)", "if_then_else(a<=c,1,2)", None),
        ("-A^{f32,g}_{a}", "-A^{f32,g}_{f}", {"f": "a"}),
    ],
)
def test_unify(pattern: str, other: str, renaming: dict[str, str] | None) -> None:
    assert unify(_expr(pattern), _expr(other), {}) == renaming


def test_unify_respects_what_is_known() -> None:
    assert unify(_expr("a+c"), _expr("d+f"), {"d": "a"}) == {"d": "a", "f": "c"}
    assert unify(_expr("a+c"), _expr("d+f"), {"d": "c"}) is None
    assert unify(_expr("a+c"), _expr("d+f"), {"a": "a"}) is None


@pytest.mark.parametrize(
    ("pattern", "other", "found"),
    [
        ("A^{f32,g}_{a,c}", "A^{f32,g}_{d*4+f,c}", {"a": "d*4+f", "c": "c"}),
        ("A^{f32,g}_{a,a}", "A^{f32,g}_{d,d}", {"a": "d"}),
        ("A^{f32,g}_{a,a}", "A^{f32,g}_{d,f}", None),
        ("A^{f32,g}_{a,c}", "A^{f32,g}_{d,d}", {"a": "d", "c": "d"}),
        ("A^{f32,g}_{a}", "A^{f32,g}_{C^{i64,g}_{d}}", None),
        ("A^{f32,g}_{a}*2", "A^{f32,g}_{a}+2", None),
    ],
)
def test_instantiate(pattern: str, other: str, found: dict[str, str] | None) -> None:
    result = instantiate(_expr(pattern), _expr(other), {})
    assert (None if result is None else {k: expr_text(v) for k, v in result.items()}) == found


def test_instantiate_respects_what_is_known() -> None:
    assert instantiate(_expr("a+c"), _expr("d+f"), {"a": _expr("f")}) is None


@pytest.mark.parametrize(
    ("pattern", "other", "renaming", "same"),
    [
        ("a9 c4", "d4 f9", {"d": "c", "f": "a"}, True),
        ("a9 c4", "d9 f4", {"d": "c", "f": "a"}, False),
        ("a9 c4", "d9", {"d": "a"}, False),
        ("a9", "d9 f4", {"d": "a"}, False),
        ("a9", "d9 f1", {"d": "a"}, True),
        ("a9 c1", "d9", {"d": "a"}, True),
        ("a9 c1", "d9 f1", {"d": "a", "f": "c"}, True),
    ],
)
def test_same_domain(pattern: str, other: str, renaming: dict[str, str], same: bool) -> None:
    def loops(text: str) -> list[Loop]:
        return [Loop("L", word[0], int(word[1:])) for word in text.split()]

    assert same_domain(loops(pattern), loops(other), renaming) is same


def _form(*terms: tuple[str, int]) -> Form:
    return Form(0, tuple(sorted(terms)))


@pytest.mark.parametrize(
    ("forms", "names", "answer"),
    [
        ([_form(("a", 1))], "a", True),
        ([_form(("a", 4), ("c", 1))], "ac", True),
        ([_form(("a", 3), ("c", 1))], "ac", False),
        ([_form(("a", 3), ("c", 1)), _form(("c", 1))], "ac", True),
        ([_form(("a", 1), ("c", 1))], "ac", False),
        ([_form(("a", 1), ("c", 1))], "f", True),
        ([], "a", False),
        ([], "f", True),
        ([Form(0, ((Modulo(_form(("a", 1)), 2), 1),))], "a", False),
        ([Form(0, (("a", 1), (Opaque("q", 0, 3), 1)))], "a", False),
    ],
)
def test_distinguishes(forms: list[Form], names: str, answer: bool) -> None:
    extents = {"a": 5, "c": 4, "d": 3, "f": 1}
    assert distinguishes(forms, tuple(names), extents) is answer


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Form(0), "0"),
        (Form(-2), "-2"),
        (Form(3, (("a", 1),)), "a+3"),
        (Form(-3, (("a", 1), ("c", 4))), "c*4+a-3"),
        (Form(7, (("a", -1),)), "7-a"),
        (Form(0, (("a", -2), ("c", 1))), "c-a*2"),
        (Form(0, (("a", -1),)), "-a"),
        (Form(1, ((Modulo(Form(2, (("a", 1),)), 4), 3),)), "(a+2)%4*3+1"),
    ],
)
def test_forms_as_expressions(form: Form, text: str) -> None:
    found = to_expr(form)
    assert found is not None
    assert expr_text(found) == text


def test_opaque_values_have_no_expression() -> None:
    assert to_expr(Form(0, ((Opaque("q", 0, 3), 1),))) is None
    assert to_expr(Form(0, ((Modulo(Form(0, ((Opaque("q", 0, 9), 1),)), 4), 1),))) is None


def test_split_at_a_point() -> None:
    form = Form(3, (("a", 4), ("c", 1)))
    assert split(form, frozenset("c")) == (Form(3, (("a", 4),)), Form(0, (("c", 1),)))
    mixed = Form(0, ((Modulo(form, 8), 1),))
    assert split(mixed, frozenset("c")) is None
    assert split(mixed, frozenset("ac")) == (Form(0), mixed)
    assert split(Form(0, ((Opaque("q", 0, 3), 1),)), frozenset("c")) is None
