"""The checker on the corpus, on programs of real size, and rule by rule with positions."""

import pytest

from steptp_dagster.leir import nest_memory, sets
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check, is_valid
from steptp_dagster.leir.violation import Violation
from tests.support.corpus import INVALID, VALID, Case, long_form


def signed(header: str, short: str, temps: str = "") -> SignedProgram:
    return read(long_form(header, short, temps)).signed


def kinds(header: str, short: str, temps: str = "") -> list[str]:
    return [v.kind for v in check(signed(header, short, temps))]


@pytest.mark.parametrize("case", VALID, ids=lambda c: c.name)
def test_valid_programs_are_accepted(case: Case) -> None:
    assert check(case.signed) == ()


@pytest.mark.parametrize("case", INVALID, ids=lambda c: c.name)
def test_invalid_programs_are_rejected_for_the_right_reason(case: Case) -> None:
    found = [v.kind for v in check(case.signed)]
    assert found
    assert found[0] in case.kinds


REAL = {
    "convolution with padding, stride and dilation": (
        "input A f32[8,16,56,56]; param W f32[32,16,3,3]; param C f32[32]; "
        "output D f32[8,32,28,28]",
        "B^8_tx L^32_a L^28_c L^28_d L^16_f L^3_g L^3_h[E_{tx,a,c,d}=E_{tx,a,c,d}+"
        "if_then_else(2<=c*2+g*2<58&2<=d*2+h*2<58,A_{tx,f,c*2+g*2-2,d*2+h*2-2},0)*W_{a,f,g,h};];"
        "B^8_tx L^32_a L^28_c L^28_d[D_{tx,a,c,d}=max(E_{tx,a,c,d}+C_{a},0);];",
        "",
    ),
    "grouped convolution": (
        "input A f32[4,12,30,30]; param W f32[24,3,3,3]; output D f32[4,24,28,28]",
        "B^4_tx L^24_a L^28_c L^28_d L^3_f L^3_g L^3_h[D_{tx,a,c,d}=D_{tx,a,c,d}+"
        "A_{tx,a//6*3+f,c+g,d+h}*W_{a,f,g,h};];",
        "",
    ),
    "padded maximum pooling": (
        "input A f32[4,8,33,33]; output D f32[4,8,17,17]",
        "B^4_tx L^8_a L^17_c L^17_d L^3_f L^3_g[D_{tx,a,c,d}=max(D_{tx,a,c,d},"
        "if_then_else(1<=c*2+f<34&1<=d*2+g<34,A_{tx,a,c*2+f-1,d*2+g-1},-inf));];",
        "",
    ),
    "tile that does not divide, bound to blocks and threads": (
        "input A f32[1000,77]; output D f32[1000,77]",
        "B^8_bx B^128_tx L^20_a L^4_c[D_{bx*128+tx,a*4+c}=exp(A_{bx*128+tx,a*4+c})"
        ":bx*128+tx<1000&a*4+c<77;];",
        "",
    ),
    "layout change through one flat loop": (
        "input A f32[12,20,30]; output D f32[30,12,20]",
        "B^7200_bx[D_{bx%30,bx//600,bx//30%20}=A_{bx//600,bx//30%20,bx%30};];",
        "",
    ),
    "reshape of a product": (
        "input A f32[6,35]; output D f32[10,21]",
        "L^6_a L^35_c[D_{(a*35+c)//21,(a*35+c)%21}=A_{a,c};];",
        "",
    ),
    "split loop": (
        "input A f32[64,48]; output D f32[64]",
        "L^16_a L^4_c L^12_d L^4_f[D_{a*4+c}=D_{a*4+c}+A_{a*4+c,d*4+f};];",
        "",
    ),
    "concatenation along an axis": (
        "input A f32[8,20]; input C f32[8,12]; output D f32[8,32]",
        "B^8_tx L^20_c[D_{tx,c}=A_{tx,c};];B^8_tx L^12_c[D_{tx,c+20}=C_{tx,c};];",
        "",
    ),
    "tiled product through shared memory with a cooperative copy and a tail": (
        "input A f32[100,50]; param C f32[50,70]; output D f32[100,70]",
        "B^7_by B^5_bx[B^16_ty B^16_tx[X=0;];L^4_c[B^16_ty B^16_tx["
        "S_{ty,tx}=if_then_else(by*16+ty<100&c*16+tx<50,A_{by*16+ty,c*16+tx},0);"
        "Q_{ty,tx}=if_then_else(c*16+ty<50&bx*16+tx<70,C_{c*16+ty,bx*16+tx},0);];"
        "B^16_ty B^16_tx L^16_d[X=X+S_{ty,d}*Q_{d,tx};];];"
        "B^16_ty B^16_tx[D_{by*16+ty,bx*16+tx}=X:by*16+ty<100&bx*16+tx<70;];];",
        "X f32 l; S f32 s; Q f32 s",
    ),
    "attention with a causal mask, one nest, rolling state": (
        "input Q f32[2,64,16]; input K f32[2,64,16]; input W f32[2,64,16]; output O f32[2,64,16]",
        "B^2_bx B^64_tx[M=-inf;R=0;L^16_d[G_{d}=0;];L^64_c[S=0;L^16_f[S=S+Q_{bx,tx,f}*K_{bx,c,f};];"
        "J=if_then_else(c<=tx,S*0.25,-inf);N=max(M,J);C=if_then_else(M==-inf,0,exp(M-N));"
        "E=if_then_else(J==-inf,0,exp(J-N));R=R*C+E;L^16_d[G_{d}=G_{d}*C+E*W_{bx,c,d};];M=N;];"
        "L^16_d[O_{bx,tx,d}=G_{d}/R;];];",
        "M f32 l; R f32 l; G f32 l; S f32 l; J f32 l; N f32 l; C f32 l; E f32 l",
    ),
    "layer normalisation with block reductions": (
        "input A f32[64,256]; param W f32[256]; output D f32[64,256]",
        "B^64_bx[B^256_tx[S=S+A_{bx,tx};];B^256_tx[R=R+(A_{bx,tx}-S/256)**2;];"
        "B^256_tx[D_{bx,tx}=(A_{bx,tx}-S/256)/sqrt(R/256+1e-5)*W_{tx};];];",
        "S f32 s; R f32 s",
    ),
    "prefix sum over rows": (
        "input A f32[16,100]; output D f32[16,100]",
        "B^16_tx L^100_c[D_{tx,c}=if_then_else(c-1<0,0,D_{tx,c-1})+A_{tx,c};];",
        "",
    ),
    "embedding and scatter into an initialised histogram": (
        "input A f32[50,8]; input Y i64[30] in 0..49; output D f32[30,8]; output H f32[50]",
        "L^50_a[H_{a}=0;];L^30_a[H_{Y_{a}}=H_{Y_{a}}+1;];L^30_a L^8_c[D_{a,c}=A_{Y_{a},c};];",
        "",
    ),
    "indirect read behind its own range check": (
        "input A f32[50]; input Y i64[30]; output D f32[30]",
        "L^30_a[D_{a}=if_then_else(0<=Y_{a}&Y_{a}<50,A_{Y_{a}},0);];",
        "",
    ),
    "table of tables": (
        "input A f32[40]; output D f32[10]",
        "L^10_a[I_{a}=a*2;];L^20_a[J_{a}=39-a*2;];L^10_a[D_{a}=A_{J_{I_{a}}};];",
        "I i64 g; J i32 g",
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_programs_of_real_size_are_accepted(name: str) -> None:
    assert check(signed(*REAL[name])) == ()


def test_one_element_too_far_is_found_in_programs_of_real_size() -> None:
    for name, old, new, kind in (
        ("convolution with padding, stride and dilation", "<58&", "<59&", "out-of-bounds"),
        ("padded maximum pooling", "1<=c*2", "0<=c*2", "out-of-bounds"),
        ("layout change through one flat loop", "B^7200", "B^7199", "output-not-covered"),
        ("reshape of a product", "L^6_a L^35_c[D", "L^6_a L^34_c[D", "output-not-covered"),
        ("tile that does not divide, bound to blocks and threads", "<77", "<76", "output-not-c"),
        ("split loop", "A_{a*4+c", "A_{a*4+c+1", "out-of-bounds"),
        ("prefix sum over rows", "c-1<0", "c-1<-1", "out-of-bounds"),
        ("table of tables", "J_{a}=39", "J_{a}=41", "out-of-bounds"),
        ("concatenation along an axis", "D_{tx,c+20}", "D_{tx,c+19}", "output-not-covered"),
        (
            "tiled product through shared memory with a cooperative copy and a tail",
            "c*16+tx<50,A",
            "c*16+tx<51,A",
            "out-of-bounds",
        ),
    ):
        header, short, temps = REAL[name]
        assert old in short, name
        found = kinds(header, short.replace(old, new), temps)
        assert any(k.startswith(kind) for k in found), (name, found)


def test_violations_carry_path_position_found_and_required() -> None:
    text = (
        "# input A f32[4]\n# output D f32[4]\n"
        "L^{4}_{a=0}[D^{f32,g}_{a}=1;D^{f32,g}_{a}=A^{f32,g}_{a+1};];\n"
    )
    (violation,) = check(read(text).signed)
    assert violation.kind == "out-of-bounds"
    assert violation.path == (0, 1)
    body = text.split("\n", 2)[2]
    position = violation.pos
    assert position >= 0
    assert text[position:].startswith("A^{f32,g}_{a+1}") or body[position:].startswith(
        "A^{f32,g}_{a+1}"
    )
    assert violation.found == "values from 1 to 4"
    assert violation.required == "0 .. 3"
    assert "a+1" in violation.message


def test_all_independent_violations_come_in_text_order() -> None:
    found = check(
        signed(
            "input A f32[4]; output D f32[4]; output E f32[4]",
            "L^4_a[D_{a}=A_{a+1};];P^4_a[F=A_{a};D_{a}=F;];V^3_a[E_{a}=A_{a};];",
        )
    )
    assert [v.kind for v in found] == [
        "out-of-bounds",
        "loop-conflict",
        "vector-width",
        "output-not-covered",
    ]
    assert [v.path for v in found] == sorted(v.path for v in found)


def test_the_result_does_not_depend_on_earlier_questions() -> None:
    header, short, temps = REAL["padded maximum pooling"]
    first = check(signed(header, short, temps))
    for other in INVALID:
        check(other.signed)
    assert check(signed(header, short, temps)) == first


def test_threads_do_not_talk_across_a_serial_loop() -> None:
    header = "input A f32[2,4]; output D f32[2,4]"
    bad = (
        "B^2_bx[B^4_tx[S_{0,tx}=A_{bx,tx};];L^3_c[B^4_tx[S_{c+1,tx}=S_{c,3-tx};];];"
        "B^4_tx[D_{bx,tx}=S_{3,tx};];];"
    )
    assert kinds(header, bad, "S f32 s") == ["thread-communication"]
    good = (
        "B^2_bx[B^4_tx[S_{0,tx}=A_{bx,tx};];L^3_c[B^4_tx[R_{tx}=S_{c,tx};];"
        "B^4_tx[S_{c+1,tx}=R_{3-tx};];];B^4_tx[D_{bx,tx}=S_{3,tx};];];"
    )
    assert kinds(header, good, "S f32 s; R f32 s") == []


def test_block_reductions_leave_the_axis_out_of_the_subscript() -> None:
    header = "input A f32[4]; output D f32[1]"
    assert kinds(header, "B^4_tx[D_{0}=D_{0}+A_{tx};];") == []
    assert kinds(header, "B^4_tx[D_{tx//4}=D_{tx//4}+A_{tx};];") == ["loop-conflict"]
    assert kinds(header, "L^4_a[D_{a//4}=D_{a//4}+A_{a};];") == []


def test_blocks_do_not_talk_across_a_serial_loop_inside_a_launch() -> None:
    header = "input A f32[2,4]; output D f32[3,4]"
    inside = "B^2_bx L^3_c B^4_by[D_{c,by}=if_then_else(c==0,A_{bx,by},D_{c-1,3-by}):bx==0;];"
    assert kinds(header, inside) == ["cross-block"]
    outside = "L^3_c B^4_by[D_{c,by}=if_then_else(c==0,A_{0,by},D_{c-1,3-by});];"
    assert kinds(header, outside) == []


def test_what_cannot_be_decided_is_no_silent_yes() -> None:
    header = "input A f32[50]; input Y i64[30]; input X i64[30] in 0..49; output D f32[30]"
    assert kinds(header, "L^30_a[D_{a}=A_{Y_{a}};];") == ["undecided"]
    assert kinds(header, "L^30_a[D_{a}=A_{X_{a}+1};];") == ["out-of-bounds"]
    assert kinds(header, "L^30_a[D_{a}=1:A_{a}>0;];") == ["undecided"]
    out = "input A f32[30]; input X i64[30] in 0..29; output D f32[30]"
    assert kinds(out, "L^30_a[D_{a}=0;];P^30_a[D_{X_{a}}=A_{a};];") == ["undecided"]
    assert kinds(out, "L^30_a[D_{X_{a}}=A_{a};];") == ["undecided"]
    assert kinds(out, "L^30_a[D_{a}=0;];L^30_a[D_{X_{a}}=A_{a};];") == []


def test_narrow_tables_wrap_and_are_not_followed() -> None:
    header = "input A f32[400]; output D f32[200]"
    wide = "L^200_a[Q_{a}=a*2;];L^200_a[D_{a}=A_{Q_{a}};];"
    assert kinds(header, wide, "Q i64 g") == []
    assert kinds(header, wide, "Q i8 g") != []
    product = "L^200_a[Q_{a}=a//2;];L^200_a[D_{a}=A_{Q_{a}*2};];"
    assert kinds(header, product, "Q i64 g") == []
    assert kinds(header, product, "Q i8 g") != []


def test_a_table_that_is_not_written_everywhere_is_not_trusted() -> None:
    header = "input A f32[400]; output D f32[200]"
    short = "L^100_a[Q_{a}=a;];L^200_a[D_{a}=A_{Q_{a}};];"
    assert "out-of-bounds" in kinds(header, short, "Q i64 g")


def test_a_query_over_the_operation_limit_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    header, short, temps = REAL["reshape of a product"]
    monkeypatch.setattr(sets, "MAX_OPERATIONS", 10)
    nest_memory.forget()
    assert kinds(header, short, temps) == ["undecided"]
    nest_memory.forget()


@pytest.mark.parametrize(
    "value",
    [
        "A_{a" + "+0" * 195 + "}",
        "A_{a}" + "+A_{a}" * 190,
        "if_then_else(a<4" + "&a<4" * 190 + ",1,2)",
        "if_then_else(min(a,1)" + "+min(a,2)" * 90 + "<500,A_{a},0)",
        "if_then_else(a<3," * 90 + "1" + ",0)" * 90,
        "exp(" * 95 + "A_{a}" + ")" * 95,
    ],
)
def test_large_expressions_are_checked_without_trouble(value: str) -> None:
    assert kinds("input A f32[4]; output D f32[4]", f"L^4_a[D_{{a}}={value};];") == []


def test_tables_of_tables_do_not_grow_without_bound() -> None:
    names = "CEFGHIJKMNORSWXYZ"
    short, before = "L^64_a[Q_{a}=a//2+a%2;];", "Q"
    for name in names:
        short += f"L^64_a[{name}_{{a}}={before}_{{a}}//2+{before}_{{a}}%3;];"
        before = name
    short += f"L^4_a[D_{{a}}=A_{{{before}_{{a}}%4}};];"
    temps = "; ".join(f"{name} i64 g" for name in "Q" + names)
    assert kinds("input A f32[4]; output D f32[4]", short, temps) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("6//a", ["integer-division-by-zero"]),
        ("6%(a-2)", ["integer-division-by-zero"]),
        ("6//(a+1)", []),
        ("6//(a*2-3)", []),
        ("if_then_else(a>0,6//a,0)", []),
        ("if_then_else(a!=2,6%(a-2),0)", []),
        ("6//0", ["integer-division-by-zero"]),
        ("A_{a}//2.0", []),
    ],
)
def test_integer_divisions_by_indices(value: str, expected: list[str]) -> None:
    header = "input A f32[4]; output D f32[4]"
    assert kinds(header, f"L^4_a[D_{{a}}={value};];") == expected


def test_is_valid_agrees() -> None:
    assert is_valid(VALID[0].signed)
    assert not is_valid(INVALID[0].signed)


def test_violations_are_plain_values() -> None:
    case = INVALID[0]
    assert check(case.signed) == check(read(case.text).signed)
    assert all(isinstance(v, Violation) and v.required for v in check(case.signed))
