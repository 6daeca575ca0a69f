"""Loop strategies together: a split comes back, and a matrix product is tuned step by step."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs

PRODUCT = read("""
# input A f32[8,12]
# input C f32[12,16]
# output D f32[8,16]
L^{8}_{a=0}L^{16}_{c=0}L^{12}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
""").signed


def _step(program: SignedProgram, name: str, parameters: str) -> SignedProgram:
    chosen = strategy(name)
    sites = [s for s in chosen.survey(program).sites if s.describe().endswith(parameters)]
    assert len(sites) == 1, [s.describe() for s in chosen.survey(program).sites]
    step = take(chosen, program, sites[0])
    assert isinstance(step, Step), step
    assert_equal_outputs(program, step.after, random_inputs(program, 0), step.numerics)
    return step.after


def test_a_matrix_product_is_split_bound_reordered_unrolled_and_vectorised() -> None:
    program = PRODUCT
    for name, parameters in (
        ("loop_split", ": factor=4, inner=L, loop=a, outer=L, tail=exact"),
        ("loop_binding", ": axis=bx, loop=f"),
        ("loop_binding", ": axis=tx, loop=a"),
        ("loop_reorder", ": first=c, second=d"),
        ("loop_split", ": factor=4, inner=L, loop=d, outer=L, tail=exact"),
        ("loop_split", ": factor=4, inner=L, loop=c, outer=L, tail=exact"),
        ("loop_vectorization", ": loop=c"),
        ("loop_unrolling", ": loop=d"),
    ):
        program = _step(program, name, parameters)
    assert_equal_outputs(PRODUCT, program, random_inputs(PRODUCT, 1), "exact")
    assert [loop.kind for loop in program.program.nests[0].loops] == list("BBLULV")


@pytest.mark.parametrize(("factor", "tail"), [(2, "exact"), (4, "exact"), (8, "exact")])
def test_fusion_takes_a_split_back(factor: int, tail: str) -> None:
    split = _step(
        PRODUCT, "loop_split", f": factor={factor}, inner=L, loop=c, outer=L, tail={tail}"
    )
    assert _step(split, "loop_fusion", ": as=L, inner=c, outer=f") == PRODUCT


@pytest.mark.parametrize("factor", [8, 3])
def test_fusion_takes_a_split_with_a_tail_back(factor: int) -> None:
    program = read("""
# input A f32[3,11]
# output D f32[3,11]
L^{3}_{a=0}L^{11}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}+1:a<2;D^{f32,g}_{a,c}=0:a>=2;];
""").signed
    split = _step(program, "loop_split", f": factor={factor}, inner=L, loop=c, outer=L, tail=guard")
    assert _step(split, "loop_fusion", ": as=L, inner=c, outer=d") == program


def test_tiles_are_splits_and_an_exchange() -> None:
    tiled = _step(PRODUCT, "loop_tiling", ": first=c, height=4, second=d, width=4")
    program = PRODUCT
    for name, parameters in (
        ("loop_split", ": factor=4, inner=L, loop=c, outer=L, tail=exact"),
        ("loop_split", ": factor=4, inner=L, loop=d, outer=L, tail=exact"),
        ("loop_reorder", ": first=c, second=g"),
    ):
        program = _step(program, name, parameters)
    assert to_text(program.program) == to_text(tiled.program)


def test_an_exchange_is_its_own_inverse() -> None:
    swapped = _step(PRODUCT, "loop_reorder", ": first=a, second=d")
    assert swapped != PRODUCT
    assert _step(swapped, "loop_reorder", ": first=d, second=a") == PRODUCT
