"""Programs as people write them for TVM: complete, compilable, and said in TVM's words."""

import numpy as np
import pytest
import tvm

from steptp_dagster.dataset.token_counts import LEIR_FORMS, OTHER_FORMS, RESULTS, row, sample
from steptp_dagster.dataset.tokens import count
from steptp_dagster.leir.fileform import header_text, read
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.printer import to_text
from steptp_dagster.lowering.plain import blocks_function, cuda_source, loops_function, script
from tests.support.corpus_valid import VALID

SOFTMAX = read(
    "# input A f32[5,16]\n# output E f32[5,16]\n"
    "B^{5}_{tx=0}L^{16}_{a=0}[C^{f32,g}_{tx}=max(C^{f32,g}_{tx},A^{f32,g}_{tx,a});];"
    "B^{5}_{tx=0}L^{16}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx});];"
    "B^{5}_{tx=0}L^{16}_{a=0}"
    "[E^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a}-C^{f32,g}_{tx})/D^{f32,g}_{tx};];"
).signed


def test_the_script_of_loops_says_the_program_in_full() -> None:
    text = script(loops_function(SOFTMAX))
    for line in (
        'for tx in T.thread_binding(5, thread="threadIdx.x"):',
        'C[tx] = T.float32("-inf")',
        "C[tx] = T.max(C[tx], A[tx, a])",
        "D[tx] = T.float32(0.0)",
        "D[tx] = D[tx] + T.exp(A[tx, a] - C[tx])",
        "E[tx, a] = T.exp(A[tx, a] - C[tx]) / D[tx]",
    ):
        assert line in text


def test_the_script_of_blocks_has_axes_regions_and_starts() -> None:
    text = script(blocks_function(SOFTMAX))
    assert text.count("with T.sblock(") == 3 + text.count('# with T.sblock("root")')
    for line in (
        'v_tx, v_a = T.axis.remap("SR", [tx, a])',
        "T.reads(A[v_tx, v_a])",
        "T.writes(C[v_tx])",
        "with T.init():",
        'C[v_tx] = T.float32("-inf")',
        "C = T.sblock_alloc_buffer((5,))",
    ):
        assert line in text


def test_the_loops_compute_what_the_program_means() -> None:
    # Never run by the product; here, without threads, to see that nothing is left out.
    text = header_text(SOFTMAX.signature) + to_text(SOFTMAX.program).replace("B^", "L^").replace(
        "tx", "c"
    )
    serial = read(text).signed
    kernel = tvm.compile(loops_function(serial), target="llvm")
    value = np.linspace(-3, 3, 80, dtype="float32").reshape(5, 16)
    arrays = [tvm.runtime.tensor(value)]
    arrays += [tvm.runtime.tensor(np.zeros(s, "float32")) for s in ((5, 16), (5,), (5,))]
    kernel["main"](*arrays)
    expected = interpret(serial, {"A": value}).outputs["E"]
    np.testing.assert_allclose(arrays[1].numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("case", VALID[::12], ids=lambda case: case.name)
def test_scripts_of_all_kinds_of_programs(case: object) -> None:
    signed = read(case.text).signed  # type: ignore[attr-defined]
    for function in (loops_function(signed), blocks_function(signed)):
        assert "@T.prim_func" in script(function)


def test_tvm_makes_a_cuda_file_of_it() -> None:
    source = cuda_source(SOFTMAX)
    assert source.count('extern "C" __global__') == 6  # three declared, three defined
    found = row(
        "0" * 32, header_text(SOFTMAX.signature), to_text(SOFTMAX.program), all_languages=True
    )
    assert found["refusals"] == []
    assert found["leir"] == count(to_text(SOFTMAX.program))
    assert all(found[form] > 0 for form in (*LEIR_FORMS, *OTHER_FORMS))
    assert found["tvm_file"] == count(source) > found["tvm_kernels"]
    assert found["compact"] < 0.6 * found["leir"]
    assert found["leir"] < found["tir_loops"] < found["tir_blocks"]


@pytest.mark.parametrize(
    "nest",
    [
        # What one kernel alone uses is memory that it cannot allocate itself.
        "B^{5}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{tx,0};E^{f32,g}_{tx}=C^{f32,g}_{tx};];",
        # One block: its loop is around the sum, and yet nothing is summed over it.
        "B^{1}_{bx=0}[B^{5}_{tx=0}[C^{f32,s}_{tx}=1;];"
        "B^{5}_{tx=0}L^{16}_{c=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+A^{f32,g}_{tx,c}*C^{f32,s}_{tx};];];",
    ],
    ids=["one kernel's memory", "one block"],
)
def test_tvm_compiles_blocks_of_what_steps_make(nest: str) -> None:
    source = cuda_source(read(f"# input A f32[5,16]\n# output E f32[5]\n{nest}").signed)
    assert source.count('extern "C" __global__') == 2
    assert source.count("E_ptr[((int)threadIdx.x)] =") >= 1


def test_unrolling_without_end_is_refused() -> None:
    text = "U^{300}_{a=0}[D^{f32,g}_{a}=1;];"
    found = row("0" * 32, "# output D f32[300]\n", text, all_languages=True)
    assert found["refusals"] == ["by_tvm: TooManyCopies"]
    assert found["tvm_file"] is None
    assert found["cuda_file"] > 0


def test_only_leir_is_counted_outside_the_sample() -> None:
    found = row(
        "0" * 32, "# output D f32[3]\n", "L^{3}_{a=0}[D^{f32,g}_{a}=1;];", all_languages=False
    )
    assert [name for name, value in found.items() if value is None] == list(OTHER_FORMS)
    ids = [f"{n:032x}" for n in range(200)]
    chosen = sample(ids[150:160], ids)
    assert chosen == {*ids[:RESULTS], *ids[150:160]}
