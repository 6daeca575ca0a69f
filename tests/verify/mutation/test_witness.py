"""Witnesses: what they see, and what they leave alone."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify.mutation.bases import by_hand
from steptp_dagster.verify.mutation.witness import Judge

HEADER = "# input A f32[3,8]\n# input C f32[3,8]\n# output D f32[3,8]\n"


def program(value: str, loops: str = "L^{3}_{a=0}L^{8}_{c=0}") -> SignedProgram:
    text = "".join(f"{c}^{{f32,g}}_{{a,c}}" if c in "ACD" else c for c in value)
    return read(f"{HEADER}{loops}[D^{{f32,g}}_{{a,c}}={text};];").signed


@pytest.mark.parametrize(
    ("original", "candidate", "how"),
    [
        ("A-C", "C-A", "values"),
        ("exp(A)", "exp(A)+0.000001", "values"),
        ("max(A,0)", "A", "values"),
        ("if_then_else(A>0.3,1.0,0.0)", "if_then_else(A>=0.3,1.0,0.0)", "exact"),
        ("if_then_else(A>0.3,1.0,0.0)", "if_then_else(A>0.303,1.0,0.0)", "exact"),
        ("exp(A-max(A,C))", "exp(A)/exp(max(A,C))", "values"),  # overflows
        ("if_then_else(A==-inf,0,exp(A))", "if_then_else(A==-inf,1,exp(A))", "values"),
        ("A+C", "A+C+0.0000000000000001*A", "exact"),
        ("A*A", "A*A:c<7", "fault"),
    ],
)
def test_what_is_wrong_is_seen(original: str, candidate: str, how: str) -> None:
    body = candidate.replace(":c<7", "")
    wrong = program(body)
    if body != candidate:
        wrong = read(HEADER + _text(program(body)).replace(";];", ":c<7;];")).signed
    found = Judge(program(original)).witness(wrong)
    assert found is not None
    assert found.how == how
    assert found.message


def _text(signed: SignedProgram) -> str:
    from steptp_dagster.leir.printer import to_text

    return to_text(signed.program)


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        ("A*(A+C)", "A*A+A*C"),
        ("exp(A)*exp(C)", "exp(A+C)"),
        ("max(A,C)", "if_then_else(A>=C,A,C)"),
        ("(A+C)/4", "A*0.25+C/4"),
        ("log(A)", "0.5*log(A*A)"),  # the original's domain is what counts
        ("A/C", "A*(1/C)"),
    ],
)
def test_what_is_right_is_left_alone(original: str, candidate: str) -> None:
    assert Judge(program(original)).witness(program(candidate)) is None


def test_threads_and_races_are_seen_without_data() -> None:
    judge = Judge(program("A+C"))
    wide = read(
        HEADER
        + "B^{2048}_{tx=0}L^{8}_{c=0}[D^{f32,g}_{tx,c}=A^{f32,g}_{tx,c}+C^{f32,g}_{tx,c}:tx<3;];"
    ).signed
    found = judge.witness(wide)
    assert found is not None
    assert (found.how, found.message) == ("launch", "2048 threads in a block")
    racy = read(
        "# input A f32[8]\n# output D f32[]\nP^{8}_{a=0}[D^{f32,g}=D^{f32,g}+A^{f32,g}_{a};];"
    ).signed
    serial = read(
        "# input A f32[8]\n# output D f32[]\nL^{8}_{a=0}[D^{f32,g}=D^{f32,g}+A^{f32,g}_{a};];"
    ).signed
    found = Judge(serial).witness(racy)
    assert found is not None
    assert found.how == "fault"
    assert "loop-conflict" in found.message


def test_lost_digits_are_seen() -> None:
    half = program("A*C").program
    text = _text(program("A*C")).replace(
        "[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}*C^{f32,g}_{a,c};",
        "[E^{f16,g}=A^{f32,g}_{a,c}*C^{f32,g}_{a,c};D^{f32,g}_{a,c}=E^{f16,g};",
    )
    narrow = read(HEADER + text).signed
    assert narrow.program != half
    found = Judge(program("A*C")).witness(narrow)
    assert found is not None
    assert found.how == "accuracy"


@pytest.mark.slow
def test_no_right_form_of_the_zoo_has_a_witness_against_it() -> None:
    """The witnesses are worth something only if right programs pass them."""
    wrong = {b.name: w for b in by_hand() if (w := Judge(b.original).witness(b.form)) is not None}
    assert wrong == {}
