"""Records in other languages than LEIR."""

import re

import pytest

from steptp_dagster.dataset.renderings import rendering

HEADER = "# input A f32[8,6]\n# output D f32[8]\n"
SUM = "B^{8}_{tx=0}L^{6}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];"


def test_tir_is_tvm_s_script_of_the_loops() -> None:
    text = rendering(HEADER, SUM, "tir")
    assert text is not None
    assert text.startswith("@T.prim_func")
    assert 'T.Buffer((8, 6), "float32")' in text
    assert re.search(r"for a in range\(6\)", text)
    assert "threadIdx.x" in text


def test_cuda_is_one_kernel_a_nest() -> None:
    text = rendering(HEADER, SUM, "cuda")
    assert text is not None
    assert text.count("__global__") == 1
    assert "for (" in text


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="no language 'ptx'"):
        rendering(HEADER, SUM, "ptx")
