"""Mistakes that hide from data of ordinary size: at literals, and in branches nothing takes."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import reasons
from steptp_dagster.verify.branches import own_questions
from steptp_dagster.verify.verdict import verify

HEADER = "# input A f32[24]\n# output D f32[24]\n"
SUM = "L^{24}_{a=0}[E^{f32,g}=E^{f32,g}+A^{f32,g}_{a};];"


def program(value: str, before: str = "") -> SignedProgram:
    text = value.replace("A", "A^{f32,g}_{a}").replace("E", "E^{f32,g}")
    return read(f"{HEADER}{before}L^{{24}}_{{a=0}}[D^{{f32,g}}_{{a}}={text};];").signed


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        ("if_then_else(A>0.3,1.0,0.0)", "if_then_else(A>=0.3,1.0,0.0)"),  # no f32 is 0.3
        ("if_then_else(A>=0.3,A,0.1*A)", "if_then_else(A>0.3,A,0.1*A)"),
        ("if_then_else(A==0.123,0,A)", "A"),
        ("A", "if_then_else(A==0.7421,0,A)"),
        ("A", "if_then_else(abs(A-0.7421)<0.001,0,A)"),
        ("A", "A+1000*max(0,0.001-abs(A-0.7421))"),
        ("A/(abs(A)+1e-12)", "A/(abs(A)+1.01e-12)"),
        ("A/sqrt(A*A+1e-12)", "A/sqrt(A*A+1.01e-12)"),
        ("A/max(abs(A),1e-12)", "A/max(abs(A),1.01e-12)"),
        ("max(A,-1e9)", "max(A,-1.01e9)"),
    ],
)
def test_differences_at_literals_are_found(original: str, candidate: str) -> None:
    assert verify(program(original), program(candidate)).reason == reasons.MATHEMATICS


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        ("A/sqrt(A*A+1e-12)", "A*(1/sqrt(1e-12+A*A))"),
        ("max(A,-1e9)", "if_then_else(A>-1e9,A,-1e9)"),
        ("if_then_else(A>0.3,1.0,0.0)", "1-if_then_else(A<=0.3,1.0,0.0)"),
        ("A*0.3+A*0.7", "A"),
    ],
)
def test_right_rewrites_of_literals_are_accepted(original: str, candidate: str) -> None:
    assert verify(program(original), program(candidate)).accepted


@pytest.mark.parametrize(
    "wrong",
    [
        "if_then_else(A*A-A*7==11.3,0,A+E)",  # on one value
        "if_then_else(12.81<E&E<12.82,0,A+E)",  # on one sum
        "A+E+1000*max(0,0.001-abs(E-12.815))",
    ],
)
def test_a_branch_that_nothing_takes_is_no_evidence(wrong: str) -> None:
    verdict = verify(program("A+E", SUM), program(wrong, SUM))
    assert verdict.reason in (reasons.UNTAKEN_BRANCH, reasons.MATHEMATICS)
    assert not verdict.accepted


@pytest.mark.parametrize(
    ("original", "wrong"),
    [
        # conditions of indices other than where the data stands are new ones
        ("if_then_else(A==a,A,A*2)", "if_then_else(A==a,A,if_then_else(A==exp(a+2),0,A*2))"),
        ("if_then_else(A==a,A,A*2)", "if_then_else(A==a,A,if_then_else(A==a+34,0,A*2))"),
        ("if_then_else(A==a,A,A*2)", "if_then_else(A==a,A,if_then_else(A==23-a,0,A*2))"),
        (
            "if_then_else(A>a,A,A*2)",
            "if_then_else(A>a,if_then_else(A>exp(2*2*2*exp(2+a-a)),0,A),A*2)",
        ),
        # only -inf is below, whose double is itself
        (
            "if_then_else(A<a,A,A*2)",
            "if_then_else(A<a,if_then_else(A<0-exp(2*2*2*exp(2)),2*A,A),A*2)",
        ),
    ],
)
def test_a_condition_that_only_looks_like_the_original_s_is_asked(
    original: str, wrong: str
) -> None:
    verdict = verify(program(original), program(wrong))
    assert verdict.reason in (reasons.UNTAKEN_BRANCH, reasons.MATHEMATICS)


def test_a_precaution_against_infinite_intermediates_may_never_be_needed() -> None:
    guarded = "if_then_else(E==-inf,0,A+E)"
    assert verify(program("A+E", SUM), program(guarded, SUM)).accepted
    of_input = verify(program("A+1"), program("if_then_else(A==inf,0,A+1)"))
    assert of_input.reason == reasons.UNTAKEN_BRANCH


def test_the_untaken_condition_is_told() -> None:
    verdict = verify(program("A+E", SUM), program("if_then_else(E*E==0.7,0,A+E)", SUM))
    assert verdict.reason == reasons.UNTAKEN_BRANCH
    assert verdict.message == "E^{f32,g}*E^{f32,g}==0.7 is never true on any data"
    assert len(verdict.families) > 20


def test_conditions_of_the_original_and_of_indices_are_no_questions() -> None:
    original = program("if_then_else(A>0,A,if_then_else(a<3,0,max(A,2)))")
    moved = program("if_then_else(a<4,if_then_else(A>0,A,0),max(A,2))")
    assert own_questions(original, moved) == []
    assert len(own_questions(original, program("if_then_else(A>=0,A,max(A,5))"))) == 2


def test_a_condition_whose_index_is_split_is_the_same_condition() -> None:
    original = program("if_then_else(a==3&A<A*0-9,A,if_then_else(cos(a)>A*0+7,0,A*2))")
    text = (
        "L^{12}_{c=0}L^{2}_{a=0}[D^{f32,g}_{c*2+a}=if_then_else(c*2+a==3&X<X*0-9,X,"
        "if_then_else(cos(c*2+a)>X*0+7,0,X*2));];"
    )
    split = read(HEADER + text.replace("X", "A^{f32,g}_{c*2+a}")).signed
    assert own_questions(original, split) == []
    assert verify(original, split).accepted


def test_branches_under_guards_and_conditions_are_asked_where_they_stand() -> None:
    original = program("A")
    inner = program("if_then_else(a<1,A,if_then_else(a>0,if_then_else(A<A*0+9,A,A),A))")
    assert verify(original, inner).accepted
    recurrence = (
        "L^{24}_{a=0}[D^{f32,g}_{a}=if_then_else(a-1<0,A^{f32,g}_{a},"
        "if_then_else(D^{f32,g}_{a-1}>0.5,A^{f32,g}_{a},A^{f32,g}_{a}));];"
    )
    assert verify(original, read(HEADER + recurrence).signed).accepted
    never = recurrence.replace("_{a-1}>0.5", "_{a-1}**2<-0.5")
    assert verify(original, read(HEADER + never).signed).reason == reasons.UNTAKEN_BRANCH


def test_a_test_for_infinity_may_stand_behind_another_one() -> None:
    """As the steps of an online softmax leave it: on its own, the inner one comes out both ways."""
    original = program("exp(A)")
    guarded = program("if_then_else(A==-inf,0,if_then_else(A==-inf,0,exp(A)))")
    assert verify(original, guarded).accepted
    other = program("if_then_else(A>=-inf,exp(A),if_then_else(A<-inf,0,exp(A)))")
    assert verify(original, other).reason == reasons.UNTAKEN_BRANCH


def test_an_infinity_that_no_data_brings_about_is_an_untaken_branch() -> None:
    hidden = program("if_then_else(1/(E-12.815)==inf,0,A+E)", SUM)
    assert verify(program("A+E", SUM), hidden).reason == reasons.UNTAKEN_BRANCH
