"""The verdict's evidence, labels and edges, on small programs."""

import json

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import reasons
from steptp_dagster.verify.record import InvalidOriginal, Verdict
from steptp_dagster.verify.screen import screen
from steptp_dagster.verify.verdict import MATHEMATICS, verify
from steptp_dagster.verify.zoo import originals

VECTOR = "# input A f32[24]\n# output D f32[24]\n"


def pair(original: str, candidate: str) -> tuple[SignedProgram, SignedProgram]:
    first = read(original).signed
    return first, read(candidate, inherit=first.signature).signed


def elementwise(expression: str, header: str = VECTOR) -> str:
    text = expression.replace("A", "A^{f32,g}_{a}")
    return f"{header}L^{{24}}_{{a=0}}[D^{{f32,g}}_{{a}}={text};];"


def judge(original: str, candidate: str) -> Verdict:
    return verify(*pair(elementwise(original), elementwise(candidate)))


def test_an_identical_program_is_exact_to_the_bit() -> None:
    verdict = judge("A*A+1", "A*A+1")
    assert verdict.accepted
    assert verdict.equality == "exact"
    assert verdict.bitwise
    assert verdict.reason is None
    assert all(f.exact and f.bitwise and not f.difference for f in verdict.families)
    assert verdict.dropped_families == ()
    assert verdict.seeds == (0,)
    assert dict(verdict.versions)["tvm"].startswith("0.27")


def test_reassociation_is_accepted_and_labelled() -> None:
    verdict = judge("A*3+A*5.3", "A*8.3")
    assert verdict.accepted
    assert verdict.equality == "reassociated"
    assert not verdict.bitwise
    assert any(f.difference for f in verdict.families)
    assert all((f.difference or 0.0) <= MATHEMATICS for f in verdict.families)


def test_the_sign_of_zero_is_told_apart_only_by_the_bits() -> None:
    verdict = judge("0-A", "-A")
    assert verdict.accepted
    assert verdict.equality == "exact"
    assert not verdict.bitwise


def test_the_candidates_domain_is_its_own_fault() -> None:
    assert judge("A*A*A", "exp(3*log(A))").reason == reasons.MATHEMATICS
    assert judge("abs(A)", "sqrt(A*A)").reason == reasons.NEW_NON_FINITE
    assert judge("A", "A/A*A").reason == reasons.MATHEMATICS


def test_the_originals_domain_is_respected() -> None:
    verdict = judge("log(A)", "0.5*log(A*A)")
    names = [f.family for f in verdict.families]
    assert "normal" in names
    assert "normal/positive" in names
    assert "negative" not in names
    assert "negative/positive" in names
    assert verdict.reason in (None, reasons.NEW_NON_FINITE)
    assert judge("sqrt(A)", "sqrt(abs(A))").accepted
    assert judge("sqrt(A)", "sqrt(A)+0.0001").reason == reasons.MATHEMATICS


THREE = "# input A f32[24]\n# input C f32[24]\n# input F f32[24]\n# output D f32[24]\n"


def judge_three(original: str, candidate: str, dtype: str = "f32") -> Verdict:
    texts = []
    for expression in (original, candidate):
        text = expression
        for name in "ACF":
            text = text.replace(name, f"{name}^{{f32,g}}_{{a}}")
        text = f"{THREE}L^{{24}}_{{a=0}}[D^{{f32,g}}_{{a}}={text};];"
        texts.append(text.replace("f32", dtype))
    return verify(*pair(*texts))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_the_originals_poles_are_outside_its_domain(dtype: str) -> None:
    assert judge_three("(A+C)/F", "A/F+C/F", dtype).accepted
    assert judge_three("A/F", "A/F", dtype).equality == "exact"
    assert judge_three("max(1/F,-1/F)", "abs(1/F)", dtype).equality == "exact"
    assert judge_three("(A+C)/F", "A/F-C/F", dtype).reason == reasons.MATHEMATICS
    assert judge_three("A+C", "(A*F+C*F)/F", dtype).reason == reasons.MATHEMATICS


