"""Battery: what goes in and comes out of modules, and composites of two to six operators."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

from tests.support.battery.values import Case, positive, real, seeded, truth, whole


class Buffers(nn.Module):
    """Buffers: persistent, not persistent, integer, bool, shared, scalar."""

    mask: Tensor
    table: Tensor
    order: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tensor([True, False, True]))
        self.register_buffer("table", torch.tensor([[0.5, -1.0, 2.0]]), persistent=False)
        self.register_buffer("order", torch.tensor([2, 0, 1]))
        self.register_buffer("scale", torch.tensor(1.5))
        self.plain = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(self.mask, x[:, self.order], self.table) * self.scale + self.plain


class Tied(nn.Module):
    """One parameter under two names, used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_parameter("extra", None)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.second(self.first(x))
        return hidden


class Scaled(nn.Module):
    """A scalar parameter, one of extent 1, and an unused one."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(0.5))
        self.bias = nn.Parameter(torch.randn(1, 3, 1))
        self.unused = nn.Parameter(torch.randn(7))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor + self.bias


class Listed(nn.Module):
    """Parameters in lists and dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(3) for _ in range(2)])
        self.named = nn.ParameterDict({"a": torch.randn(3)})
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        for weight, layer in zip(self.weights, self.layers, strict=True):
            x = layer(x * weight)
        total: Tensor = x + self.named["a"]
        return total


class Frozen(nn.Module):
    """A parameter that needs no gradient and a half-precision buffer."""

    narrow: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer("narrow", torch.tensor([0.5, 0.25, 2.0]).half())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.narrow


class Optional(nn.Module):
    """Arguments with defaults, and control flow on shapes."""

    def forward(self, x: Tensor, y: Tensor | None = None, scale: float = 2.0) -> Tensor:
        if y is None:
            y = torch.ones_like(x)
        return x * y * scale if x.shape[0] > 2 else x + y


class Many(nn.Module):
    """Results in every kind of container."""

    def forward(self, x: Tensor) -> dict[str, Any]:
        return {"a": x + 1, "b": [x * 2, (x.sum(), x.T)], "c": {"d": x.argmax()}}


class Stats(nn.Module):
    """Statistics that are detached and measured without gradients."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            mean = x.mean(0)
        return x - mean.detach()


class Checked(nn.Module):
    """Assertions on shapes, and an attribute set while running."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 2
        torch._assert(x.shape[1] == 3, "three columns")  # type: ignore[no-untyped-call]
        self.last = x.shape[0]
        return x * self.last


MODULES: dict[str, Case] = {
    "buffers": (seeded(Buffers), (real(2, 3),)),
    "tied": (seeded(Tied), (real(2, 4),)),
    "scaled": (seeded(Scaled), (real(2, 3, 4),)),
    "listed": (seeded(Listed), (real(2, 3),)),
    "frozen": (seeded(Frozen), (real(2, 3),)),
    "optional": (seeded(Optional), (real(2, 3),)),
    "optional-given": (seeded(Optional), (real(3, 3), real(3, 3, seed=1))),
    "many": (seeded(Many), (real(2, 3),)),
    "stats": (seeded(Stats), (real(4, 3),)),
    "checked": (seeded(Checked), (real(2, 3),)),
    "unused-input": (lambda x, y: x * 2, (real(2, 3), real(4))),
    "unused-int-input": (lambda x, y: x * 2, (real(2, 3), whole(9, 4))),
    "same-input-twice": (lambda x: (x, x), (real(2, 3),)),
    "input-returned": (lambda x, y: (y, x + y, x), (real(2, 3), real(3))),
    "view-returned": (lambda x: (x.T, x[0], x.view(-1)), (real(2, 3),)),
    "same-output-twice": (lambda x: [y for y in (x * 2,) for y in (y, y.T, y)], (real(2, 3),)),
    "parameter-returned": (lambda x: (x, torch.ones(2)), (real(2, 3),)),
    "constant-returned": (lambda x: (x * 2, torch.tensor([1.0, 2.0])), (real(2, 3),)),
    "none-returned": (lambda x: (x * 2, None), (real(2, 3),)),
    "int-returned": (lambda x: (x * 2, x.shape[0]), (real(2, 3),)),
    "scalar-output": (lambda x: x.sum() * 2, (real(2, 3),)),
    "bool-output": (lambda x: x.sum() > 0, (real(2, 3),)),
    "int-output": (lambda x: x.argmax() + 1, (real(2, 3),)),
    "double-input": (lambda x: x.exp().mean(1), (real(2, 3).double(),)),
    "item": (lambda x: x * x.sum().item(), (real(2, 3),)),
    "branch-on-data": (lambda x: x if x.sum() > 0 else -x, (real(2, 3),)),
    "complex": (lambda x: torch.complex(x, x).abs(), (real(2, 3),)),
    "to-list": (lambda x: torch.tensor(x.tolist()), (real(2, 3),)),
    "input-mutated": (lambda x: x.add_(1) * 2, (real(2, 3),)),
    "numpy": (lambda x: torch.from_numpy(x.numpy()) + 1, (real(2, 3),)),
}


