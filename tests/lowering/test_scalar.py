"""Scalar operations and conversions of the lowering, against exact arithmetic in Python."""

import math
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from steptp_dagster.leir.fileform import read
from steptp_dagster.lowering import run
from steptp_dagster.lowering.storage import NUMPY

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate(expression: str, target: str, **inputs: tuple[str, Array]) -> Array:
    """``D = expression`` for all elements; inputs by name with their LEIR dtypes."""
    size = len(next(iter(inputs.values()))[1])
    header = "".join(f"# input {n} {t}[{size}]\n" for n, (t, _) in inputs.items())
    text = expression
    for name, (dtype, _) in inputs.items():
        text = text.replace(name, f"{name}^{{{dtype},g}}_{{a}}")
    header += f"# output D {target}[{size}]\n"
    program = f"{header}L^{{{size}}}_{{a=0}}[D^{{{target},g}}_{{a}}={text};];"
    return run(read(program).signed, {n: v for n, (_, v) in inputs.items()})["D"]


def wrapped(value: int, dtype: str) -> int:
    info = np.iinfo(NUMPY[dtype])
    return (value - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "i32", "i64"])
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_integer_arithmetic_wraps(dtype: str, op: str) -> None:
    info = np.iinfo(NUMPY[dtype])
    rng = np.random.default_rng(1)
    extremes = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1], NUMPY[dtype])
    random = rng.integers(info.min, info.max, 40, dtype=NUMPY[dtype], endpoint=True)
    left = np.concatenate([extremes, extremes[::-1], random])
    right = np.concatenate([extremes, extremes, random[::-1]])
    found = evaluate(f"A{op}C", dtype, A=(dtype, left), C=(dtype, right))
    exact = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[op]
    wanted = [wrapped(exact(int(a), int(c)), dtype) for a, c in zip(left, right, strict=True)]
    assert found.tolist() == wanted


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64"])
def test_floor_division_of_integers(dtype: str) -> None:
    info = np.iinfo(NUMPY[dtype])
    signs = [7, -7, 3, -3, 0, int(info.min), int(info.max), 1, -1]
    values = [v for v in signs if info.min <= v <= info.max]
    pairs = [(a, c) for a in values for c in values]
    left, right = (np.array(side, NUMPY[dtype]) for side in zip(*pairs, strict=True))
    quotient = evaluate("A//C", dtype, A=(dtype, left), C=(dtype, right))
    remainder = evaluate("A%C", dtype, A=(dtype, left), C=(dtype, right))
    assert quotient.tolist() == [wrapped(a // c, dtype) if c else 0 for a, c in pairs]
    assert remainder.tolist() == [wrapped(a % c, dtype) if c else 0 for a, c in pairs]


def test_integer_power() -> None:
    values = np.array([-3, 2, 5, 0], np.int32)
    for exponent in (0, 1, 2, 3, 7, 31):
        found = evaluate(f"A**{exponent}", "i32", A=("i32", values))
        assert found.tolist() == [wrapped(int(v) ** exponent, "i32") for v in values]


def test_multiplication_and_addition_round_twice() -> None:
    rng = np.random.default_rng(2)
    a, c, f = (rng.standard_normal(4096).astype(np.float32) for _ in range(3))
    found = evaluate("A*C+F", "f32", A=("f32", a), C=("f32", c), F=("f32", f))
    assert np.array_equal(found, a * c + f)
    fused = (a.astype(np.float64) * c + f).astype(np.float32)
    assert not np.array_equal(found, fused), "the data does not tell the two apart"


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_narrow_stores_round_once(source: str, target: str) -> None:
    rng = np.random.default_rng(3)
    narrow = rng.standard_normal(500).astype(NUMPY[target])
    upper = np.nextafter(narrow, np.array(np.inf, NUMPY[target])).astype(np.float64)
    middle = (narrow.astype(np.float64) + upper) / 2
    nudged = np.concatenate([middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40)])
    special = np.array([0.0, -0.0, np.inf, -np.inf, 65519.0, 65520.0, 1e-8, -1e-8, 1e300, 1e-40])
    with np.errstate(over="ignore"):
        values = np.concatenate([nudged, special, [np.nan]]).astype(NUMPY[source])
        exact = values.astype(np.float64)
    found = evaluate("A", target, A=(source, values)).astype(np.float64)
    wanted = np.array([_narrowed(float(v), target) for v in exact])
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(found[:-1]), np.signbit(wanted[:-1]))


def _narrowed(value: float, dtype: str) -> float:
    """Correct rounding to a narrow float, by exact rational arithmetic."""
    if not math.isfinite(value) or value == 0.0:
        return value
    precision, lowest, limit = {"f16": (11, -24, 2.0**16), "bf16": (8, -133, 2.0**128)}[dtype]
    quantum = max(math.frexp(value)[1] - precision, lowest)
    rounded = math.ldexp(round(math.ldexp(value, -quantum)), quantum)
    return math.copysign(math.inf if abs(rounded) >= limit else rounded, value)


def test_bfloat16_reads_exactly() -> None:
    values = np.random.default_rng(4).standard_normal(100).astype(bfloat16)
    found = evaluate("A", "f32", A=("bf16", values))
    assert np.array_equal(found, values.astype(np.float32))


