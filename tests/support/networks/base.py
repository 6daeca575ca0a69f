"""The battery of networks: name -> builder of a module with inputs, seeded and small."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

Case = tuple[nn.Module, tuple[Any, ...]]
#: Every network of the battery by name; ``built`` makes one.
NETWORKS: Final[dict[str, Callable[[], Case]]] = {}


def network(name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Register a builder."""

    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        assert name not in NETWORKS, name
        NETWORKS[name] = make
        return make

    return register


def built(name: str) -> Case:
    """The network in evaluation mode, its parameters and statistics away from 0 and 1."""
    torch.manual_seed(len(name))
    module, inputs = NETWORKS[name]()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.running_mean.uniform_(-0.2, 0.2)
            layer.running_var.uniform_(0.5, 1.5)
        if isinstance(layer, nn.BatchNorm2d | nn.LayerNorm | nn.GroupNorm):
            for value, low, high in ((layer.weight, 0.5, 1.5), (layer.bias, -0.2, 0.2)):
                if value is not None:
                    nn.init.uniform_(value, low, high)
    return module.eval(), inputs


def normal(*shape: int) -> Tensor:
    """Standard normal numbers, some of them equal and some zero."""
    x = torch.randn(shape)
    return torch.where(x.abs() < 0.1, torch.zeros(()), (x * 64).round() / 64)


def integers(high: int, *shape: int) -> Tensor:
    """Integers 0 .. high - 1."""
    return torch.randint(high, shape)