class Fused(nn.Module):
    """A convolution or linear layer, then a function of its result."""

    def __init__(self, layer: nn.Module, after: Any) -> None:
        super().__init__()
        self.layer = layer
        self.after = after
        self.shift = nn.Parameter(torch.tensor([0.25]))

    def forward(self, x: Tensor) -> Any:
        return self.after(self.layer(x), self.shift)


def conv(after: Any, **options: Any) -> Case:
    return seeded(lambda: Fused(nn.Conv2d(3, 4, 3, **options), after)), (real(2, 3, 6, 6),)


def conv3(after: Any, **options: Any) -> Case:
    return seeded(lambda: Fused(nn.Conv3d(2, 4, 2, **options), after)), (real(1, 2, 3, 4, 4),)


def transposed(after: Any, **options: Any) -> Case:
    made = seeded(lambda: Fused(nn.ConvTranspose2d(3, 4, 3, **options), after))
    return made, (real(2, 3, 3, 3),)


def transposed3(after: Any, **options: Any) -> Case:
    made = seeded(lambda: Fused(nn.ConvTranspose3d(2, 4, 2, **options), after))
    return made, (real(1, 2, 2, 3, 2),)


def gemm(after: Any, **options: Any) -> Case:
    return seeded(lambda: Fused(nn.Linear(5, 6, **options), after)), (real(4, 5),)