def test_a_pole_that_the_original_avoids_is_judged() -> None:
    guarded = "if_then_else(F==0,A,C/F)"
    assert judge_three(guarded, guarded).equality == "exact"
    assert not judge_three(guarded, "C/F").accepted
    assert not judge_three(guarded, "if_then_else(F==0,0,C/F)").accepted
    assert not judge_three("1/(1+abs(1/F))", "1/(2+abs(1/F))").accepted


def test_meant_infinities_are_judged_beside_poles() -> None:
    masked = "if_then_else(A>0,-inf,C/F)"
    assert judge_three(masked, masked).equality == "exact"
    assert judge_three(masked, "if_then_else(A>0,-1e30,C/F)").reason == reasons.MATHEMATICS


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_a_candidate_may_avoid_the_originals_overflow(dtype: str) -> None:
    assert judge_three("A*C/F", "A*(C/F)", dtype).accepted
    stable = "max(A,0)+log(1+exp(-abs(A)))"
    assert judge_three("log(1+exp(A))", stable, dtype).accepted
    assert judge_three(stable, "log(1+exp(A))", dtype).reason == reasons.NEW_NON_FINITE


def test_parameters_may_be_the_only_ones_restricted() -> None:
    header = "# input A f32[24]\n# param F f32[24]\n# output D f32[24]\n"
    text = "{A}*sqrt({F}+0.001)".format(A="A", F="F^{f32,g}_{a}")
    right, wrong = (elementwise(t, header) for t in (text, text.replace("A*", "abs(A)*", 1)))
    verdict = verify(*pair(right, wrong))
    assert verdict.reason == reasons.MATHEMATICS
    assert "normal/positive-parameters" in [f.family for f in verdict.families if f.failure]


def test_differences_only_at_infinity_are_found() -> None:
    for limit in ("if_then_else(A==-inf,-1e30,A)", "max(A,-(1e15*1e15))"):
        assert judge("max(A,-inf)", limit).reason == reasons.INFINITY_LOST
    assert judge("max(A,-inf)", "max(A,-1e30)").reason == reasons.MATHEMATICS  # at the literal
    assert judge("max(A,-inf)", "A").accepted


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("start", ["0", "-100", "-10000", "-60000"])
def test_a_maximum_starts_from_nothing_but_minus_infinity(dtype: str, start: str) -> None:
    header = f"# input A {dtype}[3,8]\n# output D {dtype}[3]\n"
    update = "D^{T,g}_{a}=max(D^{T,g}_{a},A^{T,g}_{a,c});".replace("T", dtype)
    original = f"{header}L^{{3}}_{{a=0}}L^{{8}}_{{c=0}}[{update}];"
    wrong = f"{header}L^{{3}}_{{a=0}}[D^{{{dtype},g}}_{{a}}={start};L^{{8}}_{{c=0}}[{update}];];"
    assert not verify(*pair(original, wrong)).accepted
    right = wrong.replace(f"={start};", "=-inf;")
    assert verify(*pair(original, right)).equality == "exact"


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("left_out", ["first", "last"])
def test_the_maximum_of_a_softmax_leaves_no_element_out(dtype: str, left_out: str) -> None:
    wide = "f64" if dtype == "f64" else "f32"
    text = (
        "B^{4}_{tx=0}L^{9}_{c=0}[M^{W,g}_{tx}=max(M^{W,g}_{tx},A^{T,g}_{tx,c});];"
        "B^{4}_{tx=0}L^{9}_{c=0}[S^{W,g}_{tx}=S^{W,g}_{tx}+exp(A^{T,g}_{tx,c}-M^{W,g}_{tx});];"
        "B^{4}_{tx=0}L^{9}_{c=0}[D^{T,g}_{tx,c}=exp(A^{T,g}_{tx,c}-M^{W,g}_{tx})/S^{W,g}_{tx};];"
    )
    text = text.replace("{T,", f"{{{dtype},").replace("{W,", f"{{{wide},")
    header = f"# input A {dtype}[4,9]\n# output D {dtype}[4,9]\n"
    first, rest = text.split("B^{4}_{tx=0}L^{9}_{c=0}[S")
    first = first.replace("L^{9}", "L^{8}")
    first = first.replace("tx,c", "tx,c+1") if left_out == "first" else first
    wrong = f"{first}B^{{4}}_{{tx=0}}L^{{9}}_{{c=0}}[S{rest}"
    for seed in range(2):
        verdict = verify(*pair(header + text, header + wrong), seed=seed)
        assert verdict.reason in (reasons.NEW_NON_FINITE, reasons.UNSTABLE)


