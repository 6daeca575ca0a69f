"""Inputs and modules of the battery: small, deterministic, with zeros, ties and negatives."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

#: A function or module, and the inputs to call it with.
Case = tuple[Callable[..., object], tuple[Tensor, ...]]


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def real(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers to two binary digits: f32, some zero, some equal."""
    return (torch.randn(shape, generator=_generator(seed + sum(shape))) * 4).round() / 4


def positive(*shape: int, seed: int = 0) -> Tensor:
    """Numbers from 1/8 on."""
    return real(*shape, seed=seed).abs() + 0.125


def unit(*shape: int, seed: int = 0) -> Tensor:
    """Numbers strictly between 0 and 1."""
    return torch.rand(shape, generator=_generator(seed + sum(shape))) * 0.75 + 0.125


def whole(high: int, *shape: int, low: int = 0, dtype: torch.dtype = torch.int64) -> Tensor:
    """Integers of ``low .. high-1``."""
    return torch.randint(low, high, shape, generator=_generator(high + sum(shape))).to(dtype)


def truth(*shape: int, seed: int = 0) -> Tensor:
    """Bools, both kinds."""
    return torch.rand(shape, generator=_generator(seed + sum(shape))) < 0.5


def seeded(make: Callable[..., nn.Module], *arguments: object, **named: object) -> nn.Module:
    """A module in evaluation mode whose parameters and running statistics are all different."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module = make(*arguments, **named).eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(torch.randn(parameter.shape) * 0.5)
            for name, buffer in module.named_buffers():
                if name.endswith("running_mean"):
                    buffer.copy_(torch.randn(buffer.shape))
                if name.endswith("running_var"):
                    buffer.copy_(torch.rand(buffer.shape) + 0.5)
    return module
