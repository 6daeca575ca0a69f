"""T2 where an original is exact by luck: other orders pass, less accurate algorithms do not."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import reasons
from steptp_dagster.verify.engine import LLVM
from steptp_dagster.verify.evidence import ERROR_FACTOR, ERROR_SLACK, gather
from steptp_dagster.verify.luck import without_luck
from steptp_dagster.verify.original import evaluate
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.verdict import verify

ROWS = "B^{39}_{tx=0}L^{5}_{c=0}"
HEADER = "# input A f32[39,5]\n# output G f32[39,5]\n"
SUM = f"{ROWS}[C^{{f32,g}}_{{tx}}=C^{{f32,g}}_{{tx}}+A^{{f32,g}}_{{tx,c}};];"
MEAN = "B^{39}_{tx=0}[D^{f32,g}_{tx}=C^{f32,g}_{tx}/5;];"
SQUARES = (
    f"{ROWS}[E^{{f32,g}}_{{tx}}=E^{{f32,g}}_{{tx}}+(A^{{f32,g}}_{{tx,c}}-D^{{f32,g}}_{{tx}})**2;];"
)
SPREAD = "B^{39}_{tx=0}[F^{f32,g}_{tx}=1/sqrt(E^{f32,g}_{tx}/5+1e-5);];"
RESULT = (
    f"{ROWS}[G^{{f32,g}}_{{tx,c}}=(A^{{f32,g}}_{{tx,c}}-D^{{f32,g}}_{{tx}})*F^{{f32,g}}_{{tx}};];"
)

#: Five equal numbers: their sum over five is the number again, but not in two parts.
IN_PARTS = (
    "B^{39}_{tx=0}L^{2}_{d=0}L^{3}_{c=0}"
    "[J^{f32,g}_{tx,d}=J^{f32,g}_{tx,d}+A^{f32,g}_{tx,d*3+c}:d*3+c<5;];"
    "B^{39}_{tx=0}L^{2}_{d=0}[C^{f32,g}_{tx}=C^{f32,g}_{tx}+J^{f32,g}_{tx,d};];"
)
SCALED_TERMS = f"{ROWS}[D^{{f32,g}}_{{tx}}=D^{{f32,g}}_{{tx}}+A^{{f32,g}}_{{tx,c}}/5;];"
#: The mean of the squares minus the square of the mean cancels.
NAIVE_SQUARES = (
    f"{ROWS}[H^{{f32,g}}_{{tx}}=H^{{f32,g}}_{{tx}}+A^{{f32,g}}_{{tx,c}}*A^{{f32,g}}_{{tx,c}};];"
    "B^{39}_{tx=0}[E^{f32,g}_{tx}=max(H^{f32,g}_{tx}-5*D^{f32,g}_{tx}*D^{f32,g}_{tx},0);];"
)
NARROW_MEAN = (
    "B^{39}_{tx=0}[K^{f16,g}_{tx}=C^{f32,g}_{tx}/5;];B^{39}_{tx=0}[D^{f32,g}_{tx}=K^{f16,g}_{tx};];"
)


def programs(*nests: str) -> tuple[SignedProgram, SignedProgram]:
    original = read(HEADER + SUM + MEAN + SQUARES + SPREAD + RESULT).signed
    return original, read("".join(nests), inherit=original.signature).signed


def judge(*nests: str) -> Verdict:
    return verify(*programs(*nests))


@pytest.mark.parametrize("mean", [IN_PARTS + MEAN, SCALED_TERMS], ids=["in parts", "scaled terms"])
def test_another_order_is_no_less_accurate_than_a_lucky_one(mean: str) -> None:
    verdict = judge(mean, SQUARES, SPREAD, RESULT)
    assert verdict.accepted, verdict.reason
    for family in verdict.families:
        if family.candidate_error is not None and family.original_error is not None:
            allowed = ERROR_FACTOR * family.original_error + ERROR_SLACK
            assert family.candidate_error <= allowed


@pytest.mark.parametrize(
    "nests",
    [
        (SUM, MEAN, NAIVE_SQUARES, SPREAD, RESULT),
        (IN_PARTS, MEAN, NAIVE_SQUARES, SPREAD, RESULT),
        (SUM, NARROW_MEAN, SQUARES, SPREAD, RESULT),
        (IN_PARTS, NARROW_MEAN, SQUARES, SPREAD, RESULT),
    ],
    ids=["naive variance", "in parts too", "narrow mean", "both"],
)
def test_less_accurate_algorithms_are_rejected(nests: tuple[str, ...]) -> None:
    assert not judge(*nests).accepted
    original, candidate = programs(*nests)
    reference = evaluate(original, 0)
    unlucky = without_luck(reference, 0, [case.name for case in reference.cases], ERROR_FACTOR)
    working, double = (LLVM.compile([candidate], p)[0] for p in ("working", "float64"))
    assert reasons.UNSTABLE in {family.failure for family in gather(unlucky, working, double)}


def test_a_logarithm_added_to_a_large_number_is_less_accurate() -> None:
    rows = "B^{8}_{tx=0}L^{16}_{c=0}"
    start = (
        "# input A f32[8,16]\n# output G f32[8,16]\n"
        f"{rows}[M^{{f32,g}}_{{tx}}=max(M^{{f32,g}}_{{tx}},A^{{f32,g}}_{{tx,c}});];"
        f"{rows}[C^{{f32,g}}_{{tx}}=C^{{f32,g}}_{{tx}}"
        "+exp(A^{f32,g}_{tx,c}-M^{f32,g}_{tx});];"
    )
    result = f"{rows}[G^{{f32,g}}_{{tx,c}}=A^{{f32,g}}_{{tx,c}}-%s;];"
    original = read(start + result % "M^{f32,g}_{tx}-log(C^{f32,g}_{tx})").signed
    added = read(start + result % "(M^{f32,g}_{tx}+log(C^{f32,g}_{tx}))").signed
    assert verify(original, added).reason == reasons.UNSTABLE
