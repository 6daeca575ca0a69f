"""Target limits, apart from validity."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.validity import check
from tests.support.corpus import long_form


def kinds(header: str, short: str, temps: str = "") -> list[str]:
    program = read(long_form(header, short, temps)).signed
    assert check(program) == ()
    return [v.kind for v in check_limits(program)]


@pytest.mark.parametrize(
    ("header", "short", "expected"),
    [
        ("output D f32[1024]", "B^1024_tx[D_{tx}=0;];", []),
        ("output D f32[1025]", "B^1025_tx[D_{tx}=0;];", ["axis-extent", "threads-per-block"]),
        ("output D f32[64,16]", "B^64_tz B^16_tx[D_{tz,tx}=0;];", []),
        ("output D f32[65]", "B^65_tz[D_{tz}=0;];", ["axis-extent"]),
        ("output D f32[64,17]", "B^64_ty B^17_tx[D_{ty,tx}=0;];", ["threads-per-block"]),
        ("output D f32[65535]", "B^65535_by[D_{by}=0;];", []),
        ("output D f32[65536]", "B^65536_by[D_{by}=0;];", ["axis-extent"]),
        ("output D f32[65536]", "B^65536_bx[D_{bx}=0;];", []),
        ("output D f32[4]", "V^4_a[D_{a}=0;];", []),
        ("output D f32[8]", "V^8_a[D_{a}=0;];", ["vector-bytes"]),
        ("output D f16[8]", "V^8_a[D_{a}=0;];", []),
        ("output D f64[4]", "V^4_a[D_{a}=0;];", ["vector-bytes"]),
        ("output D u8[16]", "V^16_a[D_{a}=0;];", []),
    ],
)
def test_launches_and_vectors(header: str, short: str, expected: list[str]) -> None:
    assert kinds(header, short) == expected


def test_sibling_thread_loops_share_the_block() -> None:
    short = "L^1_a[B^1024_tx[D_{tx}=0;];B^2_tx[E_{tx}=0;];];"
    assert kinds("output D f32[1024]; output E f32[2]", short) == []


def test_shared_memory_is_summed_per_nest() -> None:
    header = "input A f32[64]; output D f32[64]"
    short = "B^64_tx[S_{tx,0}=0;L^191_a[S_{tx,a+1}=0;];D_{tx}=S_{tx,0};];"
    assert kinds(header, short, "S f32 s") == []
    longer = short.replace("191", "192")
    assert kinds(header, longer, "S f32 s") == ["shared-memory"]
    assert kinds(header, longer, "S f16 s") == []
    assert kinds(header, short + longer.replace("S_", "R_"), "S f32 s; R f16 s") == []


def test_local_memory() -> None:
    header = "output D f32[4]"
    short = "B^4_tx[L^256_a[X_{a}=0;];D_{tx}=X_{0};];"
    assert kinds(header, short, "X f32 l") == []
    assert kinds(header, short.replace("256", "257"), "X f32 l") == ["local-memory"]


def test_messages_name_the_numbers() -> None:
    program = read(long_form("output D f32[64,17]", "B^64_ty B^17_tx[D_{ty,tx}=0;];")).signed
    (violation,) = check_limits(program)
    assert violation.found == "tx 17 * ty 64"
    assert violation.required == "at most 1024 threads"