@pytest.mark.parametrize("target", ["i8", "u8", "i32", "i64"])
def test_floats_truncate_and_what_does_not_fit_saturates(target: str) -> None:
    info = np.iinfo(NUMPY[target])
    ends = [float(info.max), float(info.min), float(info.max) + 1.0, float(info.min) - 0.5]
    ordinary = [1.9, -1.9, 0.5, -0.5, 300.7, 1e30, -1e30, np.nan, np.inf, -np.inf]
    values = np.array([*ordinary, *ends])
    found = evaluate("A", target, A=("f64", values))
    wanted = []
    for value in values:
        whole = 0 if np.isnan(value) else max(min(value, 2.0**80), -(2.0**80))
        wanted.append(max(min(int(whole), int(info.max)), int(info.min)))
    assert found.tolist() == wanted


def test_negation_flips_every_sign() -> None:
    values = np.array([0.0, -0.0, 1.5, -np.inf], np.float32)
    found = evaluate("-A", "f32", A=("f32", values))
    assert np.array_equal(np.signbit(found), ~np.signbit(values))
    assert evaluate("-A", "i8", A=("i8", np.array([-128, 5], np.int8))).tolist() == [-128, -5]


def test_comparisons_with_nan() -> None:
    values = np.array([np.nan, 1.0], np.float32)
    for op, wanted in (("<", False), ("<=", False), (">", False), (">=", False), ("==", False)):
        assert evaluate(f"A{op}A", "bool", A=("f32", values))[0] == wanted
    assert evaluate("A!=A", "bool", A=("f32", values)).tolist() == [True, False]


def test_maximum_and_minimum_let_nan_through() -> None:
    a = np.array([np.nan, 1.0, 2.0], np.float32)
    c = np.array([1.0, np.nan, 3.0], np.float32)
    for function, last in (("max", 3.0), ("min", 2.0)):
        found = evaluate(f"{function}(A,C)", "f32", A=("f32", a), C=("f32", c))
        assert np.isnan(found[:2]).all()
        assert found[2] == last


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "erf", "tanh", "sin", "cos"])
def test_functions_are_the_binary64_result_rounded_once(name: str) -> None:
    values = np.linspace(0.01, 6.0, 200).astype(np.float32)
    exact = [getattr(math, name)(float(v)) for v in values]
    assert np.array_equal(
        evaluate(f"{name}(A)", "f32", A=("f32", values)), np.array(exact).astype(np.float32)
    )
    double = evaluate(f"{name}(A)", "f64", A=("f64", values.astype(np.float64)))
    assert np.max(np.abs(double - exact) / np.abs(exact)) < 4e-16


def test_roundings_are_to_even_and_keep_the_sign_of_zero() -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -0.2, 0.0, -0.0, 1e30], np.float32)
    for name, reference in (("round", np.round), ("floor", np.floor), ("ceil", np.ceil)):
        found = evaluate(f"{name}(A)", "f32", A=("f32", values))
        assert np.array_equal(found, reference(values))
        assert np.array_equal(np.signbit(found), np.signbit(reference(values)))


def test_division_by_zero_is_ieee() -> None:
    a = np.array([1.0, -1.0, 0.0, 1.0], np.float32)
    c = np.array([0.0, 0.0, 0.0, -0.0], np.float32)
    found = evaluate("A/C", "f32", A=("f32", a), C=("f32", c))
    assert found[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(found[2])
    assert found[3] == -np.inf


def test_branches_are_lazy_through_nested_conditions() -> None:
    text = """\
# input A f32[4]
# output D f32[16]
L^{16}_{a=0}[D^{f32,g}_{a}=if_then_else(4<=a&a<8|a==15,if_then_else(a<8,A^{f32,g}_{a-4},7),if_then_else(a<4,A^{f32,g}_{a},-1));];
"""
    values = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    found = run(read(text).signed, {"A": values})["D"]
    assert found.tolist() == [1, 2, 3, 4, 1, 2, 3, 4, -1, -1, -1, -1, -1, -1, -1, 7]


def test_untaken_reads_far_outside_memory_do_not_happen() -> None:
    text = """\
# input A f32[4]
# output D f32[3]
L^{3}_{a=0}[D^{f32,g}_{a}=if_then_else(a<0,A^{f32,g}_{a*1000000000000},2);];
"""
    assert run(read(text).signed, {"A": np.zeros(4, np.float32)})["D"].tolist() == [2, 2, 2]


def test_literals_beyond_a_type_become_infinite() -> None:
    values = np.array([1.0], np.float32)
    assert evaluate("A*1e39", "f32", A=("f32", values))[0] == np.inf
    assert evaluate("-A*inf", "f32", A=("f32", values))[0] == -np.inf


def test_deep_expressions_stay_linear() -> None:
    deep = "A"
    for level in range(60):
        deep = f"max(min({deep},{level}),A-{level})" if level % 2 else f"({deep}+A-1)"
    ints = np.array([3, -2], np.int64)
    assert evaluate(deep, "i64", A=("i64", ints)).shape == (2,)
    floats = np.array([3.0, -2.0], np.float32)
    assert evaluate(deep, "f32", A=("f32", floats)).tolist() == [
        float(v) for v in evaluate(deep, "i64", A=("i64", ints))
    ]
