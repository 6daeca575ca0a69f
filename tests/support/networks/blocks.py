"""Small public building blocks for images and features."""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from tests.support.networks.base import Case, integers, network, normal


class ConvNext(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.rand(dim))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.gamma * self.down(functional.gelu(self.up(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


@network("convnext-block")
def convnext() -> Case:
    return ConvNext(3), (normal(1, 3, 5, 4),)


class Cbam(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(channels, 2), nn.ReLU(), nn.Linear(2, channels))
        self.spatial = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mlp(functional.adaptive_avg_pool2d(x, 1).flatten(1))
        top = self.mlp(functional.adaptive_max_pool2d(x, 1).flatten(1))
        x = x * torch.sigmoid(mean + top)[:, :, None, None]
        both = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
        return x * torch.sigmoid(self.spatial(both))


@network("cbam")
def cbam() -> Case:
    return Cbam(4), (normal(2, 4, 5, 4),)


class Film(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.scale = nn.Linear(4, 6)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        gamma, beta = self.scale(condition).chunk(2, dim=-1)
        return functional.relu(self.conv(x) * (1 + gamma[..., None, None]) + beta[..., None, None])


@network("film")
def film() -> Case:
    return Film(), (normal(2, 2, 4, 4), normal(2, 4))


class GluMlp(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.up = nn.Linear(5, 12)
        self.down = nn.Linear(6, 5, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "glu":
            return self.down(functional.glu(self.up(x)))
        value, gate = self.up(x).chunk(2, -1)
        act = {"reglu": functional.relu, "geglu": functional.gelu, "swiglu": functional.silu}
        return self.down(value * act[self.kind](gate))


@network("glu-variants")
def glu() -> Case:
    layers = [GluMlp(kind) for kind in ("glu", "reglu", "geglu", "swiglu")]
    return nn.Sequential(*layers), (normal(3, 5),)


class Capsules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 6, 3, 4, 2))

    @staticmethod
    def squash(s: Tensor) -> Tensor:
        squared = (s**2).sum(dim=-1, keepdim=True)
        return (squared / (1 + squared)) * (s / (squared.sqrt() + 1e-8))

    def forward(self, x: Tensor) -> Tensor:
        u = self.squash(x)
        votes = (self.weight @ u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros(x.shape[0], 6, 3, 1, dtype=x.dtype)
        for _ in range(2):
            coupling = torch.softmax(logits, dim=2)
            out = self.squash((coupling * votes).sum(dim=1))
            logits = logits + (votes * out[:, None]).sum(-1, keepdim=True)
        return out


@network("capsule-routing")
def capsules() -> Case:
    return Capsules(), (normal(2, 6, 2),)


class CellularAutomaton(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        identity = torch.zeros(3, 3)
        identity[1, 1] = 1
        self.register_buffer("filters", torch.stack([identity, sobel, sobel.T])[:, None])
        self.up = nn.Conv2d(6, 5, 1)
        self.down = nn.Conv2d(5, 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            b, c, h, w = x.shape
            padded = functional.pad(x, (1, 1, 1, 1), mode="circular")
            y = functional.conv2d(padded.reshape(b * c, 1, h + 2, w + 2), self.filters)
            x = x + self.down(torch.relu(self.up(y.reshape(b, -1, h, w))))
            alive = functional.max_pool2d(x[:, :1], 3, 1, 1) > 0.1
            x = x * alive.to(x.dtype)
        return x


@network("neural-cellular-automaton")
def automaton() -> Case:
    return CellularAutomaton(), (normal(1, 2, 4, 4),)


class Kan(nn.Module):
    """A layer of splines on edges: B-spline bases by the Cox-de-Boor recursion."""

    def __init__(self, i: int, o: int, grid: int = 3, order: int = 2) -> None:
        super().__init__()
        self.order = order
        step = 2.0 / grid
        knots = torch.arange(-order, grid + order + 1) * step - 1
        self.register_buffer("knots", knots.expand(i, -1).contiguous())
        self.base = nn.Parameter(torch.randn(o, i))
        self.spline = nn.Parameter(torch.randn(o, i, grid + order))

    def bases(self, x: Tensor) -> Tensor:
        knots = self.knots
        x = x.unsqueeze(-1)
        bases = ((x >= knots[:, :-1]) & (x < knots[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            left = (x - knots[:, : -(k + 1)]) / (knots[:, k:-1] - knots[:, : -(k + 1)])
            right = (knots[:, k + 1 :] - x) / (knots[:, k + 1 :] - knots[:, 1:-k])
            bases = left * bases[:, :, :-1] + right * bases[:, :, 1:]
        return bases.contiguous()

    def forward(self, x: Tensor) -> Tensor:
        base = functional.linear(functional.silu(x), self.base)
        spline = functional.linear(
            self.bases(x).view(x.size(0), -1), self.spline.view(self.spline.size(0), -1)
        )
        return base + spline


@network("kan-spline")
def kan() -> Case:
    return Kan(3, 2), (normal(4, 3).clamp(-0.9, 0.9),)


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(c, 3, 1) for c in (2, 3))
        self.smooth = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(2))

    def forward(self, fine: Tensor, coarse: Tensor) -> list[Tensor]:
        top = self.lateral[1](coarse)
        up = functional.interpolate(top, size=fine.shape[-2:], mode="nearest")
        return [self.smooth[0](self.lateral[0](fine) + up), self.smooth[1](top)]


@network("feature-pyramid")
def pyramid() -> Case:
    return Pyramid(), (normal(1, 2, 7, 6), normal(1, 3, 3, 3))


class Resized(nn.Module):
    def __init__(
        self, mode: str, size: tuple[int, ...] | None, factor: float | None, **more: bool
    ) -> None:
        super().__init__()
        self.mode, self.size, self.factor, self.more = mode, size, factor, more
        self.conv = nn.Conv2d(2, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return functional.interpolate(
            y, size=self.size, scale_factor=self.factor, mode=self.mode, **self.more
        )


for _mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
    for _size in ((5, 8), (2, 3), (6, 8)):

        @network(f"interpolate-{_mode}-{_size[0]}x{_size[1]}")
        def resized(mode: str = _mode, size: tuple[int, ...] = _size) -> Case:
            return Resized(mode, size, None), (normal(1, 2, 3, 4),)


for _mode in ("nearest", "bilinear", "bicubic"):
    for _factor in (2.0, 1.6, 0.5):
        for _corners in (False, True) if _mode != "nearest" else (None,):

            @network(f"interpolate-{_mode}-by-{_factor}-{_corners}")
            def rescaled(
                mode: str = _mode, factor: float = _factor, corners: bool | None = _corners
            ) -> Case:
                more = {} if corners is None else {"align_corners": corners}
                return Resized(mode, None, factor, **more), (normal(1, 2, 5, 4),)


@network("upsample-1d-3d")
def upsample_other() -> Case:
    class Other(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            return (
                functional.interpolate(x, scale_factor=2, mode="linear"),
                functional.interpolate(y, size=(3, 4, 2), mode="trilinear", align_corners=True),
                functional.interpolate(y, size=(3, 2, 3), mode="nearest"),
            )

    return Other(), (normal(1, 2, 4), normal(1, 1, 2, 3, 2))


class SuperResolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3, padding=1)
        self.act = nn.PReLU(8)

    def forward(self, x: Tensor) -> Tensor:
        up = functional.pixel_shuffle(self.act(self.conv(x)), 2)
        return functional.pixel_unshuffle(up, 2) + functional.interpolate(
            x, scale_factor=1.0, mode="nearest"
        ).repeat(1, 4, 1, 1)


@network("pixel-shuffle")
def shuffle() -> Case:
    return SuperResolution(), (normal(1, 2, 3, 4),)


class SpatialTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 6)

    def forward(self, x: Tensor) -> Tensor:
        theta = self.head(x.flatten(1)).view(-1, 2, 3)
        grid = functional.affine_grid(theta, list(x.size()), align_corners=False)
        return functional.grid_sample(x, grid, align_corners=False)


@network("spatial-transformer")
def transformer() -> Case:
    return SpatialTransformer(), (normal(2, 1, 2, 4),)


class Unpooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y, at = functional.max_pool2d(x, 2, return_indices=True)
        return functional.max_unpool2d(y * 2, at, 2)


@network("max-unpool")
def unpooled() -> Case:
    return Unpooled(), (normal(1, 2, 4, 6),)


@network("max-pool-indices")
def pool_positions() -> Case:
    return nn.MaxPool2d(3, 2, 1, return_indices=True), (normal(1, 2, 5, 6),)


class Unfolded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 2 * 9))

    def forward(self, x: Tensor) -> Tensor:
        columns = functional.unfold(x, 3, padding=1, stride=2)
        y = self.weight @ columns
        folded = functional.fold(columns, x.shape[-2:], 3, padding=1, stride=2)
        return y.sum(1) + folded.sum((1, 2, 3))[:, None]


@network("unfold-fold")
def unfolded() -> Case:
    return Unfolded(), (normal(2, 2, 5, 4),)


@network("adaptive-pools")
def adaptive() -> Case:
    class Pools(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return (
                functional.adaptive_avg_pool2d(x, (3, 2)),
                functional.adaptive_max_pool2d(x, (2, 3)),
                functional.adaptive_avg_pool1d(x.flatten(2), 4),
                functional.adaptive_max_pool1d(x.flatten(2), 5),
                functional.adaptive_avg_pool2d(x, (None, 1)),
                functional.lp_pool2d(x.abs() + 0.1, 2, 2),
            )

    return Pools(), (normal(1, 2, 5, 7),)


class PatchEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, 4, 2, 2)
        self.cls = nn.Parameter(torch.randn(1, 1, 4))
        self.position = nn.Parameter(torch.randn(1, 7, 4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.proj(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.cls.expand(x.shape[0], -1, -1), y], 1)
        return y + self.position


@network("patch-embedding")
def patches() -> Case:
    return PatchEmbedding(), (normal(2, 3, 4, 6),)


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(11, 4, padding_idx=0)
        self.position = nn.Embedding(8, 4)
        self.kind = nn.Embedding(2, 4)
        self.norm = nn.LayerNorm(4)
        self.register_buffer("ids", torch.arange(8).expand((1, -1)))

    def forward(self, words: Tensor, kinds: Tensor) -> Tensor:
        at = self.ids[:, : words.size(1)]
        return self.norm(self.word(words) + self.position(at) + self.kind(kinds))


@network("bert-embeddings")
def embeddings() -> Case:
    return Embeddings(), (integers(11, 2, 5), integers(2, 2, 5))


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weighted = parametrizations.weight_norm(nn.Linear(4, 3))
        self.spectral = parametrizations.spectral_norm(nn.Linear(3, 4))
        self.orthogonal = parametrizations.orthogonal(nn.Linear(4, 4), use_trivialization=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.spectral(torch.tanh(self.weighted(x)))


@network("weight-and-spectral-norm")
def parametrized() -> Case:
    return Normalised(), (normal(2, 4),)


class Fourier(nn.Module):
    """Gaussian Fourier features and a timestep embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.randn(4))
        self.mlp = nn.Sequential(nn.Linear(8, 6), nn.SiLU(), nn.Linear(6, 4))

    def forward(self, t: Tensor) -> Tensor:
        angles = t[:, None] * self.frequencies[None] * 2 * math.pi
        return self.mlp(torch.cat([angles.sin(), angles.cos()], dim=-1))


@network("fourier-features")
def fourier() -> Case:
    return Fourier(), (normal(3),)


class Deep(nn.Module):
    def __init__(self, sizes: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i, o in pairwise(sizes):
            layers += [nn.Linear(i, o), nn.ReLU()]
        self.network = nn.Sequential(*layers[:-1])

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


@network("mlp-deep-narrow")
def deep() -> Case:
    return Deep((6, *[5] * 12, 3)), (normal(3, 6),)


@network("mlp-shallow-wide")
def wide() -> Case:
    return Deep((6, 40, 40, 3)), (normal(1, 6),)
