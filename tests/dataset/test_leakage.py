from collections import Counter

import pytest

from steptp_dagster.dataset.config import SplitPlan
from steptp_dagster.dataset.leakage import Workload, compared, leakage, members
from steptp_dagster.dataset.likeness import nearest, nest_forms, share
from steptp_dagster.dataset.splits import assign, components
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram

HEADER = "# input A f32[8,4]\n# output D f32[8,4]\n"
SCALE = "B^{8}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}*2.0;];"
SUM = "B^{8}_{tx=0}L^{4}_{a=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+A^{f32,g}_{tx,a};];"
DIVIDE = "B^{8}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}/E^{f32,g}_{tx};];"


def signed(text: str, header: str = HEADER) -> SignedProgram:
    return read(header + text).signed


def workload(name: str, text: str, family: str = "") -> Workload:
    program = signed(text)
    return Workload(
        name, family or name, frozenset({structural_hash(program)}), (nest_forms(program),)
    )


@pytest.mark.parametrize(
    ("text", "header"),
    [
        # other names, operands the other way round, another number
        (
            "B^{8}_{tx=0}L^{4}_{c=0}[E^{f32,g}_{tx,c}=0.5*C^{f32,g}_{tx,c};];",
            "# input C f32[8,4]\n# output E f32[8,4]\n",
        ),
        # other extents and another dtype
        (
            "B^{3}_{tx=0}L^{7}_{a=0}[D^{f16,g}_{tx,a}=A^{f16,g}_{tx,a}*2.0;];",
            "# input A f16[3,7]\n# output D f16[3,7]\n",
        ),
    ],
)
def test_names_numbers_and_order_make_no_difference(text: str, header: str) -> None:
    assert nest_forms(signed(text, header)) == nest_forms(signed(SCALE))


@pytest.mark.parametrize(
    "text",
    [
        SCALE.replace("*", "/"),
        SCALE.replace("B^{8}_{tx", "B^{8}_{bx").replace("tx", "bx"),
        SCALE.replace("A^{f32,g}_{tx,a}", "A^{f32,g}_{tx,0}"),
        SCALE.replace("2.0;", "2.0:a<3;"),
        SCALE.replace("A^{f32,g}_{tx,a}*2.0", "exp(A^{f32,g}_{tx,a})"),
    ],
)
def test_operators_axes_accesses_and_guards_do(text: str) -> None:
    assert nest_forms(signed(text)) != nest_forms(signed(SCALE))


def test_the_share_counts_nests() -> None:
    both, one = nest_forms(signed(SUM + DIVIDE)), nest_forms(signed(SUM + SCALE))
    assert both.total() == one.total() == 2
    assert share(both, one) == pytest.approx(1 / 3)
    assert share(both, both) == 1.0
    assert share(Counter(), Counter()) == 0.0
    found = nearest([both], {"x": [one], "a": [one, both], "b": [both]})
    assert found is not None
    assert (found.name, found.share) == ("a", 1.0)
    assert nearest([both], {}) is None


def test_near_copies_go_to_one_split() -> None:
    left = workload("left", SUM + DIVIDE)
    right = workload("right", (SUM + DIVIDE).replace("{4}", "{3}"))
    other = workload("other", SCALE)
    assert not left.structures & right.structures
    assert components(members([left, right, other], 0.6)) == (("left", "right"), ("other",))
    assert len(components(members([left, right, other], 1.0))) == 2
    mixed = workload("mixed", SUM + SCALE)
    assert len(components(members([left, mixed], 0.34))) == 2
    assert len(components(members([left, mixed], 0.33))) == 1


def test_the_report_finds_what_a_wrong_split_lets_through() -> None:
    left = workload("left", SUM + DIVIDE)
    copy = Workload("copy", "another", left.structures, left.forms)
    other = workload("other", SCALE)
    known = [left, copy, other]
    wrong = {"left": "train", "copy": "test", "other": "validation"}
    rows = {row["program"]: row for row in leakage(known, wrong, 0.6)}
    assert rows["copy"] == {
        "program": "copy",
        "split": "test",
        "structures": 1,
        "shared": 1,
        "nearest": "left",
        "likeness": 1.0,
        "near": True,
    }
    assert (rows["other"]["nearest"], rows["other"]["near"]) == (None, False)
    right = assign(members(known, 0.6), SplitPlan(0.4, 0.3, 0.3), 0)
    assert not any(row["shared"] or row["near"] for row in leakage(known, right, 0.6))


def test_programs_from_outside() -> None:
    training = [workload("scale", SCALE), workload("normalise", SUM + DIVIDE)]
    same = compared(signed(SCALE.replace("_{a=0}", "_{c=0}").replace("x,a", "x,c")), training, 0.6)
    assert (same.same, same.leaks) == (("scale",), True)
    near = compared(signed((SUM + DIVIDE).replace("{4}", "{3}")), training, 0.6)
    assert (near.same, near.near, near.leaks) == ((), True, True)
    apart = compared(signed(SCALE.replace("*", "/")), training, 0.6)
    assert not apart.leaks
