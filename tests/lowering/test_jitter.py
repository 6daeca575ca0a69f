"""Jittered programs err by a few units in the last place where arithmetic rounds, only there."""

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import compile_programs
from steptp_dagster.lowering.default_pipeline import run_by_default
from steptp_dagster.verify.compare import EPSILON, same_bits
from steptp_dagster.verify.families import FAMILIES, inputs
from steptp_dagster.verify.zoo import originals

EXACT = (
    "# input A {0}[6,8]\n# output D {0}[6]\n# output E {0}[6,8]\n"
    "L^{{6}}_{{a=0}}L^{{8}}_{{c=0}}[D^{{{0},g}}_{{a}}=max(D^{{{0},g}}_{{a}},A^{{{0},g}}_{{a,c}});];"
    "L^{{6}}_{{a=0}}L^{{8}}_{{c=0}}"
    "[E^{{{0},g}}_{{a,c}}=if_then_else(A^{{{0},g}}_{{a,c}}>0,-abs(A^{{{0},g}}_{{a,c}}),2);];"
)
SUM = (
    "# input A {0}[64,5]\n# output D {0}[64]\n"
    "L^{{64}}_{{a=0}}L^{{5}}_{{c=0}}[D^{{{0},g}}_{{a}}=D^{{{0},g}}_{{a}}+A^{{{0},g}}_{{a,c}};];"
)


def program(text: str, dtype: str) -> SignedProgram:
    return read(text.format(dtype)).signed


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_what_does_not_round_stays(dtype: str) -> None:
    signed = program(EXACT, dtype)
    plain, jittered = (compile_programs([signed], p)[0] for p in ("working", "jittered"))
    data = inputs(signed.signature, FAMILIES[0], 0)
    found = jittered.run(data)
    assert all(same_bits(value, found[name]) for name, value in plain.run(data).items())


def test_conversions_are_no_arithmetic() -> None:
    """Copies to a narrower type round and stay, but for f32 that f16 does not hold."""
    text = (
        "# input A f64[64]\n# output D f32[64]\n# output E f16[64]\n"
        "L^{{64}}_{{a=0}}[D^{{f32,g}}_{{a}}=A^{{f64,g}}_{{a}};E^{{f16,g}}_{{a}}=D^{{f32,g}}_{{a}};];"
    )
    signed = program(text, "")
    plain, jittered = (compile_programs([signed], p)[0] for p in ("working", "jittered"))
    data = {"A": np.random.default_rng(0).standard_normal(64)}
    exact, moved = plain.run(data), jittered.run(data)
    assert same_bits(exact["D"], moved["D"])
    assert not (exact["D"] == data["A"]).any()
    assert 10 < np.count_nonzero(exact["E"] != moved["E"]) < 64


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_sums_of_exact_numbers_err_by_a_few_units_in_both_directions(dtype: str) -> None:
    signed = program(SUM, dtype)
    plain, jittered = (compile_programs([signed], p)[0] for p in ("working", "jittered"))
    data = {"A": np.full((64, 5), 1.25)}
    exact = plain.run(data)["D"].astype(np.float64)
    assert (exact == 6.25).all()
    moved = (jittered.run(data)["D"].astype(np.float64) - exact) / exact / EPSILON[dtype]
    assert moved.max() > 0.4
    assert moved.min() < -0.4
    assert np.abs(moved).max() <= 5
    assert 0.2 < np.mean(moved > 0) < 0.8


@pytest.mark.parametrize("name", ["LAYERNORM", "SOFTMAX", "MATMUL_HALF", "GELU"])
def test_tvms_own_pipeline_jitters_alike(name: str) -> None:
    signed = read(getattr(originals, name)).signed
    data = inputs(signed.signature, FAMILIES[0], 0)
    found = compile_programs([signed], "jittered")[0].run(data)
    again = run_by_default(signed, data, "jittered")
    assert all(same_bits(found[n], again[n]) for n in found)
    plain = compile_programs([signed])[0].run(data)
    assert not all(same_bits(found[n], plain[n]) for n in found)
