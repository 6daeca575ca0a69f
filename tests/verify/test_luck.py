"""T2 where an original is exact by luck: other orders pass, less accurate algorithms do not."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify import reasons, verdict
from steptp_dagster.verify.engine import LLVM
from steptp_dagster.verify.evidence import ERROR_FACTOR, gather
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
#: The mean of the squares minus the square of the mean cancels.
NAIVE_SQUARES = (
    f"{ROWS}[H^{{f32,g}}_{{tx}}=H^{{f32,g}}_{{tx}}+A^{{f32,g}}_{{tx,c}}*A^{{f32,g}}_{{tx,c}};];"
    "B^{39}_{tx=0}[E^{f32,g}_{tx}=max(H^{f32,g}_{tx}-5*D^{f32,g}_{tx}*D^{f32,g}_{tx},0);];"
)
NARROW_MEAN = (
    "B^{39}_{tx=0}[K^{f16,g}_{tx}=C^{f32,g}_{tx}/5;];B^{39}_{tx=0}[D^{f32,g}_{tx}=K^{f16,g}_{tx};];"
)


#: A layer norm whose row sums are exact by luck on constant data, and the same sums in two parts.
LUCKY = """# input A f32[3,13,5]
# param H f32[5]
# param I f32[5]
# output G f32[3,13,5]
B^{3}_{tx=0}L^{13}_{a=0}L^{5}_{c=0}[C^{f32,g}_{tx,a}=C^{f32,g}_{tx,a}+A^{f32,g}_{tx,a,c};];
B^{3}_{tx=0}L^{13}_{a=0}[D^{f32,g}_{tx,a}=C^{f32,g}_{tx,a}/5;];
B^{3}_{tx=0}L^{13}_{a=0}L^{5}_{c=0}
[E^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}+(A^{f32,g}_{tx,a,c}-D^{f32,g}_{tx,a})**2;];
B^{3}_{tx=0}L^{13}_{a=0}[F^{f32,g}_{tx,a}=1/sqrt(E^{f32,g}_{tx,a}/5+1e-5);];
B^{3}_{tx=0}L^{13}_{a=0}L^{5}_{c=0}[G^{f32,g}_{tx,a,c}=
(A^{f32,g}_{tx,a,c}-D^{f32,g}_{tx,a})*F^{f32,g}_{tx,a}*H^{f32,g}_{c}+I^{f32,g}_{c};];
"""
TWO_PARTS = """B^{3}_{tx=0}L^{13}_{a=0}L^{2}_{d=0}L^{3}_{c=0}
[J^{f32,g}_{tx,a,d}=J^{f32,g}_{tx,a,d}+A^{f32,g}_{tx,a,d*3+c}:d*3+c<5;];
B^{3}_{tx=0}L^{13}_{a=0}L^{2}_{d=0}[C^{f32,g}_{tx,a}=C^{f32,g}_{tx,a}+J^{f32,g}_{tx,a,d};];
"""
#: ``log(1+x)`` corrected by what ``1+x`` has lost of a small ``x``.
COMPENSATED = """# input A f32[8,16]
# output D f32[8,16]
B^{8}_{tx=0}L^{16}_{c=0}[X^{f32,g}_{tx,c}=exp(-A^{f32,g}_{tx,c}*A^{f32,g}_{tx,c});];
B^{8}_{tx=0}L^{16}_{c=0}[D^{f32,g}_{tx,c}=
log(1+X^{f32,g}_{tx,c})*X^{f32,g}_{tx,c}/((1+X^{f32,g}_{tx,c})-1);];
"""


def programs(*nests: str) -> tuple[SignedProgram, SignedProgram]:
    original = read(HEADER + SUM + MEAN + SQUARES + SPREAD + RESULT).signed
    return original, read("".join(nests), inherit=original.signature).signed


def judge(*nests: str) -> Verdict:
    return verify(*programs(*nests))


def test_a_right_step_is_accepted_for_what_the_original_s_roundings_may_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = read(LUCKY).signed
    begin = LUCKY.index("B^{3}_{tx=0}L^{13}_{a=0}[D")
    step = read(TWO_PARTS + LUCKY[begin:], inherit=original.signature).signed
    assert verify(original, step).accepted
    monkeypatch.setattr(verdict, "without_luck", lambda reference, *_: reference)
    assert verify(original, step).reason == reasons.UNSTABLE


def test_an_original_that_compensates_has_no_luck() -> None:
    original = read(COMPENSATED).signed
    begin = COMPENSATED.index("B^{8}")
    text = COMPENSATED[begin:].replace("*X^{f32,g}_{tx,c}/((1+X^{f32,g}_{tx,c})-1)", "")
    plain = read(text, inherit=original.signature).signed
    assert verify(original, plain).reason == reasons.UNSTABLE


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
