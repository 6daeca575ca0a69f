"""Scalar arithmetic of the interpreter against NumPy, and by hand at the edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.leir.interpreter import values


@given(st.floats(allow_nan=False))
def test_f16_rounds_as_numpy_does(x: float) -> None:
    with np.errstate(over="ignore"):
        assert values.rounding("f16")(x) == float(np.float16(x))


@given(st.floats(allow_nan=False))
def test_f32_rounds_as_numpy_does(x: float) -> None:
    with np.errstate(over="ignore"):
        assert values.rounding("f32")(x) == float(np.float32(x))


@given(st.floats(width=32, allow_nan=False))
def test_bf16_rounds_a_single_half_to_even(x: float) -> None:
    bits = int(np.array(x, np.float32).view(np.uint32))
    kept, rest = bits >> 16, bits & 0xFFFF
    kept += rest > 0x8000 or (rest == 0x8000 and kept % 2 == 1)
    expected = float(np.array(kept << 16, np.uint32).view(np.float32))
    assert values.rounding("bf16")(x) == expected


def test_a_double_is_rounded_to_bf16_once() -> None:
    # Just above half way between 1 and 1+2**-7: by way of f32 it would be a tie and go down.
    assert values.rounding("bf16")(1.0 + 2.0**-8 + 2.0**-40) == 1.0 + 2.0**-7


def test_rounding_keeps_the_sign_of_zero() -> None:
    for dtype in ("f16", "bf16", "f32", "f64"):
        assert math.copysign(1.0, values.rounding(dtype)(-0.0)) == -1.0
    for dtype in ("f16", "bf16", "f32"):
        assert math.copysign(1.0, values.rounding(dtype)(-1e-60)) == -1.0


@pytest.mark.parametrize(
    ("dtype", "value", "wrapped"),
    [
        ("i8", 128, -128),
        ("i8", -129, 127),
        ("u8", -1, 255),
        ("u8", 256, 0),
        ("i32", 2**31, -(2**31)),
        ("i64", 2**63, -(2**63)),
        ("i64", -5, -5),
    ],
)
def test_integers_wrap(dtype: str, value: int, wrapped: int) -> None:
    assert values.wrapping(dtype)(value) == wrapped


@given(st.floats(), st.floats())
def test_division_is_ieee(a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.float64(a) / np.float64(b))
    result = values.divide(a, b)
    assert result == expected or (math.isnan(result) and math.isnan(expected))
    if result == 0.0:
        assert math.copysign(1.0, result) == math.copysign(1.0, expected)


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (2.0, 0.5, math.sqrt(2.0)),
        (-2.0, 3.0, -8.0),
        (0.0, -1.0, math.inf),
        (-0.0, -1.0, -math.inf),
        (0.0, -2.0, math.inf),
        (10.0, 400.0, math.inf),
        (-10.0, 401.0, -math.inf),
        (-10.0, 400.0, math.inf),
        (-1e200, 2.0, math.inf),
    ],
)
def test_powers_overflow_to_infinities(base: float, exponent: float, expected: float) -> None:
    assert values.power(base, exponent) == expected


def test_a_root_of_a_negative_number_is_nan() -> None:
    assert math.isnan(values.power(-2.0, 0.5))
    assert math.isnan(values.sqrt(-1.0))
    assert math.isnan(values.log(-1.0))


def test_the_edges_of_functions() -> None:
    assert values.log(0.0) == -math.inf
    assert values.exp(1000.0) == math.inf
    assert values.exp(-math.inf) == 0.0
    functions = values.FLOAT_FUNCTIONS
    assert math.isnan(functions["sin"](math.inf))
    assert functions["floor"](-math.inf) == -math.inf
    assert math.copysign(1.0, functions["ceil"](-0.5)) == -1.0
    assert [functions["round"](x) for x in (0.5, 1.5, 2.5, -2.5)] == [0.0, 2.0, 2.0, -2.0]


def test_nan_wins_in_maximum_and_minimum() -> None:
    for pick in (values.maximum, values.minimum):
        assert math.isnan(pick(math.nan, 1.0))
        assert math.isnan(pick(1.0, math.nan))


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("+", "f32", 0.0),
        ("*", "i32", 1),
        ("max", "f16", -math.inf),
        ("min", "f64", math.inf),
        ("max", "i8", -128),
        ("min", "u8", 255),
        ("max", "bool", False),
        ("min", "bool", True),
    ],
)
def test_identities(op: str, dtype: str, expected: float) -> None:
    assert values.identity(op, dtype) == expected
