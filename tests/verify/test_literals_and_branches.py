"""Mistakes that hide from data of ordinary size: at literals, and in branches nothing takes."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
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
    for test in ("E==-inf", "-inf==E", "E<=-inf", "E>=inf", "abs(E)==inf"):
        guarded = f"if_then_else({test},0,A+E)"
        assert verify(program("A+E", SUM), program(guarded, SUM)).accepted
    for test in ("E!=inf", "E>-inf", "-inf<E", "E<inf"):
        assert verify(program("A+E", SUM), program(f"if_then_else({test},A+E,0)", SUM)).accepted
    for test in ("E<-inf", "E>inf"):
        never = program(f"if_then_else({test},0,A+E)", SUM)
        assert verify(program("A+E", SUM), never).reason == reasons.UNTAKEN_BRANCH
    of_input = verify(program("A+1"), program("if_then_else(A==inf,0,A+1)"))
    assert of_input.reason == reasons.UNTAKEN_BRANCH


MASKS = """# input A f32[2,4]
# input C f32[2,4]
# output D f32[2,4]
"""
#: Minus infinity is no number times zero: one mask, and the original has no value at all.
ENTROPY = """# input A f32[1,8]
# output D f32[1]
L^{8}_{a=0}[M^{f32,g}=max(M^{f32,g},A^{f32,g}_{0,a});];
L^{8}_{a=0}[S^{f32,g}=S^{f32,g}+exp(A^{f32,g}_{0,a}-M^{f32,g});];
L^{8}_{a=0}[W^{f32,g}_{a}=exp(A^{f32,g}_{0,a}-M^{f32,g})/S^{f32,g};];
L^{8}_{a=0}[D^{f32,g}_{0}=D^{f32,g}_{0}-W^{f32,g}_{a}*log(W^{f32,g}_{a});];
"""


def masked(value: str) -> SignedProgram:
    text = value.replace("A", "A^{f32,g}_{a,c}").replace("C", "C^{f32,g}_{a,c}")
    return read(f"{MASKS}L^{{2}}_{{a=0}}L^{{4}}_{{c=0}}[D^{{f32,g}}_{{a,c}}={text};];").signed


@pytest.mark.parametrize("seed", range(4))
def test_masks_of_either_input_take_the_branches_for_them(seed: int) -> None:
    original = masked("exp(A)*C")  # no number where the one is masked and the other is
    right = masked("if_then_else(A==-inf,C*0,exp(A)*C)")
    assert verify(original, right, seed=seed).accepted
    assert not verify(original, masked("if_then_else(A==-inf,1,exp(A)*C)"), seed=seed).accepted
    assert not verify(original, masked("if_then_else(C==-inf,1,exp(A)*C)"), seed=seed).accepted


def test_a_test_for_masks_that_leave_no_value_is_no_objection() -> None:
    original = read(ENTROPY).signed
    weight = "exp(A^{f32,g}_{0,a}-M^{f32,g})"
    guarded = ENTROPY.replace(weight, f"if_then_else(A^{{f32,g}}_{{0,a}}==-inf,0,{weight})")
    assert verify(original, read(guarded).signed).accepted
    hidden = ENTROPY.replace(weight, f"if_then_else(1/(M^{{f32,g}}-2.7)==inf,0,{weight})")
    found = verify(original, read(hidden).signed).reason
    assert found in (reasons.UNTAKEN_BRANCH, reasons.MATHEMATICS)


@pytest.mark.parametrize(
    "infinite",
    [
        "1/(E^{f32,g}-12.815)",
        "log(abs(E^{f32,g}-A^{f32,g}_{0}*A^{f32,g}_{1}))",
        "(E^{f32,g}-12.815)**(-2)",
        "exp((E^{f32,g}-12.81)*(12.82-E^{f32,g})*100000000)",
    ],
)
def test_an_intermediate_that_is_infinite_by_itself_hides_nothing(infinite: str) -> None:
    """A pole or a number that the original lacks may make it infinite at one sum alone."""
    original = "max(A,1)+exp(-abs(E))"
    before = f"{SUM}L^{{1}}_{{a=0}}[X^{{f32,g}}={infinite};Y^{{f32,g}}=abs(X^{{f32,g}});];"
    wrong = f"if_then_else(Y==inf,0,{original})".replace("Y", "Y^{f32,g}")
    verdict = verify(program(original, SUM), program(wrong, before))
    assert verdict.reason in (reasons.UNTAKEN_BRANCH, reasons.MATHEMATICS, reasons.UNSTABLE)


@pytest.mark.parametrize(
    "bump",
    [
        "exp(0-((E-12.815)*100000)**2)",
        "0**abs(floor(E*100)-1281)",
        "max(0,1-abs(E*7-89.7)*1000)",
        "exp(0-((A*E-3.217)*100000)**2)",
        "if_then_else(a<3,0,exp(0-((E*E+E-31.7)*100000)**2))",
    ],
)
def test_a_bump_around_a_number_is_found(bump: str) -> None:
    """There is no condition; a sum comes near the number on no data but what is steered there."""
    found = verify(program("A+E", SUM), program(f"A+E+{bump}", SUM))
    assert found.reason in (reasons.MATHEMATICS, reasons.UNTAKEN_BRANCH)


def test_own_numbers_of_right_rewrites_are_no_objection() -> None:
    original = program("(E-3)*(E-3)-7+A", SUM)
    assert verify(original, program("E*E-6*E+2+A", SUM)).accepted
    assert verify(program("E/3+A", SUM), program("(E+3*A+12)/3-4", SUM)).accepted


WHOLE = """# input A f32[7]
# input C i64[7]
# output D f32[7]
"""


def whole(value: str, before: str = "") -> SignedProgram:
    text = f"{before}L^{{7}}_{{a=0}}[D^{{f32,g}}_{{a}}={value};];"
    for name, dtype in (("A", "f32"), ("C", "i64")):
        text = text.replace(name, f"{name}^{{{dtype},g}}_{{a}}")
    return read(WHOLE + text.replace("E", "E^{i64,g}")).signed


@pytest.mark.parametrize(
    ("condition", "before"),
    [
        ("C==5000", ""),
        ("100<C&C<200", ""),
        ("C*C==1369", ""),
        ("C%1000==77", ""),
        ("E==43", "L^{7}_{a=0}[E=E+C;];"),
        ("E==7421", "L^{7}_{a=0}[E=E+A*1000;];"),
    ],
)
def test_conditions_on_integers_are_asked(condition: str, before: str) -> None:
    verdict = verify(whole("A*C"), whole(f"if_then_else({condition},0,A*C)", before))
    assert verdict.reason in (reasons.UNTAKEN_BRANCH, reasons.MATHEMATICS)


def test_tables_of_indices_are_no_data() -> None:
    table = "L^{7}_{a=0}[F^{i64,g}_{a}=a*2;];"
    right = "if_then_else(F^{i64,g}_{a}<90,A*C,0)"
    assert verify(whole("A*C"), whole(right, table)).accepted
    assert verify(whole("if_then_else(C==5000,0,A)"), whole("if_then_else(5000==C,0,A)")).accepted


@pytest.mark.parametrize("least", ["10000", "1e30"])
def test_a_clamped_mask_shows_beside_scores_of_ordinary_size(least: str) -> None:
    scores = "L^{2}_{a=0}L^{4}_{c=0}[S^{f32,g}_{a,c}=C^{f32,g}_{a,c}*2+A^{f32,g}_{a,c};];"
    rest = (
        "L^{2}_{a=0}L^{4}_{c=0}[M^{f32,g}_{a}=max(M^{f32,g}_{a},S^{f32,g}_{a,c});];"
        "L^{2}_{a=0}L^{4}_{c=0}[D^{f32,g}_{a,c}=exp(S^{f32,g}_{a,c}-M^{f32,g}_{a});];"
    )
    clamped = scores.replace("A^{f32,g}_{a,c}", f"max(A^{{f32,g}}_{{a,c}},-{least})")
    original, candidate = (read(MASKS + text + rest).signed for text in (scores, clamped))
    verdict = verify(original, candidate)
    assert (verdict.reason, verdict.message.split()[-1]) == (reasons.MATHEMATICS, "A")


def test_what_masks_decide_is_not_mixed_with_other_conditions() -> None:
    original = "max(A,1)+exp(-abs(E))"
    wrong = f"if_then_else(0.001-abs(E-12.815)+if_then_else(A==-inf,9,0)>0,0,{original})"
    verdict = verify(program(original, SUM), program(wrong, SUM))
    assert not verdict.accepted


#: PyTorch's ``logsumexp`` of scores that are never infinite, relative to a finite maximum.
BOUNDED = """# input A f32[3,6]
# output D f32[3]
B^{3}_{tx=0}L^{6}_{a=0}[S^{f32,g}_{tx,a}=tanh(A^{f32,g}_{tx,a})*4;];
B^{3}_{tx=0}L^{6}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
B^{3}_{tx=0}[I^{f32,g}_{tx}=if_then_else(abs(M^{f32,g}_{tx})==inf,0,M^{f32,g}_{tx});];
B^{3}_{tx=0}L^{6}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-I^{f32,g}_{tx});];
B^{3}_{tx=0}[D^{f32,g}_{tx}=log(Z^{f32,g}_{tx})+I^{f32,g}_{tx};];
"""


@pytest.mark.parametrize(
    ("name", "forms"),
    [("online_softmax", 2), ("normal_loop_summation_on_exp_to_prefix_summation_on_exp", 1)],
)
def test_streams_of_scores_that_are_never_infinite_are_accepted(name: str, forms: int) -> None:
    original = read(BOUNDED).signed
    steps = [take(strategy(name), original, site) for site in strategy(name).survey(original).sites]
    assert len(steps) == forms
    for step in steps:
        assert isinstance(step, Step)
        assert own_questions(original, step.after)
        assert verify(original, step.after).accepted


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


def test_numbers_of_conditions_on_indices_are_no_new_limits() -> None:
    """A padded tensor is inlined: its condition on indices comes with numbers of the subscripts."""
    header = "# input A f32[6]\n# output D f32[2]\n"
    padded = (
        "L^{8}_{a=0}[C^{f32,g}_{a}=if_then_else(1<=a&a<7,A^{f32,g}_{a-1},-inf);];"
        "L^{2}_{a=0}[D^{f32,g}_{a}=max(C^{f32,g}_{a*5},C^{f32,g}_{a*5+2});];"
    )
    first, second = (
        f"if_then_else(1<=a*5{more}&a*5{more}<7,A^{{f32,g}}_{{a*5{less}}},-inf)"
        for more, less in (("", "-1"), ("+2", "+1"))
    )
    inlined = f"L^{{2}}_{{a=0}}[D^{{f32,g}}_{{a}}=max({first},{second});];"
    original, candidate = (read(header + text).signed for text in (padded, inlined))
    assert own_questions(original, candidate) == []
    assert verify(original, candidate).accepted
    limited = read(header + inlined.replace("-inf", "-7.5")).signed
    assert own_questions(original, limited)


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
