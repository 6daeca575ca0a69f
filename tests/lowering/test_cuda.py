"""CUDA kernels run on the CPU, fibre by fibre, against the llvm target."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import run
from steptp_dagster.lowering.cuda.lower import lower
from steptp_dagster.lowering.cuda.program import Geometry, HostLoop, Launch
from steptp_dagster.lowering.precision import Precision
from steptp_dagster.lowering.unlowerable import Unlowerable
from tests.support.corpus import VALID
from tests.support.cuda_emulator import COMPILER, close, emulate
from tests.support.programs import random_inputs, random_program

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no g++ to emulate CUDA with")
#: Binary64 on both sides differs by the order of nothing; working precision by `expf` and friends.
TOLERANCES: dict[Precision, float] = {"float64": 1e-12, "working": 1e-2}


def agree(programs: Sequence[SignedProgram], folder: Path, precision: Precision) -> None:
    for program, emulated in zip(programs, emulate(programs, folder, precision), strict=True):
        inputs = random_inputs(program, 0)
        wanted = run(program, inputs, precision)
        for backwards in (False, True):
            found = emulated.run(inputs, backwards=backwards)
            for name, value in wanted.items():
                assert close(value, found[name], TOLERANCES[precision]), (program, name)


@needs_compiler
@pytest.mark.parametrize("precision", TOLERANCES)
def test_the_corpus_computes_the_same(tmp_path: Path, precision: Precision) -> None:
    agree([case.signed for case in VALID], tmp_path, precision)


@needs_compiler
def test_random_programs_compute_the_same(tmp_path: Path) -> None:
    agree([random_program(seed) for seed in range(25)], tmp_path, "float64")


@needs_compiler
@pytest.mark.slow
def test_many_random_programs_compute_the_same(tmp_path: Path) -> None:
    agree([random_program(seed) for seed in range(1000, 1400)], tmp_path, "float64")


def signed(text: str) -> SignedProgram:
    program = read(text).signed
    assert check(program) == ()
    return program


TWO_TEAMS = """# input A f32[6]
# output D f32[4]
B^{2}_{bx=0}[
  B^{6}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{tx}*2;];
  B^{2}_{tx=0}[D^{f32,g}_{bx*2+tx}=S^{f32,s}_{tx+4};];];
"""


def test_sibling_thread_loops_share_one_launch_with_a_barrier() -> None:
    program = lower(signed(TWO_TEAMS))
    (kernel,) = program.kernels
    assert kernel.geometry == Geometry((2, 1, 1), (6, 1, 1))
    assert kernel.barriers == program.source.count("__syncthreads();") == 1
    assert kernel.shared_bytes == 24
    assert "__shared__" in program.source
    assert "threadIdx.x)) < (int64_t)2" in program.source


def test_a_barrier_ends_a_loop_around_threads_that_meet() -> None:
    text = """# input A f32[3,4]
# output D f32[3,4]
B^{1}_{bx=0}[L^{3}_{a=0}[
  B^{4}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{a,tx};];
  B^{4}_{tx=0}[D^{f32,g}_{a,tx}=S^{f32,s}_{3-tx};];];];
"""
    (kernel,) = lower(signed(text)).kernels
    assert kernel.barriers == 2


def test_threads_that_keep_to_themselves_need_no_barrier() -> None:
    text = """# input A f32[8,4]
# output D f32[8]
B^{8}_{tx=0}[C^{f32,l}=0;L^{4}_{a=0}[C^{f32,l}=C^{f32,l}+A^{f32,g}_{tx,a};];D^{f32,g}_{tx}=C^{f32,l};];
"""
    (kernel,) = lower(signed(text)).kernels
    assert kernel.barriers == 0
    assert kernel.shared_bytes == 0


def test_a_serial_loop_around_bound_ones_is_the_hosts() -> None:
    text = """# input A f32[3,4]
# output D f32[4]
L^{3}_{a=0}B^{4}_{tx=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{a,tx};];
"""
    program = lower(signed(text))
    first, loop = program.schedule
    assert isinstance(first, Launch)
    assert isinstance(loop, HostLoop)
    assert (loop.index, loop.start, loop.extent) == ("a", 0, 3)
    (launch,) = loop.body
    assert isinstance(launch, Launch)
    assert launch.kernel.indices == ("a",)
    assert len(program.kernels) == 2


def test_too_much_shared_memory_is_refused_in_words() -> None:
    text = """# input A f64[8192]
# output D f64[]
B^{1}_{bx=0}[
  B^{1}_{tx=0}L^{8192}_{a=0}[S^{f64,s}_{a}=A^{f64,g}_{a};];
  B^{1}_{tx=0}L^{8192}_{c=0}[D^{f64,g}=D^{f64,g}+S^{f64,s}_{c};];];
"""
    with pytest.raises(Unlowerable, match="65536 bytes of shared memory, more than 49152"):
        lower(signed(text))
