"""Addresses, strides and alignment of accesses, against the addresses themselves."""

import itertools

import pytest

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import FloorDiv, Form, Modulo
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.strides import address, aligned, stride

HEADER = """
# input A f32[6,8]
# input Y i64[8] in 0..5
# output D f32[6,8]
"""
LOOPS = "L^{6}_{a=0}L^{8}_{c=0}"


def _read(subscripts: str) -> tuple[Use, tuple[int, ...]]:
    text = f"{LOOPS}[D^{{f32,g}}_{{a,c}}=A^{{f32,g}}_{{{subscripts}}};];"
    analysis = Analysis.of(read(HEADER + text).signed)
    use = next(u for u in analysis.accesses.uses if u.tensor == "A")
    return use, analysis.shapes["A"]


@pytest.mark.parametrize(
    ("subscripts", "index", "expected"),
    [
        ("a,c", "c", 1),
        ("a,c", "a", 8),
        ("5-a,c", "a", -8),
        ("a,c//2*2", "a", 8),
        ("a,c//2*2", "c", None),
        ("a,c%4", "c", None),
        ("Y^{i64,g}_{c},c", "c", None),
        ("Y^{i64,g}_{a},c", "c", 1),
        ("0,3", "c", 0),
        ("a,a", "a", 9),
    ],
)
def test_stride(subscripts: str, index: str, expected: int | None) -> None:
    use, shape = _read(subscripts)
    assert stride(use, shape, index) == expected


@pytest.mark.parametrize("subscripts", ["a,c", "5-a,7-c", "c//2,a+1", "a%3,c%4+a"])
def test_address_is_the_row_major_place(subscripts: str) -> None:
    use, shape = _read(subscripts)
    found = address(use, shape)
    first, second = subscripts.split(",")
    for a, c in itertools.product(range(6), range(8)):
        values = {"a": a, "c": c}
        place = eval(first, {}, values) * 8 + eval(second, {}, values)
        assert _value(found, values) == place


def _value(form: Form, values: dict[str, int]) -> int:
    total = form.const
    for atom, factor in form.terms:
        match atom:
            case str():
                value = values[atom]
            case FloorDiv(inner=inner, divisor=divisor):
                value = _value(inner, values) // divisor
            case Modulo(inner=inner, divisor=divisor):
                value = _value(inner, values) % divisor
            case _:
                raise AssertionError(atom)
        total += factor * value
    return total


@pytest.mark.parametrize(
    ("subscripts", "lanes", "expected"),
    [("a,c", 8, True), ("a,c", 16, False), ("a,c+4", 4, True), ("a,c+2", 4, False)],
)
def test_aligned(subscripts: str, lanes: int, expected: bool) -> None:
    use, shape = _read(subscripts)
    assert aligned(use, shape, "c", lanes) == expected
