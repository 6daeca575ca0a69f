"""Every source program, in every precision: valid, readable back, faithful by two evaluators."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.bench_translate import Clock, shape_of
from benchmarks.bench_translate import run as run_all
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import run
from steptp_dagster.sources.base import Source
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.translate.fidelity import fidelity
from tests.support.translation import faithful, translated

CORE = (
    "Matmul3D",
    "softmax",
    "LogSoftmax",
    "GELU",
    "LayerNorm",
    "Max_Pooling_2D",
    "conv_standard_2D__square_input__square_kernel",
    "MinGPTCausalAttention",
)


def by_tvm(
    signed: SignedProgram, arrays: Mapping[str, NDArray[Any]]
) -> Mapping[str, NDArray[np.generic]]:
    return run(signed, arrays, precision="float64")


def smallest(source: Source) -> Mapping[str, int]:
    """The cheapest of a few samples."""
    return min(source.sample(random.Random(source.program), 6), key=source.work)


@pytest.mark.parametrize("program", SOURCES)
def test_program(program: str) -> None:
    """In one precision and a small shape; all of them and more shapes in the slow test."""
    source = SOURCES[program]
    dtype = source.dtypes[len(program) % len(source.dtypes)]
    built = source.build(smallest(source), dtype)
    inputs = built.example(0)
    translation = faithful(built.module, inputs, built.ranges)
    assert check_limits(translation.signed) == ()
    if program in ("softmax", "MinGPTCausalAttention"):  # compiling takes seconds
        assert fidelity(built.module, inputs, translation, by_tvm).faithful


@pytest.mark.parametrize("program", ["MinGPTCausalAttention", "Matmul_with_transposed_both"])
def test_naive_form(program: str) -> None:
    source = SOURCES[program]
    assert run_all(source, smallest(source), "f32", "naive", Clock()) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["composed", "naive"])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("program", SOURCES)
def test_program_by_two_evaluators(program: str, dtype: str, form: str) -> None:
    """On all kinds of data, in both precisions, at one kind of shape each."""
    source = SOURCES[program]
    turn = ("f16", "f32", "f64").index(dtype) + len(program) + len(form)
    kind = ("default", "sibling", "ones")[turn % 3]
    shape = shape_of(source, kind, 1)
    assert run_all(source, shape, dtype, form, Clock(), screened=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("program", SOURCES)
def test_large_shape(program: str) -> None:
    source = SOURCES[program]
    (shape,) = source.sample(random.Random(program), 1, "large")
    built = source.build(shape, "f32")
    translation = translated(built.module, built.blank(), built.ranges)
    assert check_limits(translation.signed) == ()


@pytest.mark.parametrize("program", CORE)
def test_extents_of_one(program: str) -> None:
    """Every extent that may be 1 is 1 at once."""
    source = SOURCES[program]
    shape = {
        name: max(1, pool[0]) if name in source.structure else 1
        for name, pool in source.pools.items()
    }
    if program == "Max_Pooling_2D":
        shape |= {"kernel": 2}
    built = source.build(shape)
    faithful(built.module, built.example(0), built.ranges)
