"""A matrix product from its translated form to a tiled kernel, step by step, and as CUDA."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import run
from steptp_dagster.lowering.cuda import nvrtc
from steptp_dagster.lowering.cuda.lower import lower
from steptp_dagster.reasoning.check import grounding
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from steptp_dagster.verify.verdict import verify
from tests.support.cuda_emulator import COMPILER, close, emulate
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs


def product(rows: int, inner: int, columns: int) -> SignedProgram:
    """``D = A W`` as the translator writes it."""
    return read(
        f"# input A f32[{rows},{inner}]\n# param W f32[{inner},{columns}]\n"
        f"# output D f32[{rows},{columns}]\n"
        f"B^{{{rows}}}_{{tx=0}}L^{{{columns}}}_{{a=0}}L^{{{inner}}}_{{c=0}}"
        "[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*W^{f32,g}_{c,a};];"
    ).signed


Recipe = Sequence[tuple[str, str]]

#: Blocks of 8 x 8, threads of 1 x 4; both operands in shared memory, the tile in registers.
PANELS: Recipe = (
    ("loop_split", "statement 1: factor=8, inner=tx, loop=tx, outer=bx, tail=exact"),
    ("loop_split", "statement 1: factor=8, inner=L, loop=a, outer=L, tail=exact"),
    ("loop_reorder", "statement 1: first=tx, second=d"),
    ("loop_binding", "statement 1: axis=by, loop=d"),
    ("loop_split", "statement 1: factor=4, inner=L, loop=a, outer=L, tail=exact"),
    ("loop_binding", "statement 1: axis=ty, loop=d"),
    ("loop_reorder", "statement 1: first=a, second=c"),
    ("cache_read_write", "statement 1: direction=read, scope=s, tensor=A, under=byd"),
    ("cache_read_write", "statement 1: direction=read, scope=s, tensor=W, under=byd"),
    ("cache_read_write", "statement 1.3: direction=write, scope=l, tensor=D, under=tyd"),
    ("loop_unrolling", "statement 1.3.2: loop=c"),
    ("loop_vectorization", "statement 1.3.1: loop=a"),
    ("loop_vectorization", "statement 1.3.2: loop=a"),
    ("loop_vectorization", "statement 1.3.3: loop=a"),
)
#: The reduction in tiles of 4, each of which goes through shared memory.
TILES: Recipe = (
    ("loop_split", "statement 1: factor=8, inner=tx, loop=tx, outer=bx, tail=exact"),
    ("loop_split", "statement 1: factor=8, inner=L, loop=a, outer=L, tail=exact"),
    ("loop_reorder", "statement 1: first=tx, second=d"),
    ("loop_binding", "statement 1: axis=by, loop=d"),
    ("loop_binding", "statement 1: axis=ty, loop=a"),
    ("loop_split", "statement 1: factor=4, inner=L, loop=c, outer=L, tail=exact"),
    ("loop_reorder", "statement 1: first=tx, second=a"),
    ("cache_read_write", "statement 1: direction=read, scope=s, tensor=A, under=a"),
    ("cache_read_write", "statement 1: direction=read, scope=s, tensor=W, under=a"),
    ("loop_unrolling", "statement 1.3: loop=c"),
)
#: Extents that no tile divides.
GUARDED: Recipe = (
    ("loop_split", "statement 1: factor=3, inner=tx, loop=tx, outer=bx, tail=guard"),
    ("loop_split", "statement 1: factor=3, inner=L, loop=a, outer=L, tail=guard"),
    ("loop_reorder", "statement 1: first=tx, second=d"),
    ("loop_binding", "statement 1: axis=by, loop=d"),
    ("loop_binding", "statement 1: axis=ty, loop=a"),
    ("loop_split", "statement 1: factor=3, inner=L, loop=c, outer=L, tail=guard"),
    ("loop_reorder", "statement 1: first=tx, second=a"),
    ("cache_read_write", "statement 1: direction=read, scope=s, tensor=A, under=a"),
    ("cache_read_write", "statement 1: direction=read, scope=s, tensor=W, under=a"),
    ("loop_unrolling", "statement 1.3: loop=c"),
)
RECIPES = {
    "panels": (product(16, 16, 16), PANELS),
    "tiles": (product(16, 16, 16), TILES),
    "guarded": (product(7, 11, 5), GUARDED),
}


def taken(name: str) -> list[Step]:
    """The steps of a recipe."""
    program, recipe = RECIPES[name]
    steps = []
    for chosen, place in recipe:
        own = strategy(chosen)
        sites = {site.describe(): site for site in own.survey(program).sites}
        assert place in sites, (chosen, place, list(sites))
        step = take(own, program, sites[place])
        assert isinstance(step, Step), step
        steps.append(step)
        program = step.after
    return steps


@pytest.mark.parametrize("name", RECIPES)
def test_every_step_is_legal_explained_and_accepted(name: str) -> None:
    steps = taken(name)
    assert len(steps) >= 9
    for step in steps:
        assert_equal_outputs(step.before, step.after, random_inputs(step.before, 0), step.numerics)
        own = strategy(step.strategy)
        text = render_text(own, step.site, step.explanation)
        assert not grounding(step.before, step.after, own, step.site, step.explanation, text)
        verdict = verify(step.before, step.after)
        assert verdict.accepted, (step.strategy, verdict.reason)
    composite = verify(steps[0].before, steps[-1].after)
    assert composite.equality == "exact"


@pytest.mark.parametrize("name", RECIPES)
def test_as_cuda_it_uses_shared_memory_and_barriers(name: str) -> None:
    program = lower(taken(name)[-1].after)
    (kernel,) = program.kernels
    assert kernel.shared_bytes > 0
    assert kernel.barriers == program.source.count("__syncthreads();") >= 1
    assert kernel.geometry.threads > 1
    if not nvrtc.available():
        pytest.skip("NVRTC is not installed")
    for architecture in nvrtc.ARCHITECTURES:
        cubin = nvrtc.build(program, architecture)
        (usage,) = cubin.usage
        assert cubin.code[:4] == b"\x7fELF"
        assert usage.shared_bytes >= kernel.shared_bytes
        assert usage.barriers >= 1
        assert usage.spill_stores == usage.spill_loads == 0
        assert 0 < usage.occupancy <= 1


@pytest.mark.skipif(COMPILER is None, reason="no g++ to emulate CUDA with")
def test_as_cuda_it_computes_the_same(tmp_path: Path) -> None:
    programs = [step.after for name in RECIPES for step in taken(name)]
    for program, emulated in zip(programs, emulate(programs, tmp_path, "float64"), strict=True):
        inputs = random_inputs(program, 0)
        wanted = run(program, inputs, "float64")["D"]
        for backwards in (False, True):
            assert close(wanted, emulated.run(inputs, backwards=backwards)["D"], 1e-12)
