"""All ways to compile a program give the same bits: optimised or not, alone, together, by TVM."""

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import compile_programs, executed_equations
from steptp_dagster.lowering.default_pipeline import run_by_default
from steptp_dagster.lowering.precision import Precision, in_precision
from steptp_dagster.verify.compare import same_bits
from steptp_dagster.verify.families import FAMILIES, inputs
from steptp_dagster.verify.zoo import originals

PROGRAMS = {
    name: getattr(originals, name)
    for name in ("MATMUL_HALF", "SOFTMAX", "LAYERNORM", "ATTENTION", "QUANTISE", "REVERSE", "GELU")
}


def program(name: str) -> SignedProgram:
    return read(PROGRAMS[name]).signed


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("precision", ["working", "float64"])
def test_tvms_own_pipeline_agrees(name: str, precision: Precision) -> None:
    signed = program(name)
    kernel = compile_programs([signed], precision)[0]
    for family in (FAMILIES[0], FAMILIES[2]):
        data = inputs(signed.signature, family, 0)
        found = kernel.run(data)
        again = run_by_default(signed, data, precision)
        assert all(same_bits(found[n], again[n]) for n in found)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_optimising_changes_no_bit(name: str) -> None:
    signed = program(name)
    kernels = [compile_programs([signed], level=level)[0] for level in (0, 1)]
    assert kernels[0] is not kernels[1]
    for family in FAMILIES:
        plain, optimised = (k.run(inputs(signed.signature, family, 5)) for k in kernels)
        assert all(same_bits(plain[n], optimised[n]) for n in plain)


def test_equal_programs_are_compiled_once() -> None:
    first, second = program("SOFTMAX"), program("SOFTMAX")
    kernels = compile_programs([first, second, first])
    assert kernels[0] is kernels[1] is kernels[2]
    assert compile_programs([second])[0] is kernels[0]
    assert compile_programs([second], "float64")[0] is not kernels[0]


def test_precision_changes_floats_only() -> None:
    signed = read(
        "# input A i8[2]\n# const K f16[] = 0.1\n# output D f16[2]\n"
        "L^{2}_{a=0}[D^{f16,g}_{a}=A^{i8,g}_{a}*K^{f16,g};];"
    ).signed
    double = in_precision(signed, "float64")
    assert [v.dtype for v in double.signature.variables] == ["i8", "f64", "f64"]
    assert double.signature.by_name["K"].values == (float(np.float16(0.1)),)
    assert in_precision(signed, "working") is signed


def test_executed_equations_counts_instances() -> None:
    assert executed_equations(program("LAYERNORM")) == 3 * 40


def test_constants_that_differ_in_the_sign_of_zero_are_told_apart() -> None:
    text = "# const K f32[] = {}0.0\n# output D f32[1]\n"
    text += "L^{{1}}_{{a=0}}[D^{{f32,g}}_{{a}}=1/K^{{f32,g}};];"
    plus, minus = (read(text.format(sign)).signed for sign in ("", "-"))
    assert [k.run({})["D"][0] for k in compile_programs([plus, minus])] == [np.inf, -np.inf]
