"""Exact arithmetic against arithmetic by hand, and against the interpreter."""

from fractions import Fraction
from math import inf, isnan

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.verify.mutation.bases import by_hand
from steptp_dagster.verify.mutation.data import rationals
from steptp_dagster.verify.mutation.exact import NotExact, evaluate, is_rational

VECTOR = "# input A f32[4]\n# output D f32[4]\n"
DATA = [Fraction(1, 3), Fraction(-2), Fraction(0), Fraction(7, 2)]


def elementwise(value: str) -> SignedProgram:
    text = value.replace("A", "A^{f32,g}_{a}")
    return read(f"{VECTOR}L^{{4}}_{{a=0}}[D^{{f32,g}}_{{a}}={text};];").signed


def result(value: str) -> list[Fraction | int | float]:
    found = evaluate(elementwise(value), {"A": DATA})["D"]
    return [found[i,] for i in range(4)]


def test_nothing_is_rounded() -> None:
    assert result("A*0.1+1/3") == [x / 10 + Fraction(1, 3) for x in DATA]
    assert result("A**3-A") == [x**3 - x for x in DATA]
    assert result("A//2") == [x // 2 for x in DATA]
    assert result("abs(A)+a%3") == [abs(x) + i % 3 for i, x in enumerate(DATA)]
    assert result("round(A*3)+floor(A)-ceil(A)") == [1 + 0 - 1, -6 - 2 + 2, 0, 10 + 3 - 4]


def test_poles_and_infinities() -> None:
    assert result("1/A") == [3, Fraction(-1, 2), inf, Fraction(2, 7)]
    assert isnan(result("A/A")[2])
    assert result("max(-inf,min(A,inf))") == DATA
    assert result("1/(A+inf)") == [0, 0, 0, 0]
    assert result("if_then_else(0<=A<1&a!=1|A==-2,1,0-inf)") == [1, 1, 1, -inf]


def test_what_is_not_rational_is_refused() -> None:
    for value in ("exp(A)", "sqrt(A)", "A**0.5"):
        assert not is_rational(elementwise(value))
        with pytest.raises(NotExact):
            evaluate(elementwise(value), {"A": DATA})


def test_agreement_with_the_interpreter_on_all_rational_forms() -> None:
    compared = 0
    for base in by_hand()[::2]:
        if not is_rational(base.form):
            continue
        compared += 1
        exact = rationals(base.original.signature, 5)
        arrays = {
            v.name: np.array([float(x) for x in exact[v.name]]).reshape(v.shape)
            for v in base.original.signature.sources
        }
        run = interpret(base.form, arrays, precision="float64", dynamic=False)
        for name, cells in evaluate(base.form, exact).items():
            for key, value in cells.items():
                assert float(value) == pytest.approx(float(run.outputs[name][key]), abs=1e-12)
            assert len(cells) == run.outputs[name].size
        assert evaluate(base.form, exact) == evaluate(base.original, exact)
    assert compared >= 8
