"""The redundancy screen on modules: toys that are redundant, guards that are not, the library."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.verify.screen import screen
from tests.support.translation import translated
from tests.support.workloads import LEVEL_1, LEVEL_2, REDUNDANT

ROWS, IMAGE = (3, 7), (2, 4, 5, 5)


class Toy(nn.Module):
    """A function of one input with a parameter for rows (``p``) and one for channels (``q``)."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.p = nn.Parameter(torch.randn(7))
        self.q = nn.Parameter(torch.randn(4, 1, 1))
        self.keys = nn.Linear(7, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def _attention(s: Toy, x: Tensor) -> Tensor:
    return torch.softmax(x @ s.keys(x).T, dim=-1) @ x


def _stable(_: Toy, x: Tensor) -> Tensor:
    powers = torch.exp(x - x.amax(1, keepdim=True))
    return powers / powers.sum(1, keepdim=True)


REDUNDANCIES: dict[str, tuple[Callable[[Toy, Tensor], Tensor], tuple[int, ...], str]] = {
    "bias-before-norm": (lambda s, x: functional.instance_norm(x + s.q), IMAGE, "insensitive-to:"),
    "bias-minus-mean": (
        lambda s, x: (x + s.p[0]) - (x + s.p[0]).mean(1, keepdim=True),
        ROWS,
        "insensitive-to:",
    ),
    "bias-of-keys": (_attention, ROWS, "insensitive-to:"),
    "channel-per-group": (
        lambda s, x: functional.group_norm(x + s.q, 4),
        IMAGE,
        "insensitive-to:",
    ),
    "softmax-minus-mean": (
        lambda _, x: torch.softmax(x - x.mean(-1, keepdim=True), -1),
        ROWS,
        "no-effect:",
    ),
    "clamp-of-softmax": (
        lambda _, x: torch.clamp(torch.softmax(x, -1), max=1.0) * x,
        ROWS,
        "no-effect:",
    ),
    "relu-of-squares": (lambda _, x: torch.relu((x * x).sum(1)), ROWS, "no-effect:"),
    "softmax-of-one": (
        lambda _, x: torch.softmax(x.mean(1, keepdim=True), 1) * x,
        ROWS,
        "constant:",
    ),
    "logsumexp-of-one": (
        lambda _, x: torch.logsumexp(x.mean(1, keepdim=True), 1),
        ROWS,
        "no-effect:",
    ),
    "mean-of-softmax": (
        lambda _, x: torch.softmax(x, 1).mean(1, keepdim=True) * x,
        ROWS,
        "constant:",
    ),
    "twice-inverted": (lambda s, x: 1.0 / (1.0 / x) * s.p, ROWS, "no-effect:"),
    "log-of-exp": (lambda _, x: torch.log(torch.exp(x)), ROWS, "output-is:"),
    "added-and-subtracted": (lambda s, x: x + s.p[0] - s.p[0], ROWS, "output-is:"),
    "pool-of-one": (lambda _, x: functional.avg_pool2d(x, 1) * x, IMAGE, "no-effect:"),
}
#: Operators that act on rare data only.
GUARDS: dict[str, Callable[[Toy, Tensor], Tensor]] = {
    "length-not-zero": lambda _, x: x / torch.clamp((x * x).sum(1, keepdim=True).sqrt(), min=1e-6),
    "stable-softmax": _stable,
    "far-limits": lambda _, x: torch.clamp(x, -100.0, 100.0) * x,
    "farther-limits": lambda _, x: torch.exp(torch.clamp(x, max=500.0)) * x,
    "count-not-zero": lambda _, x: (x * (x > 0)).sum(1) / (x > 0).sum(1).clamp(min=1),
    "relu-of-layer": lambda s, x: torch.relu(s.keys(x)),
    "scale-before-norm": lambda s, x: functional.layer_norm(x * s.p, (7,)),
}


@pytest.mark.parametrize("toy", REDUNDANCIES)
def test_redundant_modules_are_found(toy: str) -> None:
    function, shape, reason = REDUNDANCIES[toy]
    module = Toy(function)
    found = screen(translated(module, (torch.randn(shape),)).signed)
    assert any(what.startswith(reason) for what in found), found


@pytest.mark.parametrize("guard", GUARDS)
def test_guards_have_an_effect(guard: str) -> None:
    module = Toy(GUARDS[guard])
    assert screen(translated(module, (torch.randn(ROWS),)).signed) == ()


def _screened(program: str, seed: int) -> tuple[str, ...]:
    source = SOURCES[program]
    (shape,) = source.sample(random.Random(seed), 1)
    built = source.build(shape)
    signed = translated(built.module, built.example(0), built.ranges).signed
    return tuple(sorted({what.split(":")[0] for what in screen(signed)}))


@pytest.mark.parametrize(
    "program",
    [
        "GQA_Gemm_Tanh_sum",
        "Gemm_Sigmoid_Sum_LogSumExp",
        "Conv3d_Max_LogSumExp_ReLU",
        "Gemm_Swish_Divide_Clamp_Tanh_Clamp",
        "Gemm_BatchNorm_GELU_GroupNorm_Mean_ReLU",
        "Gemm_Gemm",
        *REDUNDANT,
    ],
)
def test_programs_of_the_library(program: str) -> None:
    assert _screened(program, 0) == REDUNDANT.get(program, ())


@pytest.mark.slow
@pytest.mark.parametrize("program", [*LEVEL_1, *LEVEL_2])
def test_all_programs_of_the_library(program: str) -> None:
    assert _screened(program, 0) == REDUNDANT.get(program, ())
