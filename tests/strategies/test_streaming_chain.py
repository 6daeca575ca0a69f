"""From naive attention to one pass: each step accepts what the one before leaves."""

import numpy as np
import pytest

from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take
from tests.support.numerics import assert_equal_outputs
from tests.support.programs import random_inputs

MAXIMUM = "normal_loop_max_to_prefix_max"
SUM = "normal_loop_summation_on_exp_to_prefix_summation_on_exp"
FLASH = "flashattention_wo_tiling"
#: Strategies and, where there are several sites, the tensor that the site names.
CHAIN = (
    (MAXIMUM, None),
    (SUM, None),
    ("compute_inline", "M"),
    ("compute_inline", "Z"),
)
NAIVE = """
# input Q f32[2,3,2]
# input K f32[2,5,2]
# input X f32[2,5,3]
# output O f32[2,3,3]
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}L^{2}_{d=0}[
  S^{f32,g}_{tx,a,c}=S^{f32,g}_{tx,a,c}+Q^{f32,g}_{tx,a,d}*K^{f32,g}_{tx,c,d};];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[M^{f32,g}_{tx,a}=max(M^{f32,g}_{tx,a},S^{f32,g}_{tx,a,c});];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[
  Z^{f32,g}_{tx,a}=Z^{f32,g}_{tx,a}+exp(S^{f32,g}_{tx,a,c}-M^{f32,g}_{tx,a});];
B^{2}_{tx=0}L^{3}_{a=0}L^{5}_{c=0}[
  W^{f32,g}_{tx,a,c}=exp(S^{f32,g}_{tx,a,c}-M^{f32,g}_{tx,a})/Z^{f32,g}_{tx,a};];
B^{2}_{tx=0}L^{3}_{a=0}L^{3}_{d=0}L^{5}_{c=0}[
  O^{f32,g}_{tx,a,d}=O^{f32,g}_{tx,a,d}+W^{f32,g}_{tx,a,c}*X^{f32,g}_{tx,c,d};];
"""
MASKED = """
# input S f32[2,4]
# input X f32[4,3]
# output O f32[2,3]
B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
B^{2}_{tx=0}L^{4}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
B^{2}_{tx=0}L^{4}_{a=0}[W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};];
B^{2}_{tx=0}L^{3}_{c=0}L^{4}_{a=0}[
  O^{f32,g}_{tx,c}=O^{f32,g}_{tx,c}+W^{f32,g}_{tx,a}*X^{f32,g}_{a,c};];
"""


def _taken(program: SignedProgram, name: str, tensor: str | None) -> Step:
    chosen = strategy(name)
    sites = [s for s in chosen.survey(program).sites if s.named.get("tensor") == tensor]
    assert len(sites) == 1
    step = take(chosen, program, sites[0])
    assert isinstance(step, Step)
    return step


def _stages(program: SignedProgram) -> list[SignedProgram]:
    stages = [program]
    for name, tensor in CHAIN:
        stages.append(_taken(stages[-1], name, tensor).after)
    return stages


@pytest.mark.parametrize("text", [NAIVE, MASKED])
def test_each_stage_leads_to_one_pass(text: str) -> None:
    stages = _stages(read(text).signed)
    inputs = random_inputs(stages[0], 0)
    passes = set()
    for stage in stages:
        assert_equal_outputs(stages[0], stage, inputs, "reassociated")
        flash = _taken(stage, FLASH, None)
        assert_equal_outputs(stages[0], flash.after, inputs, "reassociated")
        passes.add(structural_hash(flash.after))
    assert len(passes) == 1


def test_rows_may_start_with_minus_infinity() -> None:
    stages = _stages(read(MASKED).signed)
    stages += [_taken(stage, FLASH, None).after for stage in stages]
    scores = np.array([[-np.inf, -np.inf, 0.5, 2.0], [-np.inf, 1.0, -np.inf, 3.0]], np.float32)
    inputs = {"S": scores, "X": np.arange(12, dtype=np.float32).reshape(4, 3)}
    expected = np.exp(scores - scores.max(1, keepdims=True))
    expected = expected / expected.sum(1, keepdims=True) @ inputs["X"]
    for stage in stages:
        found = interpret(stage, inputs).outputs["O"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
