"""Size measures, counted by hand."""

import pytest

from steptp_dagster.leir import cost as costs
from steptp_dagster.leir import nest_memory
from steptp_dagster.leir.cost import Cost, cost
from steptp_dagster.leir.fileform import read

HEADER = "# input A f16[4,8]\n# param W f32[8]\n# input M bool[4]\n# output D f32[4]\n"


def measured(text: str) -> Cost:
    return cost(read(HEADER + text).signed)


def test_matrix_vector_product() -> None:
    found = measured(
        "B^{4}_{tx=0}L^{8}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f16,g}_{tx,a}*W^{f32,g}_{a};];"
    )
    assert found == Cost(
        nests=1,
        loops=2,
        equations=1,
        loop_depth=2,
        iterations=32,
        flops=64,
        bytes_read={"g": 32 * (4 + 2 + 4), "s": 0, "l": 0},
        bytes_written={"g": 32 * 4, "s": 0, "l": 0},
    )


def test_imperfect_nests_and_scopes() -> None:
    found = measured(
        "B^{4}_{tx=0}[K^{f64,l}=0;L^{8}_{a=1}[S^{f32,s}_{a-1}=W^{f32,g}_{a-1};"
        "K^{f64,l}=K^{f64,l}+S^{f32,s}_{a-1};];D^{f32,g}_{tx}=K^{f64,l};];"
        "L^{3}_{a=0}[D^{f32,g}_{a}=1;];"
    )
    assert (found.nests, found.loops, found.equations, found.loop_depth) == (2, 3, 5, 2)
    assert found.iterations == 4 + 2 * 32 + 4 + 3
    assert found.flops == 32
    assert found.bytes_read == {"g": 32 * 4, "s": 32 * 4, "l": 32 * 8 + 4 * 8}
    assert found.bytes_written == {"g": 4 * 4 + 3 * 4, "s": 32 * 4, "l": 4 * 8 + 32 * 8}


@pytest.mark.parametrize(
    ("value", "flops", "read_bytes"),
    [
        ("1", 0, 0),
        ("-W^{f32,g}_{0}", 0, 4),
        ("W^{f32,g}_{a+1-1}", 0, 4),
        ("W^{f32,g}_{I^{i64,g}_{a}}", 0, 12),
        ("exp(W^{f32,g}_{a})**2", 2, 4),
        ("max(W^{f32,g}_{a},0)", 1, 4),
        ("abs(a)", 0, 0),
        ("a*2+1", 0, 0),
        ("a/2", 1, 0),
        ("(W^{f32,g}_{a}<1)*2.0", 1, 4),
        ("if_then_else(M^{bool,g}_{a},exp(W^{f32,g}_{a})+1,A^{f16,g}_{a,0})", 2, 5),
        ("if_then_else(a*0.5<1,0,W^{f32,g}_{a})", 1, 4),
        ("if_then_else(a<1,A^{f16,g}_{a,0}+A^{f16,g}_{a,1}*2,K^{f64,s})", 2, 12),
    ],
)
def test_one_instance(value: str, flops: int, read_bytes: int) -> None:
    found = measured(f"L^{{1}}_{{a=0}}[D^{{f32,g}}_{{a}}={value};];")
    assert found.flops == flops
    assert sum(found.bytes_read.values()) == read_bytes


def test_guards_count_as_true_and_are_read() -> None:
    found = measured(
        "L^{4}_{a=0}[D^{f32,g}_{a}=W^{f32,g}_{a}*2:M^{bool,g}_{a}&W^{f32,g}_{a}*2<1;];"
    )
    assert found.iterations == 4
    assert found.flops == 4 * 2
    assert found.bytes_read["g"] == 4 * (4 + 1 + 4)


def test_subscripts_of_the_target_are_read() -> None:
    found = measured("L^{4}_{a=0}[D^{f32,g}_{I^{i32,g}_{a}}=0;];")
    assert found.bytes_read["g"] == 16
    assert found.bytes_written["g"] == 16


@pytest.mark.parametrize(
    "value",
    [
        "max(A^{f16,g}_{tx,a}*2,-W^{f32,g}_{a})**0.5//3",
        "exp(W^{f32,g}_{a+0}*(a+1)/2)",
        "W^{f32,g}_{a}+(a*2+1)",
        "if_then_else(M^{bool,g}_{tx},W^{f32,g}_{a}+1,A^{f16,g}_{tx,a})",
        "1/2+floor(W^{f32,g}_{a})-inf",
        "W^{f32,g}_{a}*(1/3)",
        "M^{bool,g}_{tx}",
    ],
)
def test_what_is_evident_is_what_types_say(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"B^{{4}}_{{tx=0}}L^{{8}}_{{a=0}}[D^{{f32,g}}_{{tx}}={value};];"
    nest_memory.forget()
    found = measured(text)
    monkeypatch.setattr(costs, "_evident", lambda *_: None)
    nest_memory.forget()
    assert measured(text) == found
