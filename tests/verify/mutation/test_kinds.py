"""Every kind of mistake on programs where it is plain to see what it makes."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify.mutation.bases import by_hand
from steptp_dagster.verify.mutation.catalogue import KINDS
from steptp_dagster.verify.mutation.generate import mutants

SUM = "# input A f32[3,8]\n# output D f32[3]\n"
VECTOR = "# input A f32[8]\n# input C f32[8]\n# output D f32[8]\n"
D, A, C = "D^{f32,g}_{a}", "A^{f32,g}_{a}", "C^{f32,g}_{a}"


def vector(value: str) -> str:
    text = "".join({"A": A, "C": C, "D": D}.get(c, c) for c in value)
    return f"{VECTOR}L^{{8}}_{{a=0}}[{D}={text};];"


def total(value: str, loops: str = "L^{3}_{a=0}L^{8}_{c=0}") -> str:
    text = value.replace("A", "A^{f32,g}_{a,c}").replace("D", D)
    return f"{SUM}{loops}[{D}={text};];"


def made(kind: str, text: str) -> list[str]:
    """The programs that a kind makes, as text with short annotations."""
    signed = read(text).signed
    return [to_text(c.program).replace("^{f32,g}", "") for c in KINDS[kind](signed)]


CASES = [
    ("extent-off-by-one", vector("A"), "L^{7}_{a=0}[D_{a}=A_{a};];"),
    ("start-off-by-one", vector("A"), "L^{7}_{a=1}[D_{a}=A_{a};];"),
    (
        "lost-last-tile",
        f"{VECTOR}L^{{4}}_{{c=0}}L^{{2}}_{{a=0}}[D^{{f32,g}}_{{c*2+a}}=A^{{f32,g}}_{{c*2+a}};];",
        "L^{3}_{c=0}L^{2}_{a=0}[D_{c*2+a}=A_{c*2+a};];",
    ),
    (
        "double-count",
        f"{VECTOR}L^{{2}}_{{c=0}}L^{{4}}_{{a=0}}[D^{{f32,g}}_{{c*4+a}}=A^{{f32,g}}_{{c*4+a}};];",
        "L^{2}_{c=0}L^{4}_{a=0}[D_{c*4+a}=A_{c*3+a};];",
    ),
    ("lost-accumulation", total("D+A"), "L^{3}_{a=0}L^{8}_{c=0}[D_{a}=A_{a,c};];"),
    (
        "missing-start",
        f"{SUM}L^{{3}}_{{a=0}}[{D}=1;L^{{8}}_{{c=0}}[{D}={D}+A^{{f32,g}}_{{a,c}};];];",
        "L^{3}_{a=0}[L^{8}_{c=0}[D_{a}=D_{a}+A_{a,c};];];",
    ),
    (
        "wrong-start",
        total("D+A"),
        "L^{3}_{a=0}L^{8}_{c=0}[D_{a}=if_then_else(c==0,1,D_{a})+A_{a,c};];",
    ),
    (
        "repeated-statement",
        total("D+A"),
        "L^{3}_{a=0}L^{8}_{c=0}[D_{a}=D_{a}+A_{a,c};D_{a}=D_{a}+A_{a,c};];",
    ),
    (
        "repeated-nest",
        total("D+A"),
        "L^{2}_{d=0}L^{3}_{a=0}L^{8}_{c=0}[D_{a}=D_{a}+A_{a,c};];",
    ),
    ("dropped-rescale", total("D*exp(A-D)+A"), "L^{3}_{a=0}L^{8}_{c=0}[D_{a}=D_{a}+A_{a,c};];"),
    ("dropped-mask", vector("if_then_else(a<3,A,C)"), "L^{8}_{a=0}[D_{a}=A_{a};];"),
    (
        "swapped-branches",
        vector("if_then_else(a<3,A,C)"),
        "L^{8}_{a=0}[D_{a}=if_then_else(a<3,C_{a},A_{a});];",
    ),
    (
        "comparison-boundary",
        vector("if_then_else(A>0,A,C)"),
        "L^{8}_{a=0}[D_{a}=if_then_else(A_{a}>=0,A_{a},C_{a});];",
    ),
    ("wrong-guard", vector("A:a<9"), "L^{8}_{a=0}[D_{a}=A_{a}:a<8;];"),
    ("wrong-guard", vector("A"), "L^{8}_{a=0}[D_{a}=A_{a}:a<7;];"),
    ("wrong-offset", vector("A"), "L^{8}_{a=0}[D_{a}=A_{a+1};];"),
    ("wrong-axis", total("D+A"), "L^{3}_{a=0}L^{8}_{c=0}[D_{a}=D_{a}+A_{c,a};];"),
    ("wrong-tensor", vector("A"), "L^{8}_{a=0}[D_{a}=D_{a};];"),
    ("swapped-operands", vector("A-C"), "L^{8}_{a=0}[D_{a}=C_{a}-A_{a};];"),
    ("dropped-term", vector("A-C"), "L^{8}_{a=0}[D_{a}=A_{a};];"),
    ("wrong-operator", vector("A-C"), "L^{8}_{a=0}[D_{a}=A_{a}+C_{a};];"),
    ("wrong-function", vector("exp(A)"), "L^{8}_{a=0}[D_{a}=sin(A_{a});];"),
    ("wrong-constant", vector("A*2.5"), "L^{8}_{a=0}[D_{a}=A_{a}*2.525;];"),
    ("race", vector("A"), "P^{8}_{a=0}[D_{a}=A_{a};];"),
    ("race", vector("A"), "B^{8}_{bx=0}[D_{bx}=A_{bx};];"),
    ("wrong-scope", vector("A"), "L^{8}_{a=0}[D^{f32,l}_{a}=A_{a};];"),
    (
        "wrong-order",
        f"{VECTOR}L^{{8}}_{{a=0}}[{D}={A};{D}={D}+{C};];",
        "L^{8}_{a=0}[D_{a}=D_{a}+C_{a};D_{a}=A_{a};];",
    ),
    ("wrong-loop-order", total("D+A"), "L^{8}_{c=0}L^{3}_{a=0}[D_{a}=D_{a}+A_{a,c};];"),
    (
        "missing-statement",
        f"{VECTOR}L^{{8}}_{{a=0}}[{D}={A};];L^{{8}}_{{a=0}}[{D}={D}+{C};];",
        "L^{8}_{a=0}[D_{a}=A_{a};];",
    ),
    (
        "wrong-fusion",
        f"{VECTOR}L^{{8}}_{{a=0}}[{D}={A};];L^{{8}}_{{c=0}}[D^{{f32,g}}_{{c}}=1;];",
        "L^{8}_{a=0}[D_{a}=A_{a};D_{a}=1;];",
    ),
    ("over-limits", vector("A"), "B^{2048}_{tx=0}[D_{tx}=A_{tx}:tx<8;];"),
    (
        "narrow-temporary",
        f"{VECTOR}L^{{8}}_{{a=0}}[E^{{f32,g}}={A};{D}=E^{{f32,g}};];",
        "L^{8}_{a=0}[E^{f16,g}=A_{a};D_{a}=E^{f16,g};];",
    ),
]


@pytest.mark.parametrize(("kind", "text", "wanted"), CASES)
def test_a_kind_makes_its_mistake(kind: str, text: str, wanted: str) -> None:
    assert wanted in made(kind, text)


PARTIALS = (
    f"{SUM}L^{{3}}_{{a=0}}L^{{2}}_{{d=0}}L^{{4}}_{{c=0}}"
    "[E^{f32,g}_{a,d}=E^{f32,g}_{a,d}+A^{f32,g}_{a,d*4+c};];"
    f"L^{{3}}_{{a=0}}L^{{2}}_{{d=0}}[{D}={D}+E^{{f32,g}}_{{a,d}};];"
)


def test_partial_results_are_combined_wrongly_in_three_ways() -> None:
    found = made("wrong-combine", PARTIALS)
    partials = "L^{3}_{a=0}L^{2}_{d=0}L^{4}_{c=0}[E_{a,d}=E_{a,d}+A_{a,d*4+c};];"
    again = "L^{3}_{a=0}L^{2}_{d=0}L^{2}_{f=0}[D_{a}=D_{a}+E_{a,d};];"
    first = "L^{3}_{a=0}L^{2}_{d=0}[D_{a}=D_{a}+E_{a,0};];"
    assert partials + again in found
    assert partials + first in found
    assert any(text.count("];];") == 1 for text in found)  # inside the loop over the terms


def test_every_kind_is_tried() -> None:
    assert {kind for kind, _, _ in CASES} | {"wrong-combine"} == set(KINDS)
    assert len(KINDS) >= 15


@pytest.fixture(scope="module")
def everything() -> list[tuple[str, str, SignedProgram, SignedProgram]]:
    return [
        (m.kind, m.place, m.original, m.candidate)
        for b in by_hand()[::13]
        for m in mutants(b, 0, 2)
    ]


def test_mutants_read_back_and_are_new(
    everything: list[tuple[str, str, SignedProgram, SignedProgram]],
) -> None:
    assert len(everything) > 100
    for _, _, original, candidate in everything:
        assert parse(to_text(candidate.program)).program == candidate.program
        assert candidate.program != original.program
        assert candidate.signature == original.signature


def test_the_choice_depends_on_the_seed_alone() -> None:
    base = by_hand()[0]
    first, again, other = (list(mutants(base, seed, 2)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    more = list(mutants(base, 0, 3))
    assert {m.place for m in first} <= {m.place for m in more}
