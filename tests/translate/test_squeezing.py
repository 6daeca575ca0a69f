"""Dimensions that nothing uses: gone from intermediates, kept where a shape is promised."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from steptp_dagster.leir.interpreter import interpret
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.validity import check
from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.translate.squeezing import squeezed
from steptp_dagster.translate.translate import Translation, translate


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # An intermediate of shape [1,4,1] is one of shape [4]; what is known stays.
        (
            "B^{4}_{tx=0}[C^{f32,g}_{0,tx,0}=A^{f32,g}_{0,tx};D^{f32,g}_{tx,0}=C^{f32,g}_{0,tx,0};];",
            "B^{4}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{0,tx};D^{f32,g}_{tx,0}=C^{f32,g}_{tx};];",
        ),
        # One element: a scalar, in subscripts and guards too.
        (
            "B^{1}_{tx=0}[C^{i64,g}_{0}=1;D^{f32,g}_{tx,0}=A^{f32,g}_{0,C^{i64,g}_{0}}:C^{i64,g}_{0}<3;];",
            "B^{1}_{tx=0}[C^{i64,g}=1;D^{f32,g}_{tx,0}=A^{f32,g}_{0,C^{i64,g}}:C^{i64,g}<3;];",
        ),
        # Element 0 of more than one.
        (
            "B^{4}_{tx=0}[C^{f32,g}_{tx,0}=1;];B^{4}_{tx=0}[D^{f32,g}_{tx,0}=C^{f32,g}_{0,0};];",
            "B^{4}_{tx=0}[C^{f32,g}_{tx}=1;];B^{4}_{tx=0}[D^{f32,g}_{tx,0}=C^{f32,g}_{0};];",
        ),
    ],
)
def test_only_what_nothing_uses_goes(before: str, after: str) -> None:
    assert to_text(squeezed(parse(before).program, ("A", "D"))) == after


def test_a_program_without_such_dimensions_is_itself() -> None:
    program = parse("B^{4}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{tx};];").program
    assert squeezed(program, ("A",)).nests[0] is program.nests[0]


class Shifted(nn.Module):
    """Means with the reduced dimensions kept, which is where they come from."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(dim=(0, 2), keepdim=True)).exp()


def test_translations_have_no_such_intermediates_and_keep_their_values() -> None:
    inputs = (torch.randn(2, 3, 4),)
    found = translate(Shifted(), inputs)
    assert isinstance(found, Translation)
    text = to_text(found.signed.program)
    assert "_{0" not in text
    assert ",0" not in text
    run = interpret(found.signed, {"A": inputs[0].numpy()})
    (value,) = run.outputs.values()
    np.testing.assert_allclose(value, Shifted()(*inputs).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["MHA_Gemm", "BMM_InstanceNorm_Sum_ResidualAdd_Multiply"])
def test_outputs_keep_the_shapes_of_the_module(name: str) -> None:
    (shape,) = SOURCES[name].sample(random.Random(0), 1)
    built = SOURCES[name].build(shape, "f64")
    inputs = built.example(0)
    found = translate(built.module, inputs, ranges=built.ranges)
    assert isinstance(found, Translation)
    assert check(found.signed) == ()
    outputs = [v for v in found.signed.signature.variables if v.role == "output"]
    expected = built.module(*inputs)
    told = expected if isinstance(expected, tuple) else (expected,)
    assert [v.shape for v in outputs] == [tuple(t.shape) for t in told]
