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


def test_parameters_may_be_the_only_ones_restricted() -> None:
    header = "# input A f32[24]\n# param F f32[24]\n# output D f32[24]\n"
    text = "{A}*sqrt({F}+0.001)".format(A="A", F="F^{f32,g}_{a}")
    right, wrong = (elementwise(t, header) for t in (text, text.replace("A*", "abs(A)*", 1)))
    verdict = verify(*pair(right, wrong))
    assert verdict.reason == reasons.MATHEMATICS
    assert "normal/positive-parameters" in [f.family for f in verdict.families if f.failure]


def test_differences_only_at_infinity_are_found() -> None:
    assert judge("max(A,-inf)", "max(A,-1e30)").reason == reasons.INFINITY_LOST
    assert judge("max(A,-inf)", "A").accepted


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
        (elementwise("A*1"), ("output-is:D=A",)),
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
