"""Inferred shapes."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.shapes import infer_shapes
from tests.support.corpus import long_form

HEADER = "input A f32[8]; input Y i64[8] in 0..5; output D f32[8]"


def shape(short: str, temps: str = "", name: str = "K") -> tuple[int, ...]:
    return infer_shapes(read(long_form(HEADER, short, temps)).signed)[name]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("L^8_a[K=0;];", ()),
        ("L^8_a[K_{a}=0;];", (8,)),
        ("L^8_a[K_{7-a}=0;];", (8,)),
        ("L^8_a L^3_c[K_{a*3+c,c}=0;];", (24, 3)),
        ("L^8_a[K_{a//3,a%3}=0;];", (3, 3)),
        ("L^8_a[K_{a%5}=0;];", (5,)),
        ("L^3_a[K_{a%5}=0;];", (3,)),
        ("L^3_a L^4_c[K_{a*4+c}=0:a*4+c<10;];", (10,)),
        ("L^3_a L^4_c[K_{(a*4+c)//3}=0:a*4+c<10;];", (4,)),
        ("L^8_a[K_{a}=0:a<3|a==5;];", (6,)),
        ("L^8_a[K_{a}=0:a*a<9;];", (8,)),
        ("L^8_a L^8_c[K_{a+c}=0:a+c*2<8;];", (8,)),
        ("L^8_a L^8_c[K_{a-c}=0:c<=a;];", (8,)),
        ("L^8_a L^8_c[K_{a-c}=0:c*2<=a&a+c<9;];", (8,)),
        ("L^8_a[K_{a}=0;];L^2_a[K_{a+10}=0;];", (12,)),
        ("L^8_a[K_{a}=0:a>7;];", (1,)),
        ("L^{4}_{a=2}[K_{a}=0;];", (6,)),
        ("L^8_a[K_{Y_{a}}=0;];", (6,)),
        ("L^8_a L^4_c[K_{a*2+c%2}=0:a%3==1;];", (16,)),
        ("L^8_a L^4_c[K_{a*2+c%2}=0:a%3==0;];", (14,)),
    ],
)
def test_intermediates(program: str, expected: tuple[int, ...]) -> None:
    assert shape(program) == expected


def test_known_variables_keep_their_shapes() -> None:
    program = read(long_form(HEADER, "L^3_a[D_{a}=A_{a};];")).signed
    assert infer_shapes(program) == {"A": (8,), "D": (8,), "Y": (8,)}


def test_private_tensors_have_local_shapes() -> None:
    short = "B^4_bx B^2_tx L^3_a[K_{a}=0;S_{tx}=0;];"
    assert shape(short, "K f32 l; S f32 s") == (3,)
    assert shape(short, "K f32 l; S f32 s", "S") == (2,)


def test_reads_do_not_enlarge_a_tensor() -> None:
    assert shape("L^4_a[K_{a}=0;];L^8_a[D_{a}=K_{a};];") == (4,)
