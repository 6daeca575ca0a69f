"""Ways in which modules take inputs, hold parameters and give outputs."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, integers, network, normal


@network("parameter-list")
def parameter_list() -> Case:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList(torch.randn(3, 3) for _ in range(3))
            self.named = nn.ParameterDict({"a": torch.randn(3), "b": torch.randn(3)})

        def forward(self, x: Tensor) -> Tensor:
            for weight in self.weights:
                x = torch.tanh(x @ weight + self.named["a"])
            return x * self.named["b"]

    return Listed(), (normal(2, 3),)


@network("shared-layer")
def shared() -> Case:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.again = self.layer
            self.decoder = nn.Linear(3, 3, bias=False)
            self.decoder.weight = self.layer.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.decoder(self.again(torch.relu(self.layer(x))))

    return Shared(), (normal(2, 3),)


@network("dict-output")
def dict_output() -> Case:
    class Named(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Any]:
            return {"total": x.sum(), "parts": (x * 2, [x + 1]), "nothing": None}

    return Named(), (normal(2, 3),)


class Pair(NamedTuple):
    mean: Tensor
    spread: Tensor


@network("named-tuple-output")
def tuple_output() -> Case:
    class Statistics(nn.Module):
        def forward(self, x: Tensor) -> Pair:
            return Pair(x.mean(0), x.std(0))

    return Statistics(), (normal(3, 4),)


@network("dict-input")
def dict_input() -> Case:
    class Batch(nn.Module):
        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return batch["x"] * batch["scale"]

    return Batch(), ({"x": normal(2, 3), "scale": normal(3)},)


@network("list-input")
def list_input() -> Case:
    class Joined(nn.Module):
        def forward(self, parts: list[Tensor]) -> Tensor:
            return torch.cat(parts, dim=0) * 2

    return Joined(), ([normal(2, 3), normal(1, 3)],)


@network("number-inputs")
def numbers() -> Case:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, factor: float, power: int, negative: bool) -> Tensor:
            y = factor * x**power
            return -y if negative else y

    return Scaled(), (normal(2, 3), 0.5, 2, True)


@network("none-input")
def none_input() -> Case:
    class Maybe(nn.Module):
        def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
            return x * 2 if bias is None else x + bias

    return Maybe(), (normal(2, 3), None)


@network("scalar-tensor-input")
def scalar_tensor() -> Case:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, factor: Tensor) -> Tensor:
            return x * factor

    return Scaled(), (normal(2, 3), torch.tensor(0.5))


@network("number-output")
def number_output() -> Case:
    class Sized(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            return x * 2, x.shape[0]

    return Sized(), (normal(2, 3),)


@network("integer-and-bool-inputs")
def integer_inputs() -> Case:
    class Mixed(nn.Module):
        def forward(self, x: Tensor, n: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = torch.where(mask, x, x * n)
            return y, n + 1, mask & (n > 1)

    return Mixed(), (normal(2, 3), integers(4, 2, 3), integers(2, 3).bool())


@network("constants-in-code")
def constants() -> Case:
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.plain = torch.linspace(0, 1, 3)

        def forward(self, x: Tensor) -> Tensor:
            return x * torch.tensor([1.0, -2.0, 0.5]) + self.plain + torch.eye(2, 3)

    return Fixed(), (normal(2, 3),)


@network("in-place-and-slices")
def in_place() -> Case:
    class Assigned(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = torch.zeros_like(x)
            y[:, 0] = x[:, -1]
            y[:, 1:] += x[:, :-1] * 2
            y[0].mul_(3)
            y[y < 0] = 0.25
            return y

    return Assigned(), (normal(3, 4),)


@network("input-mutation-free-copy")
def copied() -> Case:
    class Copied(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x.clone()
            y.clamp_(-1, 1).exp_()
            return functional.normalize(y, p=1, dim=-1)

    return Copied(), (normal(3, 4),)


@network("nested-modules-and-hooks-free")
def nested() -> Case:
    inner = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Sequential(nn.Linear(3, 3), nn.Tanh())})

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Tensor:
            for name in sorted(self.inner):
                x = self.inner[name](x)
            return x

    return Outer(), (normal(2, 3),)


@network("keyword-only-defaults")
def keywords() -> Case:
    class Keyed(nn.Module):
        def forward(self, x: Tensor, *, scale: float = 2.0, shift: Tensor | None = None) -> Tensor:
            return x * scale if shift is None else x * scale + shift

    return Keyed(), (normal(2, 3),)


@network("many-constants")
def many_constants() -> Case:
    class Masked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            t = x.shape[-1]
            mask = torch.full((t, t), float("-inf"))
            mask = torch.triu(mask, diagonal=1)
            return (x + mask).softmax(-1) + nn.Transformer.generate_square_subsequent_mask(t).exp()

    return Masked(), (normal(4, 4),)


@network("half-inside")
def half() -> Case:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(x.float()).to(x.dtype) * x.new_ones(4)

    return Half(), (normal(2, 4),)
