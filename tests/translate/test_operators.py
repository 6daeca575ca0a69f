"""Every operator form: valid LEIR, a text that reads back, and PyTorch's values in float64."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.translation import faithful


def normal(*shape: int) -> Tensor:
    """Standard normal doubles rounded to float32, some of them zero, some equal."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    return torch.where(x.abs() < 0.2, torch.zeros(()), x)


def positive(*shape: int) -> Tensor:
    return normal(*shape).abs() + 0.1


def integers(high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(high))


def bools(*shape: int) -> Tensor:
    return integers(2, *shape).bool()


def overwritten(x: Tensor, y: Tensor) -> Tensor:
    """Assignments to parts of a tensor."""
    result = x.clone()
    result[:, 1] = y
    result[1:3, ::2] = 0.5
    result[0] += 2
    return result


def rotary(x: Tensor) -> Tensor:
    """Rotary position embedding, whose tables PyTorch makes in float32."""
    length, size = x.shape[1], x.shape[2]
    frequencies = 1.0 / 10000 ** (torch.arange(0, size, 2).float() / size)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    cos, sin = (torch.cat([t, t], -1) for t in (angles.cos(), angles.sin()))
    turned = torch.cat([-x[..., size // 2 :], x[..., : size // 2]], -1)
    return x * cos + turned * sin


EYE = torch.eye(3, 4).bool()
Case = tuple[Callable[..., object], tuple[Tensor, ...]]

VIEWS: dict[str, Case] = {
    "permute": (lambda x: x.permute(2, 0, 1) + 1, (normal(2, 3, 4),)),
    "view-split": (lambda x: x.view(3, 2, 2, 5) * 2, (normal(3, 4, 5),)),
    "view-merge": (lambda x: x.reshape(12, 5) * 2, (normal(3, 4, 5),)),
    "view-both": (lambda x: x.reshape(6, 10) * 2, (normal(3, 4, 5),)),
    "view-coprime": (lambda x: x.reshape(10, 6) * 2, (normal(4, 15),)),
    "merge-transposed": (lambda x: x.transpose(1, 2).reshape(2, 12) * 2, (normal(2, 3, 4),)),
    "split-merge": (lambda x: x.view(2, 2, 3).transpose(0, 1).reshape(12) + 1, (normal(12),)),
    "slice-step": (lambda x: x[1::2, ::3] * 2, (normal(7, 10),)),
    "slice-negative": (lambda x: x[:, -3:-1] * 2, (normal(3, 5),)),
    "select": (lambda x: x[-1] + x[0], (normal(3, 5),)),
    "expand": (lambda x: x.expand(4, 3, 5) * 2, (normal(3, 1),)),
    "repeat": (lambda x: x.repeat(2, 2, 3) * 2, (normal(3, 4),)),
    "repeat-interleave": (lambda x: x.repeat_interleave(2, dim=1) * 2, (normal(3, 4),)),
    "flip": (lambda x: x.flip(0, 1) * 2, (normal(3, 4),)),
    "roll": (lambda x: x.roll(2, 1) * x.roll((1, -1), (0, 1)), (normal(3, 5),)),
    "squeeze": (lambda x: x.squeeze(1).unsqueeze(-1) * 2, (normal(3, 1, 4),)),
    "chunk": (lambda x: x.chunk(3, 1)[1] * x.chunk(3, 1)[0], (normal(2, 9),)),
    "split-uneven": (lambda x: torch.split(x, 4, 1)[2] * 2, (normal(2, 9),)),
    "unbind": (lambda x: x.unbind(1)[2] * 2, (normal(2, 4),)),
    "cat": (lambda x, y, z: torch.cat([x, y, z], 1), (normal(2, 3), normal(2, 1), normal(2, 4))),
    "stack": (lambda x, y: torch.stack([x, y], 1), (normal(2, 3), normal(3, 2).T)),
    "pad": (lambda x: functional.pad(x, (1, 2, 0, 3), value=0.5), (normal(2, 3),)),
    "pad-negative": (lambda x: functional.pad(x, (-1, 2)), (normal(2, 4),)),
    "output-is-view": (lambda x: (x * 2).T, (normal(2, 4),)),
    "output-is-input": (lambda x: (x, x * 2, x), (normal(2, 4),)),
    "in-place": (lambda x: x.clone().mul_(2).add_(1), (normal(2, 4),)),
    "in-place-parts": (overwritten, (normal(4, 6), normal(4))),
    "upsample": (
        lambda x: functional.interpolate(x, scale_factor=2) * 2,
        (normal(1, 2, 3, 2),),
    ),
    "nested-outputs": (lambda x: (x * 2, {"sum": x.sum(), "more": [x + 1]}), (normal(3),)),
    "scalar": (lambda x: x * 2, (normal(),)),
    "roll-flat": (lambda x: x.roll(2) * 2, (normal(2, 3),)),
    "stack-flip-pad": (
        lambda x, y: functional.pad(torch.stack([x.flip(0), y, x], 0), (1, 0, 0, 2)),
        (normal(2, 3), normal(2, 3)),
    ),
    "diagonal": (lambda x: x.diagonal(1) + x.diagonal(-1)[:2].sum(), (normal(3, 4),)),
    "windows": (lambda x: x.unfold(1, 3, 2) * 2, (normal(2, 7),)),
    "pad-reflect": (
        lambda x: functional.pad(x, (1, 2, 2, 0), mode="reflect"),
        (normal(1, 2, 3, 5),),
    ),
    "pad-replicate": (
        lambda x: functional.pad(x, (1, 2, 0, 3), mode="replicate"),
        (normal(1, 2, 3, 5),),
    ),
    "pad-circular": (lambda x: functional.pad(x, (1, 2), mode="circular"), (normal(1, 3, 5),)),
    "pixel-shuffle": (lambda x: functional.pixel_shuffle(x, 2) * 2, (normal(1, 8, 3, 2),)),
}
ELEMENTWISE: dict[str, Case] = {
    "broadcast": (lambda x, y: x + y * x, (normal(3, 1, 4), normal(2, 1))),
    "alpha": (lambda x, y: torch.add(x, y, alpha=3) - torch.sub(y, x, alpha=0.5), (normal(4),) * 2),
    "rsub": (lambda x: 1.5 - x, (normal(4),)),
    "rdiv": (lambda x: 2 / x, (positive(4),)),
    "powers": (lambda x: x**2 + x**3 - x**0.5 + x**-1 + x**1.7, (positive(5),)),
    "pow-tensor": (lambda x, y: x**y + 2.0**y, (positive(5), normal(5))),
    "floor-divide": (lambda x: torch.div(x, 0.5, rounding_mode="floor"), (normal(6),)),
    "clamp": (lambda x: x.clamp(-0.5, 0.25) + x.clamp(min=0) + x.clamp(max=0), (normal(9),)),
    "clamp-tensor": (lambda x, y: torch.clamp(x, max=y), (normal(9), normal(9).flip(0))),
    "extremes": (lambda x, y: torch.minimum(x, y) * torch.maximum(x, y), (normal(9), normal(1))),
    "masked-fill": (lambda x, m: x.masked_fill(m, float("-inf")), (normal(3, 4), bools(4))),
    "where-constant": (
        lambda x: torch.where(torch.ones(4, dtype=torch.bool), x, x * 2),
        (normal(3, 4),),
    ),
    "where": (lambda x: torch.where(x > 0, x, x * 2), (normal(3, 4),)),
    "logic": (
        lambda x, y: (x > 0) & ~(y < 0) | (x == y) ^ (x != 0),
        (normal(9), normal(9).flip(0)),
    ),
    "compare-outputs": (lambda x: (x >= 0, x <= 0.5, x.ne(0)), (normal(9),)),
    "bool-times-float": (lambda x, m: x * m + m, (normal(3, 4), bools(3, 4))),
    "int-to-float": (lambda x, i: x * i + i / 2, (normal(6), integers(7, 6))),
    "int-arithmetic": (lambda i, j: i * j + i - 3 * j, (integers(7, 6), integers(5, 6))),
    "int-division": (lambda i: i // 3 + i % 4, (integers(20, 6),)),
    "rounding": (lambda x: x.trunc() * x.isinf() + x.round(), (normal(9) * 4,)),
    "casts": (lambda x: x.to(torch.int32) * x.double() + x.bool(), (normal(6) * 3,)),
    "unary": (
        lambda x: x.exp() + x.log() + x.sqrt() + x.rsqrt() + x.sin() + x.cos() + x.log1p(),
        (positive(6),),
    ),
    "unary-signed": (
        lambda x: x.abs() + x.erf() + x.floor() + x.ceil() + x.sign() + x.expm1() + x.sigmoid(),
        (normal(9),),
    ),
    "reciprocals": (lambda x: x.reciprocal() + x.log2() + x.log10() + x.square(), (positive(6),)),
    "activations": (
        lambda x: (
            functional.silu(x)
            + functional.mish(x)
            + functional.hardswish(x)
            + functional.softplus(x, beta=2.0, threshold=1.0)
            + functional.celu(x, 0.7)
            + functional.relu6(x)
            + functional.logsigmoid(x)
            + functional.softshrink(x)
        ),
        (normal(33) * 4,),
    ),
    "prelu": (functional.prelu, (normal(2, 3, 4), normal(3))),
    "softplus-large": (functional.softplus, (normal(5) * 200,)),
    "full": (
        lambda x: x + torch.full_like(x, 2.5) + torch.ones(4) - torch.zeros(3, 1),
        (normal(3, 4),),
    ),
    "arange": (lambda x: x * torch.arange(2, 10, 2) + torch.arange(4.0), (normal(3, 4),)),
    "linspace-mask": (
        lambda x: x * (torch.arange(5)[None] <= torch.arange(5)[:, None]),
        (normal(5, 5),),
    ),
    "bool-triangles": (
        lambda m: (m.tril(), m.triu(1), torch.ones(3, 4, dtype=torch.bool).triu(1)),
        (bools(3, 4),),
    ),
    "rotary": (rotary, (normal(2, 5, 4),)),
    "tril": (
        lambda x: torch.tril(x, 1) + torch.triu(x, -1) + x.tril(-2) + x.triu(2),
        (normal(4, 5),),
    ),
    "constants": (
        lambda x: x * torch.tensor([0.5, 1.0, -2.0]) + torch.tensor(3.0),
        (normal(2, 3),),
    ),
}
REDUCTIONS: dict[str, Case] = {
    "sum-dims": (lambda x: x.sum((0, 2)), (normal(2, 3, 4),)),
    "sum-keep": (lambda x: x.sum(1, keepdim=True) * x, (normal(2, 3, 4),)),
    "sum-all": (lambda x: x.sum(), (normal(2, 3, 4),)),
    "sum-bools": (lambda m: m.sum(1), (bools(3, 5),)),
    "sum-one": (lambda x: x.sum(1), (normal(3, 1),)),
    "mean-all": (lambda x: x.mean() + x.mean((0, 1)), (normal(3, 4),)),
    "prod": (lambda x: x.prod(1) * x.prod(), (positive(3, 4),)),
    "amax": (lambda x: x.amax((0, 1)) + x.amin(1, keepdim=True).sum(0), (normal(3, 4, 2),)),
    "max-both": (lambda x: torch.max(x, 1), (integers(3, 4, 6).float(),)),
    "min-both": (lambda x: torch.min(x, 0, keepdim=True), (integers(3, 4, 6).float(),)),
    "arg-ties": (lambda x: (x.argmax(1), x.argmin(0), x.argmax()), (integers(2, 4, 6).float(),)),
    "max-all": (lambda x: x.max() - x.min(), (normal(4, 5),)),
    "any-all": (lambda x: ((x > 1).any(1), (x > -1).all(), (x != 0).any()), (normal(4, 5),)),
    "var": (
        lambda x: x.var(1) + x.std(0, keepdim=True).sum() + x.var(unbiased=False),
        (normal(3, 4),),
    ),
    "var-mean": (
        lambda x: torch.var_mean(x, 1) + torch.std_mean(x, 0, unbiased=False),
        (normal(3, 4),),
    ),
    "norms": (
        lambda x: (
            x.norm(1, 1) + x.norm(2, 1) + x.norm(3, 1) + x.norm(float("inf"), 1) + x.norm(0, 1)
        ),
        (normal(3, 4),),
    ),
    "cumsum": (lambda x: x.cumsum(0) + x.cumsum(1) + x.cumprod(-1), (normal(3, 4),)),
    "cumsum-vector": (lambda x: x.cumsum(0), (normal(6),)),
    "logsumexp": (lambda x: x.logsumexp(1) + x.logsumexp((0, 1)), (normal(3, 4) * 300,)),
    "logsumexp-keep": (lambda x: x.logsumexp(1, keepdim=True) - x, (normal(3, 4),)),
    "softmax-first": (lambda x: x.softmax(0) * x.log_softmax(1), (normal(3, 4) * 300,)),
    "softmax-one": (lambda x: x.softmax(1), (normal(3, 1),)),
}
PRODUCTS: dict[str, Case] = {
    "matmul-vectors": (lambda x, y: x @ y, (normal(5), normal(5))),
    "matmul-left-vector": (lambda x, y: x @ y, (normal(4), normal(2, 4, 3))),
    "matmul-right-vector": (lambda x, y: x @ y, (normal(2, 3, 4), normal(4))),
    "matmul-broadcast": (lambda x, y: x @ y, (normal(2, 1, 3, 4), normal(5, 4, 2))),
    "mm-one": (lambda x, y: x @ y, (normal(1, 1), normal(1, 1))),
    "addmm": (
        lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2.0),
        (normal(3), normal(2, 4), normal(4, 3)),
    ),
    "baddbmm": (
        lambda x, y, z: torch.baddbmm(x, y, z, beta=0),
        (normal(2, 2, 3), normal(2, 2, 4), normal(2, 4, 3)),
    ),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), (normal(2, 3, 4), normal(2, 5, 4))),
    "linear": (
        functional.linear,
        (normal(2, 3, 4), normal(5, 4), normal(5)),
    ),
    "addmv": (torch.addmv, (normal(3), normal(3, 4), normal(4))),
    "attention-shared": (
        lambda q, k, v: functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True, scale=0.3
        ),
        (normal(1, 4, 3, 2), normal(1, 2, 3, 2), normal(1, 2, 3, 2) * 3),
    ),
    "attention-bools": (
        lambda q, k, v, m: functional.scaled_dot_product_attention(q, k, v, attn_mask=m),
        (normal(1, 2, 3, 2), normal(1, 2, 4, 2), normal(1, 2, 4, 2), bools(3, 4).logical_or(EYE)),
    ),
    "outer": (torch.outer, (normal(3), normal(4))),
    "attention": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        (normal(2, 2, 4, 3), normal(2, 2, 4, 3) * 2, normal(2, 2, 4, 3) * 3),
    ),
    "attention-mask": (
        lambda q, k, v, m: functional.scaled_dot_product_attention(q, k, v, attn_mask=m),
        (normal(1, 2, 4, 3), normal(1, 2, 5, 3), normal(1, 2, 5, 3) * 3, normal(4, 5)),
    ),
    "conv1d": (
        lambda x, w, b: functional.conv1d(x, w, b, stride=2, padding=2, dilation=2),
        (normal(2, 4, 9), normal(6, 4, 3), normal(6)),
    ),
    "conv-groups": (
        lambda x, w: functional.conv2d(x, w, padding=(1, 0), groups=2),
        (normal(1, 4, 4, 5), normal(6, 2, 3, 2)),
    ),
    "conv-stride-rest": (
        lambda x, w: functional.conv2d(x, w, stride=3),
        (normal(1, 1, 8, 8), normal(1, 1, 2, 2)),
    ),
    "conv3d": (
        lambda x, w, b: functional.conv3d(x, w, b, padding=1),
        (normal(1, 2, 3, 3, 4), normal(2, 2, 2, 3, 3), normal(2)),
    ),
    "conv-same": (
        lambda x, w: functional.conv1d(x, w, padding="same"),
        (normal(1, 2, 7), normal(2, 2, 4)),
    ),
    "conv-transposed": (
        lambda x, w, b: functional.conv_transpose2d(
            x, w, b, stride=(2, 3), padding=1, output_padding=1, dilation=(1, 2), groups=2
        ),
        (normal(1, 4, 3, 3), normal(4, 3, 3, 2), normal(6)),
    ),
    "conv-transposed-3d": (
        lambda x, w, b: functional.conv_transpose3d(x, w, b, stride=2, output_padding=1, groups=2),
        (normal(1, 4, 3, 2, 2), normal(4, 1, 2, 2, 2), normal(2)),
    ),
    "conv-transposed-1d": (
        functional.conv_transpose1d,
        (normal(2, 3, 4), normal(3, 2, 3)),
    ),
}
POOLS: dict[str, Case] = {
    "max-padded": (lambda x: functional.max_pool2d(x - 9, 3, 2, 1), (normal(1, 2, 7, 8),)),
    "max-ceil": (lambda x: functional.max_pool2d(x - 9, 2, 2, ceil_mode=True), (normal(2, 5, 7),)),
    "max-dilated": (lambda x: functional.max_pool1d(x, 3, 1, 1, dilation=2), (normal(1, 2, 9),)),
    "max-3d": (lambda x: functional.max_pool3d(x, 2, 1), (normal(1, 2, 3, 4, 3),)),
    "avg-plain": (lambda x: functional.avg_pool2d(x, (2, 3)), (normal(1, 2, 4, 6),)),
    "avg-excluding": (
        lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        (normal(1, 2, 5, 6),),
    ),
    "avg-ceil": (
        lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        (normal(1, 2, 6, 6),),
    ),
    "avg-divisor": (
        lambda x: functional.avg_pool2d(x, 2, divisor_override=3),
        (normal(1, 2, 4, 4),),
    ),
    "avg-1d-3d": (
        lambda x: functional.avg_pool1d(x[0, 0], 3, 2, 1).sum() + functional.avg_pool3d(x, 2),
        (normal(1, 2, 4, 4, 4),),
    ),
    "adaptive-avg": (
        lambda x: functional.adaptive_avg_pool2d(x, (3, 2)),
        (normal(1, 2, 7, 6),),
    ),
    "adaptive-avg-1d-3d": (
        lambda x: (
            functional.adaptive_avg_pool1d(x[0, 0], 3).sum()
            + functional.adaptive_avg_pool3d(x, (2, 3, 2))
        ),
        (normal(1, 2, 3, 4, 5),),
    ),
    "adaptive-max": (
        lambda x: functional.adaptive_max_pool2d(x - 9, (3, 2)),
        (normal(1, 2, 7, 6),),
    ),
    "adaptive-max-1d-3d": (
        lambda x: (
            functional.adaptive_max_pool1d(x[0, 0], 3).sum()
            + functional.adaptive_max_pool3d(x, (2, 3, 2))
        ),
        (normal(1, 2, 3, 4, 5),),
    ),
    "adaptive-one": (lambda x: functional.adaptive_avg_pool2d(x, 1), (normal(1, 2, 4, 5),)),
}
NORMS: dict[str, Case] = {
    "layer-2d": (lambda x: functional.layer_norm(x, (3, 4)), (normal(2, 3, 4),)),
    "layer-affine": (
        lambda x, w, b: functional.layer_norm(x, (4,), w, b),
        (normal(3, 4), normal(4), normal(4)),
    ),
    "rms": (lambda x, w: functional.rms_norm(x, (4,), w, eps=1e-6), (normal(3, 4), normal(4))),
    "rms-without-eps": (
        lambda x, w: functional.rms_norm(x, (4,), w),
        (normal(3, 4) * 1e-3, normal(4)),
    ),
    "group": (
        lambda x, w, b: functional.group_norm(x, 2, w, b),
        (normal(2, 4, 5), normal(4), normal(4)),
    ),
    "instance": (functional.instance_norm, (normal(2, 3, 5),)),
    "batch-of-batch": (
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        (normal(4, 3, 2), normal(3), normal(3)),
    ),
    "batch-running": (
        functional.batch_norm,
        (normal(4, 3), normal(3), positive(3)),
    ),
}
INDEX: dict[str, Case] = {
    "embedding": (functional.embedding, (integers(7, 2, 3), normal(7, 4))),
    "index-select": (lambda x, i: x.index_select(1, i), (normal(2, 5), integers(5, 4))),
    "index": (lambda x, i: x[i], (normal(5, 3), integers(5, 2, 2))),
    "index-two": (
        lambda x, i, j: x[i, j] + x[i[:, None], j][:, 0],
        (normal(5, 4, 3), integers(5, 6), integers(4, 6)),
    ),
    "index-columns": (lambda x, i: x[:, i], (normal(5, 4, 3), integers(4, 2, 3))),
    "index-apart": (
        lambda x, i, j: x[i, :, j],
        (normal(5, 4, 3), integers(5, 6), integers(3, 6)),
    ),
    "index-constant": (lambda x: x[:, [2, 0, 1]] + x[[-1, 0, 1], 1:], (normal(3, 4),)),
    "index-ramp": (lambda x, i: x[torch.arange(4), i], (normal(4, 5), integers(5, 4))),
    "one-hot": (lambda i, w: functional.one_hot(i, 5).float() @ w, (integers(5, 6), normal(5, 3))),
    "gather": (lambda x, i: x.gather(1, i), (normal(3, 5), integers(5, 3, 4))),
}
LOSSES: dict[str, Case] = {
    "cross-entropy": (functional.cross_entropy, (normal(4, 5), integers(5, 4))),
    "cross-entropy-image": (
        lambda x, i: functional.cross_entropy(x, i, reduction="none"),
        (normal(2, 3, 4), integers(3, 2, 4)),
    ),
    "cross-entropy-row": (functional.cross_entropy, (normal(5), integers(5))),
    "cross-entropy-soft": (
        lambda x, y: functional.cross_entropy(x, y.softmax(1)),
        (normal(3, 4), normal(3, 4)),
    ),
    "nll": (
        lambda x, i: functional.nll_loss(x.log_softmax(1), i, reduction="sum"),
        (normal(4, 5), integers(5, 4)),
    ),
    "mse-huber": (
        lambda x, y: functional.mse_loss(x, y) + functional.huber_loss(x, y, delta=0.5),
        (normal(3, 4), normal(3, 4).flip(0)),
    ),
    "kl": (
        lambda x, y: functional.kl_div(x, y, reduction="batchmean", log_target=True),
        (normal(3, 4), normal(3, 4).flip(0)),
    ),
    "binary": (
        functional.binary_cross_entropy_with_logits,
        (normal(3, 4) * 9, positive(3, 4).clamp(max=1)),
    ),
}
CASES = {**LOSSES, **VIEWS, **ELEMENTWISE, **REDUCTIONS, **PRODUCTS, **POOLS, **NORMS, **INDEX}


class Wrapped(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> object:
        return self.function(*inputs)


@pytest.mark.parametrize("name", CASES)
def test_operator_is_translated_faithfully(name: str) -> None:
    function, inputs = CASES[name]
    faithful(Wrapped(function), inputs)