COMPOSITES: dict[str, Case] = {
    "conv-relu-bias": conv(lambda x, s: fn.relu(x) + s.view(1, 1, 1)),
    "conv-min-tanh-tanh": conv(lambda x, s: torch.min(x, 1, keepdim=True)[0].tanh().tanh()),
    "conv-norm-min-clamp": conv3(
        lambda x, s: fn.dropout(
            torch.clamp(torch.min(fn.group_norm(x, 2), torch.tensor(0.5)), 0.0, 1.0), 0.2, False
        )
    ),
    "conv-softmax-pool-pool": conv3(lambda x, s: fn.max_pool3d(x.softmax(1), 2)),
    "conv-mish-mish": conv(lambda x, s: fn.mish(fn.mish(x))),
    "conv-avg-sigmoid-sum": conv(lambda x, s: fn.avg_pool2d(x, 2).sigmoid().sum(dim=[1, 2, 3])),
    "conv-activation-batch": conv(
        lambda x, s: fn.batch_norm(fn.softplus(x).tanh() * x, torch.zeros(4), torch.ones(4))
    ),
    "conv-instance-divide": conv(lambda x, s: fn.instance_norm(x) / 2.0),
    "conv-group-tanh-hardswish-residual": conv(
        lambda x, s: torch.logsumexp(
            x + fn.hardswish(torch.tanh(fn.group_norm(x, 2))), dim=1, keepdim=True
        )
    ),
    "conv-sub-hardswish-pool-mish": conv(
        lambda x, s: fn.mish(fn.max_pool2d(fn.hardswish(x - 0.5), 2))
    ),
    "conv3-max-logsumexp-relu": conv3(
        lambda x, s: torch.relu(torch.logsumexp(fn.max_pool3d(x, 2, 2), 1, keepdim=True))
    ),
    "conv3-global-bias-sum": conv3(
        lambda x, s: torch.sum(fn.adaptive_avg_pool3d(x / 2, (1, 1, 1)) + s, dim=1)
    ),
    "conv3-residual": conv3(lambda x, s: ((x.clone().detach() + x) * x + x) * s),
    "transposed-bias-tanh": transposed(lambda x, s: torch.tanh(x - s), stride=2, padding=1),
    "transposed-clamp-scale": transposed(
        lambda x, s: (torch.clamp((x + s).clamp(0, 1) * 2, 0.0, 1.0)) / 2.0,
        stride=2,
        padding=1,
        output_padding=1,
    ),
    "transposed-logsumexp-sum": transposed(
        lambda x, s: (
            torch.sum(
                torch.logsumexp(torch.mean(x, dim=(2, 3), keepdim=True) + s, dim=1, keepdim=True),
                dim=(2, 3),
            )
            * 10.0
        )
    ),
    "transposed-min-sum-gelu-add": transposed(
        lambda x, s: fn.gelu(torch.sum(torch.min(x, 1, keepdim=True)[0], 2, keepdim=True)) + s
    ),
    "transposed-mish-hardtanh": transposed(
        lambda x, s: fn.hardtanh(fn.mish(x) + 0.5, min_val=-1, max_val=1) * 2, stride=2
    ),
    "transposed-batch-tanh-pool": transposed(
        lambda x, s: fn.group_norm(
            fn.max_pool2d(torch.tanh(fn.batch_norm(x, torch.zeros(4), torch.ones(4))), 2), 2
        )
    ),
    "transposed3-swish-group": transposed3(
        lambda x, s: fn.hardswish(fn.group_norm(torch.sigmoid(x) * x, 2)), stride=2
    ),
    "transposed3-layer-pool-gelu": transposed3(
        lambda x, s: fn.gelu(fn.avg_pool3d(fn.layer_norm(x + s, x.shape[-1:]), 2)), stride=2
    ),
    "transposed3-softmax-sigmoid": transposed3(lambda x, s: torch.sigmoid(x.softmax(dim=1))),
    "transposed3-pools-sum": transposed3(
        lambda x, s: torch.sum(fn.max_pool3d(x, 2), dim=1, keepdim=True), stride=2
    ),
    "transposed3-clamp-min-divide": transposed3(lambda x, s: torch.clamp(x, min=-1.0) / 2),
    "transposed3-mean-softmax-tanh": transposed3(
        lambda x, s: torch.tanh(fn.softmax(torch.mean(x, dim=2, keepdim=True) + s, dim=1)) * 2.0
    ),
    "gemm-mul-leaky": gemm(lambda x, s: fn.leaky_relu(x * 2.0, 0.1)),
    "gemm-div-sum-scale": gemm(lambda x, s: torch.sum(x / 2, dim=1, keepdim=True) * 1.5),
    "gemm-sigmoid-sum-logsumexp": gemm(
        lambda x, s: torch.logsumexp(torch.sum(torch.sigmoid(x), dim=1), dim=0)
    ),
    "gemm-swish-divide-clamp": gemm(
        lambda x, s: torch.clamp(torch.tanh(torch.clamp(x * torch.sigmoid(x) / 2, -1, 1)), -1, 1)
    ),
    "gemm-max-subtract-gelu": gemm(
        lambda x, s: fn.gelu(torch.max(x, dim=1, keepdim=True).values - x.mean(1, keepdim=True))
    ),
    "gemm-group-min-bias": gemm(
        lambda x, s: torch.min(fn.group_norm(x, 2), dim=1, keepdim=True)[0] + s.view(1, 1)
    ),
    "gemm-pool-gelu-scale-max": gemm(
        lambda x, s: (
            torch.max(fn.gelu(fn.avg_pool1d(x.unsqueeze(1), 2).squeeze(1)) * 2.0, dim=1).values
        )
    ),
    "gemm-maxpool-sum-scale": gemm(
        lambda x, s: torch.sum(fn.max_pool1d(x.unsqueeze(1), 2).squeeze(1), dim=1) * 0.5
    ),
    "gemm-instance-residual": gemm(
        lambda x, s: (fn.instance_norm(x.unsqueeze(1).unsqueeze(1)).squeeze(1).squeeze(1) + x) * x
    ),
    "gemm-scale-batch": gemm(
        lambda x, s: fn.batch_norm(x * s, torch.zeros(6), torch.ones(6), eps=1e-5, momentum=0.1)
    ),
    "gemm-batch-training": gemm(
        lambda x, s: fn.batch_norm(x, None, None, training=True).softmax(-1)
    ),
    "gemm-subtract-relu": gemm(lambda x, s: torch.relu((x - 2) * 1.5)),
    "gemm-min-subtract": gemm(lambda x, s: torch.min(x, s) - s),
    "gemm-dropout-softmax": gemm(lambda x, s: fn.dropout(x, 0.2, training=False).softmax(dim=1)),
    "gemm-logsumexps": gemm(
        lambda x, s: torch.logsumexp(torch.logsumexp(x, 1, keepdim=True), 1, keepdim=True)
    ),
    "residual-clamp-mish": gemm(
        lambda x, s: (
            torch.logsumexp(torch.clamp(x * 2 + x * 2, -1, 1), 1, keepdim=True)
            * fn.mish(torch.logsumexp(x, 1, keepdim=True))
        )
    ),
    "squeeze-excite": conv(
        lambda x, s: x * torch.sigmoid(fn.relu(x.mean((2, 3))) * s)[:, :, None, None]
    ),
    "layer-scale": gemm(lambda x, s: x + s * fn.layer_norm(x, (6,))),
    "masked-mean": (
        lambda x, m: (x * m[..., None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1),
        (real(2, 3, 4), truth(2, 3).float()),
    ),
    "cosine-attention": (
        lambda q, k: (fn.normalize(q, dim=-1) @ fn.normalize(k, dim=-1).T).softmax(-1),
        (real(3, 4) + 0.125, real(5, 4) + 0.125),
    ),
    "linear-attention": (
        lambda q, k, v: (fn.elu(q) + 1) @ ((fn.elu(k) + 1).transpose(1, 2) @ v),
        (real(2, 3, 4), real(2, 3, 4, seed=1), real(2, 3, 2)),
    ),
    "scan-by-loop": (
        lambda x, a: torch.stack(
            [sum((x[:, j] * a ** (i - j) for j in range(i + 1)), torch.zeros(2)) for i in range(3)],
            1,
        ),
        (real(2, 3), positive(2)),
    ),
    "vector-quantise": (
        lambda x, c: c[torch.cdist(x, c).argmin(1)],
        (real(4, 3), real(5, 3)),
    ),
    "batched-gather": (
        lambda x, i: torch.gather(x, 1, i.unsqueeze(-1).expand(-1, -1, 4)),
        (real(2, 5, 4), whole(5, 2, 3)),
    ),
}
