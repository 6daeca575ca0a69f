"""Whole networks and public modules: translated and right, or refused with a reason."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.lowering import run
from steptp_dagster.translate.fidelity import fidelity
from steptp_dagster.translate.translate import Translation, TranslationRefusal, translate
from tests.support.networks import NETWORKS, built

#: What has no translation, and the operator that says so.
REFUSED = {
    "rope-complex": "input",
    "moe-topk": "aten.topk.default",
    "s4d-fft": "aten._fft_r2c.default",
}
SAMPLE = (
    "resnet-basic-block",
    "mingpt-block",
    "gqa-kv-cache-rope",
    "lstm-bidirectional",
    "lstm-projected",
    "rnn-relu",
    "mamba2-ssd",
    "interpolate-bicubic-5x8",
    "spatial-transformer",
    "max-unpool",
    "t5-relative-bias",
    "lstm-state-attributes",
    "dict-output",
)
#: Iterations up to which the interpreter is the faster judge.
INTERPRETED = 150_000


def by_tvm(signed: SignedProgram, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    return run(signed, arrays, precision="float64")


def right(name: str) -> Translation:
    """The translation of a network: valid, readable back, within limits, and what PyTorch does."""
    module, inputs = built(name)
    result = translate(module, inputs)
    assert isinstance(result, Translation), str(result)
    text = to_text(result.signed.program)
    assert parse(text).program == result.signed.program
    assert check(result.signed) == ()
    assert check_limits(result.signed) == ()
    evaluator = None if cost(result.signed).iterations < INTERPRETED else by_tvm
    found = fidelity(module, inputs, result, evaluator)
    assert found.faithful, str(found)
    return result


@pytest.mark.parametrize("name", SAMPLE)
def test_network(name: str) -> None:
    right(name)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_network(name: str) -> None:
    module, inputs = built(name)
    result = translate(module, inputs)
    assert isinstance(result, TranslationRefusal)
    assert result.operator == REFUSED[name]
    assert result.message


# PyTorch says of an encoder whose batch comes second that a faster path is not taken.
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but:UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NETWORKS if n not in (*SAMPLE, *REFUSED)])
def test_every_network(name: str) -> None:
    right(name)


def test_recurrent_layers_are_loops_over_time() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(64, 128, 3, batch_first=True, bidirectional=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.lstm(x)[0]

    def translated(length: int) -> Translation:
        result = translate(Layer().eval(), (torch.zeros(8, length, 64),))
        assert isinstance(result, Translation)
        return result

    short, long = translated(3), translated(512)
    assert len(short.signed.program.nests) == len(long.signed.program.nests)
    assert "L^{512}_{a=0}[B^{8}_{tx=0}" in to_text(long.signed.program)


def test_many_parts_are_read_together() -> None:
    """More parts than isl would decide: a stack of every step of a loop, read by what follows."""

    class Steps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            states = []
            for _ in range(40):
                x = x * 1.01
                states.append(x)
            return torch.stack(states, 1).sum(1)

    inputs = (torch.ones(2, 3),)
    result = translate(Steps(), inputs)
    assert isinstance(result, Translation), str(result)
    assert fidelity(Steps(), inputs, result).faithful


SCALES: tuple[tuple[int | tuple[int, ...], dict[str, Any]], ...] = (
    (4, {"scale_factor": 1.05, "mode": "nearest"}),
    (4, {"scale_factor": 1.05, "mode": "linear"}),
    (4, {"scale_factor": 1.6, "mode": "linear"}),
    (4, {"scale_factor": 1.6, "mode": "linear", "recompute_scale_factor": True}),
    (7, {"scale_factor": 0.3, "mode": "nearest-exact"}),
    (10, {"scale_factor": 0.7, "mode": "nearest"}),
    (1, {"size": 3, "mode": "linear", "align_corners": True}),
    (5, {"size": 1, "mode": "linear", "align_corners": True}),
    (5, {"size": 1, "mode": "linear"}),
    (49, {"size": 61, "mode": "nearest"}),
    ((4, 8), {"scale_factor": 1.05, "mode": "bicubic"}),
    ((4, 8), {"scale_factor": (1.05, 1.3), "mode": "bilinear"}),
    ((4, 3), {"scale_factor": (1.05, 1.3), "mode": "bicubic"}),
)


def test_odd_scales() -> None:
    class Resized(nn.Module):
        def forward(self, *inputs: Tensor) -> list[Tensor]:
            return [
                nn.functional.interpolate(x * 2, **options)
                for x, (_, options) in zip(inputs, SCALES, strict=True)
            ]

    sides = [(size,) if isinstance(size, int) else size for size, _ in SCALES]
    torch.manual_seed(0)
    inputs = tuple(torch.randn((1, 1, *side)) for side in sides)
    result = translate(Resized(), inputs)
    assert isinstance(result, Translation), str(result)
    assert fidelity(Resized(), inputs, result).faithful


def test_odd_factors_are_refused() -> None:
    class Resized(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.interpolate(x, scale_factor=1.2345678, mode="linear")

    result = translate(Resized(), (torch.ones(1, 1, 40),))
    assert isinstance(result, TranslationRefusal)
    assert result.argument == "scale_factors"
    assert "a size" in result.message