@pytest.mark.parametrize("wrong", ["A<-0.01", "7.03<A<7.04", "A==0.3125"])
def test_narrow_conditions_are_found(wrong: str) -> None:
    for seed in range(3):
        first, second = (elementwise(t) for t in ("A*2", f"if_then_else({wrong},0,A*2)"))
        assert not verify(*pair(first, second), seed=seed).accepted


def test_comparisons_with_a_tolerance_are_found() -> None:
    header = "# input A f16[24]\n# input C f16[24]\n# output D f16[24]\n"
    line = "L^{24}_{a=0}[D^{f16,g}_{a}=X;];"
    right = header + line.replace("X", "max(A^{f16,g}_{a},C^{f16,g}_{a})")
    choice = "if_then_else(A^{f16,g}_{a}-C^{f16,g}_{a}>-0.01,A^{f16,g}_{a},C^{f16,g}_{a})"
    for seed in range(3):
        assert not verify(*pair(right, header + line.replace("X", choice)), seed=seed).accepted


def test_constant_data_that_cancels_to_noise_is_not_judged() -> None:
    header = "# input A f32[23]\n# output D f32[23]\n"
    subtract = "L^{23}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}-C^{f32,g};];"
    first = header + "L^{23}_{a=0}[C^{f32,g}=C^{f32,g}+A^{f32,g}_{a}/23;];" + subtract
    second = header + "L^{23}_{a=0}[C^{f32,g}=C^{f32,g}+A^{f32,g}_{a};];"
    second += subtract.replace("C^{f32,g}", "C^{f32,g}/23")
    differences = []
    for seed in range(4):
        verdict = verify(*pair(first, second), seed=seed)
        constant = next(f for f in verdict.families if f.family == "constant")
        assert verdict.accepted
        assert constant.candidate_error is None
        differences.append(constant.difference or 0.0)
    assert max(differences) > MATHEMATICS


def test_static_rejections_carry_their_violations() -> None:
    verdict = judge("A", "A+C^{f32,g}_{a}")
    assert verdict.reason == reasons.INVALID
    assert verdict.static
    assert verdict.families == ()
    other = elementwise("A", VECTOR.replace("[24]", "[25]"))
    signature = verify(read(elementwise("A")).signed, read(other).signed)
    assert signature.reason == reasons.SIGNATURE_CHANGED


def test_an_invalid_original_is_raised() -> None:
    original, candidate = pair(elementwise("A+C^{f32,g}_{a}"), elementwise("A"))
    with pytest.raises(InvalidOriginal) as caught:
        verify(original, candidate)
    assert caught.value.violations[0].kind == "unknown-name"


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown target 'tpu'"):
        verify(*pair(elementwise("A"), elementwise("A")), target="tpu")


def test_too_much_work_is_refused_with_a_reason() -> None:
    large = VECTOR + (
        "L^{24}_{a=0}L^{1000}_{c=0}L^{1000}_{d=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a};];"
    )
    verdict = verify(*pair(large, large))
    assert verdict.reason == reasons.TOO_LARGE
    assert verdict.message == "the original executes 24000000 equations, over 5000000"
    wide = "# output D f64[4000,5000]\nL^{4000}_{a=0}[D^{f64,g}_{a,0}=1;];"
    assert screen(read(wide).signed) == ("invalid",)


def test_the_record_is_json() -> None:
    verdict = verify(*pair(originals.SOFTMAX, originals.SOFTMAX.replace("max(", "min(")))
    record = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert record["accepted"] is False
    assert record["reason"] == verdict.reason
    assert set(record) >= {
        "accepted", "equality", "bitwise", "reason", "static", "families", "margins", "target",
        "seeds", "versions",
    }  # fmt: skip
    assert record["margins"]["D=zeros"] > 0.1
    assert record["families"][0]["family"] == "normal"


