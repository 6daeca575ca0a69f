"""Battery: Python around the operators, arguments that are no tensors, less common modules."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

from tests.support.battery.values import Case, positive, real, seeded, truth, whole


class Doubling(torch.autograd.Function):
    """A function with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


class Pair(NamedTuple):
    """Two results by name."""

    first: Tensor
    second: Tensor


class Hooked(nn.Module):
    """A layer with a hook, in a module that counts with a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.layer.register_forward_hook(lambda module, inputs, output: output * 2)
        self.steps = 2

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            x = self.layer(x)
        return x


class Typed(nn.Module):
    """Constants in several precisions, made in the constructor and in the call."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(3, dtype=torch.float64))
        self.scale = math.sqrt(2)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.table.to(x.dtype) * self.scale + torch.tensor(0.5, dtype=x.dtype)


class Nested(nn.Module):
    """Blocks in blocks, skipping by configuration."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.inner = Nested(depth - 1) if depth else None

    def forward(self, x: Tensor) -> Tensor:
        x = x + torch.tanh(self.norm(x))
        return x if self.inner is None else self.inner(x)


def branches(x: Tensor) -> Tensor:
    """Control flow on everything but data."""
    result = x
    if x.dim() == 2 and x.is_floating_point() and not x.requires_grad:
        result = result + 1
    while result.dim() < 4:
        result = result.unsqueeze(0)
    for i in range(x.size(1)):
        result = result * (i + 1) if i % 2 else result - i
    try:
        return result.squeeze(0)
    finally:
        pass


def scan(x: Tensor, decay: Tensor) -> Tensor:
    """A state space in a loop."""
    state = torch.zeros_like(x[:, 0])
    states = []
    for t in range(x.shape[1]):
        state = decay * state + x[:, t]
        states.append(state)
    return torch.stack(states, dim=1)


def sinkhorn(x: Tensor) -> Tensor:
    """Rows and columns normalised in turn."""
    for _ in range(3):
        x = x - x.logsumexp(1, keepdim=True)
        x = x - x.logsumexp(0, keepdim=True)
    return x.exp()


def newton(x: Tensor) -> Tensor:
    """An inverse square root by iteration."""
    y = torch.full_like(x, 0.5)
    for _ in range(4):
        y.mul_(1.5 - 0.5 * x * y * y)
    return y


def patches(x: Tensor) -> Tensor:
    """An image as a sequence of patches."""
    b, c, h, w = x.shape
    tiles = x.unfold(2, 2, 2).unfold(3, 2, 2)
    return tiles.permute(0, 2, 3, 1, 4, 5).reshape(b, (h // 2) * (w // 2), c * 4) + 1


def rotary(x: Tensor) -> Tensor:
    """Rotary embeddings by even and odd channels."""
    angles = torch.arange(x.shape[1])[:, None] * 0.5 ** torch.arange(x.shape[2] // 2)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos())
    return torch.stack(turned, -1).flatten(-2)


def windows(x: Tensor) -> Tensor:
    """Shifted windows of a feature map."""
    b, h, w, c = x.shape
    shifted = torch.roll(x, (-1, -1), (1, 2)).view(b, h // 2, 2, w // 2, 2, c)
    parts = shifted.permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
    return (parts @ parts.transpose(1, 2)).softmax(-1)


ODDITIES: dict[str, Case] = {
    "own-backward": (Doubling.apply, (real(3, 4),)),
    "named-tuple": (lambda x: Pair(x + 1, x.sum()), (real(3, 4),)),
    "hooked": (seeded(Hooked), (real(2, 3),)),
    "typed": (seeded(Typed), (real(2, 3),)),
    "nested": (seeded(Nested, 3), (real(2, 4),)),
    "branches": (branches, (real(2, 3),)),
    "scan": (scan, (real(2, 5, 3), positive(3))),
    "sinkhorn": (sinkhorn, (real(3, 4),)),
    "newton": (newton, (positive(5),)),
    "patches": (patches, (real(1, 2, 4, 6),)),
    "rotary": (rotary, (real(2, 3, 4),)),
    "windows": (windows, (real(1, 4, 4, 3),)),
    "with-no-grad": (torch.no_grad()(lambda x: x * 2), (real(3),)),
    "vmap": (torch.vmap(torch.dot), (real(3, 4), real(3, 4, seed=1))),
    "detach-and-clone": (lambda x: x.detach().clone().contiguous() * x.data, (real(3, 4),)),
    "python-max": (lambda x, y: max(x.shape[0], 2) * torch.maximum(x, y), (real(3), real(3))),
    "math-functions": (lambda x: x * math.pi / math.sqrt(x.shape[-1]), (real(3, 4),)),
    "builtin-sum": (lambda x: sum(x.unbind(0)), (real(3, 4),)),
    "slices-in-loop": (
        lambda x: torch.cat([x[i : i + 2].mean(0, keepdim=True) for i in range(0, 6, 2)]),
        (real(6, 4),),
    ),
    "list-comprehension": (
        lambda x: torch.stack([x[:, i] * i for i in range(x.shape[1])], dim=1),
        (real(3, 4),),
    ),
    "chained-methods": (
        lambda x: x.abs().sqrt().add(1).log().neg().exp().clamp(min=0.1).pow(2).mean(),
        (real(3, 4),),
    ),
    "assert-close": (lambda x: x + float(x.shape[0] == 3), (real(3, 4),)),
    "same-parameter-twice": (
        nn.Sequential(*[seeded(nn.Linear, 3, 3)] * 2),
        (real(2, 3),),
    ),
    "sequential-of-blocks": (
        seeded(
            lambda: nn.Sequential(
                nn.Conv2d(2, 4, 3, padding=1, bias=False),
                nn.BatchNorm2d(4),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Dropout(),
                nn.Linear(16, 3),
                nn.LogSoftmax(1),
            )
        ),
        (real(2, 2, 4, 4),),
    ),
    "depthwise-separable": (
        seeded(
            lambda: nn.Sequential(
                nn.Conv2d(3, 3, 3, padding=1, groups=3), nn.Conv2d(3, 5, 1), nn.ReLU6(True)
            )
        ),
        (real(1, 3, 4, 4),),
    ),
    "unflatten-module": (nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, 6))), (real(2, 3, 4),)),
    "embedding-module": (seeded(nn.Embedding, 7, 4, padding_idx=0), (whole(7, 2, 3),)),
    "embedding-bag-module": (seeded(nn.EmbeddingBag, 7, 4), (whole(7, 2, 3),)),
    "pairwise-module": (nn.PairwiseDistance(1.5), (real(3, 4), real(3, 4, seed=1))),
    "cosine-module": (nn.CosineSimilarity(0), (real(3, 4), real(3, 4, seed=1))),
    "adaptive-softmax": (
        lambda x, t: x.log_softmax(1).gather(1, t[:, None]).squeeze(1),
        (real(4, 5), whole(5, 4)),
    ),
    "mask-by-length": (
        lambda x, n: x * (torch.arange(x.shape[1])[None] < n[:, None]),
        (real(3, 5), whole(5, 3, low=1)),
    ),
    "padding-mask": (
        lambda x, m: x.masked_fill(m[:, None, None], float("-inf")).softmax(-1),
        (real(2, 2, 3, 4), torch.tensor([[False, False, True, True], [False] * 4])),
    ),
    "segment-means": (
        lambda x, s: (fn.one_hot(s, 3).float().T @ x) / fn.one_hot(s, 3).sum(0)[:, None].clamp(1),
        (real(6, 2), whole(3, 6)),
    ),
    "histogram-by-compare": (
        lambda i: (i[None] == torch.arange(5)[:, None]).sum(1),
        (whole(5, 9),),
    ),
    "straight-through": (lambda x: x + (x.round() - x).detach(), (real(9),)),
    "quantise": (lambda x: (x / 0.25).round().clamp(-8, 7) * 0.25, (real(9),)),
    "int8-quantise": (
        lambda x: (x / 0.5).round().clamp(-128, 127).to(torch.int8).float() * 0.5,
        (real(9),),
    ),
    "top-1-gate": (
        lambda x, y: torch.where(x == x.amax(1, keepdim=True), x, 0.0).softmax(1) @ y,
        (real(3, 4), real(4, 2)),
    ),
    "gated": (lambda x, g: torch.lerp(x, x.tanh(), g.sigmoid()), (real(3, 4), real(4))),
    "moving-average": (
        lambda x: fn.avg_pool1d(fn.pad(x[:, None], (2, 0), mode="replicate"), 3, 1)[:, 0],
        (real(2, 6),),
    ),
    "causal-conv": (
        lambda x, w: fn.conv1d(fn.pad(x, (2, 0)), w, groups=3) * x.sigmoid(),
        (real(1, 3, 6), real(3, 1, 3)),
    ),
    "gram": (lambda x: x.flatten(2) @ x.flatten(2).mT / x[0].numel(), (real(1, 3, 2, 2),)),
    "total-variation": (
        lambda x: (x[..., 1:, :] - x[..., :-1, :]).abs().sum() + x.diff(dim=-1).abs().sum(),
        (real(1, 2, 3, 4),),
    ),
    "iou": (
        lambda a, b: (
            (
                torch.minimum(a[:, None, 2:], b[None, :, 2:])
                - torch.maximum(a[:, None, :2], b[None, :, :2])
            )
            .clamp(min=0)
            .prod(-1)
        ),
        (positive(3, 4), positive(2, 4, seed=1)),
    ),
    "pairwise-ranking": (
        lambda s, m: (fn.softplus(s[None] - s[:, None]) * m).sum() / m.sum().clamp(min=1),
        (real(5), truth(5, 5)),
    ),
    "log-mean-exp": (lambda x: x.logsumexp(0) - math.log(x.shape[0]), (real(5, 3),)),
    "entropy": (lambda x: -(x.softmax(1) * x.log_softmax(1)).sum(1), (real(3, 5),)),
    "kl-of-gaussians": (
        lambda m, v: -0.5 * torch.sum(1 + v - m.pow(2) - v.exp(), dim=1).mean(),
        (real(3, 4), real(3, 4, seed=1)),
    ),
    "reparametrised": (
        lambda m, v, e: m + torch.exp(0.5 * v) * e,
        (real(3, 4), real(3, 4, seed=1), real(3, 4, seed=2)),
    ),
}