def test_margins_say_what_a_trivial_answer_would_look_like() -> None:
    margins = dict(judge("max(A,0)", "max(A,0)").margins)
    assert set(margins) == {"D=zeros", "D=mean", "D=A"}
    assert all(m > 0.3 for m in margins.values())
    assert dict(judge("A*1", "A").margins)["D=A"] == 0.0


def test_seeds_change_data_but_not_the_answer() -> None:
    programs = pair(elementwise("A*3+A*5.3"), elementwise("A*8.3"))
    first, second = (verify(*programs, seed=seed) for seed in (1, 2))
    assert first.accepted
    assert second.accepted
    assert first.families != second.families
    assert first == verify(*programs, seed=1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (elementwise("exp(A)"), ()),
        (elementwise("A-A+2"), ("constant-output:D", "insensitive-to:A")),
        (elementwise("A*1"), ("output-is:D=A", "no-effect:D=A")),
        (
            VECTOR + "L^{24}_{a=0}[C^{f32,g}_{a}=max(A^{f32,g}_{a},0);];"
            "L^{24}_{a=0}[D^{f32,g}_{a}=max(C^{f32,g}_{a},0.01*C^{f32,g}_{a});];",
            ("no-effect:D=C",),
        ),
        (  # these data never get that low, but others would
            VECTOR + "L^{24}_{a=0}[C^{f32,g}_{a}=exp(A^{f32,g}_{a})+A^{f32,g}_{a};];"
            "L^{24}_{a=0}[D^{f32,g}_{a}=max(C^{f32,g}_{a},-1e9);];",
            (),
        ),
        (
            VECTOR + "L^{24}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];"
            "L^{24}_{a=0}[D^{f32,g}_{a}=max(C^{f32,g}_{a},0);];",
            (),
        ),
        (elementwise("0*A"), ("constant-output:D", "insensitive-to:A")),
        (elementwise("log(-abs(A)-1)"), ("too-few-families",)),
        (
            VECTOR + "L^{24}_{a=0}[C^{f32,g}_{a}=2;D^{f32,g}_{a}=exp(A^{f32,g}_{a});];",
            ("unused:C",),
        ),
        (VECTOR + "L^{24}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a+1};];", ("invalid",)),
        (
            "# input A f32[24]\n# output D f32[24]\n"
            "L^{24}_{a=0}L^{24}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+max(A^{f32,g}_{c},0);];",
            ("constant-output:D",),
        ),
    ],
)
def test_unsound_originals_are_screened(text: str, found: tuple[str, ...]) -> None:
    assert screen(read(text).signed) == found


def test_sums_of_halves_that_lose_everything_are_screened() -> None:
    text = (
        "# input A f16[8192]\n# output D f16[]\n"
        "L^{8192}_{a=0}[D^{f16,g}=D^{f16,g}+(1+0.001*A^{f16,g}_{a});];"
    )
    assert screen(read(text).signed) == ("inaccurate:D",)


def test_an_original_without_enough_meaning_is_no_evidence() -> None:
    verdict = judge("log(-abs(A)-1)", "log(-abs(A)-1)")
    assert verdict.reason == reasons.TOO_FEW_FAMILIES
    assert not verdict.accepted
    assert "normal" in verdict.dropped_families


def test_outputs_of_several_types_are_judged_together() -> None:
    text = (
        "# input A f32[24]\n# output D f64[24]\n# output E bool[24]\n"
        "L^{24}_{a=0}[D^{f64,g}_{a}=A^{f32,g}_{a};E^{bool,g}_{a}=A^{f32,g}_{a}>0;];"
    )
    assert verify(*pair(text, text)).bitwise
    changed = text.replace(">0", ">=0")
    assert verify(*pair(text, changed)).reason == reasons.INTEGERS_DIFFER


def test_numpy_state_is_not_touched() -> None:
    np.random.seed(5)
    before = np.random.get_state()[1][:5].tolist()  # type: ignore[index]
    judge("A", "A")
    assert np.random.get_state()[1][:5].tolist() == before  # type: ignore[index]
