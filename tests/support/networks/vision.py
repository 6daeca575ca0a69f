"""More networks for images and points, of published designs."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, network, normal
from tests.support.networks.convolutional import conv_norm


@network("dcgan-generator")
def generator() -> Case:
    net = nn.Sequential(
        nn.ConvTranspose2d(5, 4, 4, 1, 0, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(True),
        nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False),
        nn.BatchNorm2d(3),
        nn.ReLU(True),
        nn.ConvTranspose2d(3, 1, 3, 2, 1, output_padding=1),
        nn.Tanh(),
    )
    return net, (normal(1, 5, 1, 1),)


@network("vae-encoder")
def encoder() -> Case:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 3, 3, 2, 1), nn.LeakyReLU(0.2), nn.Flatten())
            self.mean, self.spread = nn.Linear(12, 2), nn.Linear(12, 2)

        def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            h = self.body(x)
            mean, spread = self.mean(h), self.spread(h).clamp(-5, 5)
            divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), dim=1)
            return mean + noise * torch.exp(0.5 * spread), mean, divergence.mean()

    return Encoder(), (normal(2, 1, 4, 4), normal(2, 2))


@network("segnet")
def segnet() -> Case:
    class SegNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = conv_norm(1, 2)
            self.up = nn.Conv2d(2, 1, 3, padding=1)
            self.pool = nn.MaxPool2d(2, 2, return_indices=True)
            self.unpool = nn.MaxUnpool2d(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            y, at = self.pool(self.down(x))
            return self.up(self.unpool(y, at))

    return SegNet(), (normal(1, 1, 4, 6),)


@network("pointnet")
def pointnet() -> Case:
    class PointNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transform = nn.Sequential(nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4), nn.ReLU())
            self.matrix = nn.Linear(4, 9)
            self.features = nn.Sequential(nn.Conv1d(3, 5, 1), nn.BatchNorm1d(5), nn.ReLU())

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            t = self.matrix(torch.max(self.transform(x), 2)[0])
            t = t.view(-1, 3, 3) + torch.eye(3).repeat(x.shape[0], 1, 1)
            y = self.features(torch.bmm(x.transpose(2, 1), t).transpose(2, 1))
            top = torch.max(y, 2, keepdim=True)[0].expand(-1, -1, x.shape[2])
            return torch.cat([y, top], 1), t

    return PointNet(), (normal(2, 3, 4),)


@network("nerf-positional-mlp")
def nerf() -> Case:
    class Nerf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(15, 6), nn.Linear(21, 4)

        def forward(self, x: Tensor) -> Tensor:
            parts = [x]
            for i in range(2):
                parts += [f(2.0**i * math.pi * x) for f in (torch.sin, torch.cos)]
            e = torch.cat(parts, -1)
            h = self.second(torch.cat([e, functional.relu(self.first(e))], -1))
            alpha = 1 - torch.exp(-functional.relu(h[..., 3]) * 0.1)
            free = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha], -1), -1)
            return ((free[:, :-1] * alpha)[..., None] * torch.sigmoid(h[..., :3])).sum(1)

    return Nerf(), (normal(2, 4, 3),)


@network("siren")
def siren() -> Case:
    class Siren(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 5), nn.Linear(5, 5)])
            self.last = nn.Linear(5, 1)

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = torch.sin(3.0 * layer(x))
            return self.last(x)

    return Siren(), (normal(4, 2),)


@network("mlp-mixer")
def mixer() -> Case:
    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(4), nn.LayerNorm(4)])
            self.tokens = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6))
            self.channels = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

        def forward(self, x: Tensor) -> Tensor:
            x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norms[1](x))

    return Mixer(), (normal(2, 6, 4),)


@network("gmlp")
def gmlp() -> Case:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.inner = nn.LayerNorm(4), nn.LayerNorm(3)
            self.up, self.down = nn.Linear(4, 6), nn.Linear(3, 4)
            self.spatial = nn.Conv1d(5, 5, 1)

        def forward(self, x: Tensor) -> Tensor:
            u, v = functional.gelu(self.up(self.norm(x))).chunk(2, dim=-1)
            return x + self.down(u * self.spatial(self.inner(v)))

    return Gated(), (normal(2, 5, 4),)


@network("vector-quantiser")
def quantiser() -> Case:
    class Quantiser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.book = nn.Embedding(5, 3)

        def forward(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            flat = z.permute(0, 2, 3, 1).reshape(-1, 3)
            distances = (
                flat.pow(2).sum(1, keepdim=True)
                + self.book.weight.pow(2).sum(1)
                - 2 * flat @ self.book.weight.t()
            )
            nearest = distances.argmin(1)
            q = self.book(nearest).view(z.shape[0], *z.shape[2:], 3).permute(0, 3, 1, 2)
            loss = functional.mse_loss(q, z.detach()) + 0.25 * functional.mse_loss(q.detach(), z)
            return z + (q - z).detach(), loss, nearest

    return Quantiser(), (normal(1, 3, 2, 3),)


@network("yolo-head")
def yolo() -> Case:
    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2 * 6, 1)
            self.register_buffer("anchors", torch.tensor([[1.5, 2.0], [3.0, 1.0]]))

        def forward(self, x: Tensor) -> Tensor:
            b, _, h, w = x.shape
            y = self.conv(x).view(b, 2, 6, h, w).permute(0, 1, 3, 4, 2)
            gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack((gx, gy), -1).to(x.dtype)
            centre = (torch.sigmoid(y[..., :2]) + grid) * 8
            extent = torch.exp(y[..., 2:4]) * self.anchors.view(1, 2, 1, 1, 2)
            return torch.cat([centre, extent, torch.sigmoid(y[..., 4:])], -1).view(b, -1, 6)

    return Head(), (normal(1, 3, 3, 2),)


@network("detr-sine-positions")
def detr() -> Case:
    class Positions(nn.Module):
        def forward(self, mask: Tensor) -> Tensor:
            there = ~mask
            y, x = there.cumsum(1, dtype=torch.float32), there.cumsum(2, dtype=torch.float32)
            y = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi
            x = x / (x[:, :, -1:] + 1e-6) * 2 * math.pi
            steps = torch.arange(4, dtype=torch.float32)
            steps = 10000 ** (2 * torch.div(steps, 2, rounding_mode="floor") / 4)
            px, py = x[..., None] / steps, y[..., None] / steps
            px = torch.stack((px[..., 0::2].sin(), px[..., 1::2].cos()), dim=4).flatten(3)
            py = torch.stack((py[..., 0::2].sin(), py[..., 1::2].cos()), dim=4).flatten(3)
            return torch.cat((py, px), dim=3).permute(0, 3, 1, 2)

    return Positions(), (torch.tensor([[[False, False, True], [False, False, True]]]),)


@network("aspp")
def aspp() -> Case:
    class Aspp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branches = nn.ModuleList(
                [nn.Conv2d(2, 2, 1), *(nn.Conv2d(2, 2, 3, padding=d, dilation=d) for d in (2, 3))]
            )
            self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(2, 2, 1), nn.ReLU())
            self.project = nn.Conv2d(8, 2, 1)

        def forward(self, x: Tensor) -> Tensor:
            parts = [branch(x) for branch in self.branches]
            size = x.shape[-2:]
            pooled = functional.interpolate(
                self.pool(x), size=size, mode="bilinear", align_corners=False
            )
            return self.project(torch.cat([*parts, pooled], 1))

    return Aspp(), (normal(1, 2, 6, 5),)


@network("pyramid-pooling")
def pyramid_pooling() -> Case:
    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stages = nn.ModuleList(nn.Conv2d(2, 1, 1, bias=False) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            parts = [x]
            for n, conv in zip((1, 2, 3), self.stages, strict=True):
                y = conv(functional.adaptive_avg_pool2d(x, n))
                parts.append(
                    functional.interpolate(y, x.shape[2:], mode="bilinear", align_corners=True)
                )
            return torch.cat(parts, 1)

    return Pooling(), (normal(1, 2, 5, 6),)


@network("selective-kernel")
def selective() -> Case:
    class Selective(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList([conv_norm(4, 4, 3, groups=2), conv_norm(4, 4, 5, groups=2)])
            self.reduce = nn.Linear(4, 2)
            self.heads = nn.ModuleList([nn.Linear(2, 4), nn.Linear(2, 4)])

        def forward(self, x: Tensor) -> Tensor:
            maps = torch.stack([conv(x) for conv in self.convs], 1)
            z = self.reduce(maps.sum(1).mean(-1).mean(-1))
            weights = torch.stack([head(z) for head in self.heads], 1).softmax(1)
            return (maps * weights[..., None, None]).sum(1)

    return Selective(), (normal(1, 4, 4, 3),)


@network("efficient-channel-attention")
def channel_attention() -> Case:
    class Eca(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(1, 1, 3, padding=1, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            y = functional.adaptive_avg_pool2d(x, 1).squeeze(-1).transpose(-1, -2)
            y = torch.sigmoid(self.conv(y).transpose(-1, -2).unsqueeze(-1))
            return x * y.expand_as(x)

    return Eca(), (normal(2, 4, 3, 3),)


@network("coordinate-attention")
def coordinates() -> Case:
    class Coordinates(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.squeeze = conv_norm(3, 2, 1, act=nn.Hardswish)
            self.rows, self.columns = nn.Conv2d(2, 3, 1), nn.Conv2d(2, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            h, w = x.shape[2:]
            rows = functional.adaptive_avg_pool2d(x, (None, 1))
            columns = functional.adaptive_avg_pool2d(x, (1, None)).permute(0, 1, 3, 2)
            a, b = torch.split(self.squeeze(torch.cat([rows, columns], 2)), [h, w], dim=2)
            return x * self.rows(a).sigmoid() * self.columns(b.permute(0, 1, 3, 2)).sigmoid()

    return Coordinates(), (normal(1, 3, 4, 3),)


@network("ghost-module")
def ghost() -> Case:
    class Ghost(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.primary, self.cheap = conv_norm(3, 3, 1), conv_norm(3, 3, 3, groups=3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.primary(x)
            return torch.cat([y, self.cheap(y)], dim=1)[:, :5, :, :]

    return Ghost(), (normal(1, 3, 4, 4),)


@network("res2net")
def res2net() -> Case:
    class Res2(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(2, 2, 3, padding=1) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            first, *others = torch.split(x, 2, 1)
            outs, last = [first], torch.zeros_like(first)
            for part, conv in zip(others, self.convs, strict=True):
                last = functional.relu(conv(part + last))
                outs.append(last)
            return torch.cat(outs, 1) + x

    return Res2(), (normal(1, 6, 4, 3),)


@network("non-local-block")
def non_local() -> Case:
    class NonLocal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = (nn.Conv2d(4, 2, 1) for _ in range(3))
            self.out = nn.Conv2d(2, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            b, _, h, w = x.shape
            q = self.q(x).view(b, 2, -1).permute(0, 2, 1)
            k = functional.max_pool2d(self.k(x), 2).view(b, 2, -1)
            v = functional.max_pool2d(self.v(x), 2).view(b, 2, -1).permute(0, 2, 1)
            y = (q @ k).softmax(-1) @ v
            return x + self.out(y.permute(0, 2, 1).contiguous().view(b, 2, h, w))

    return NonLocal(), (normal(1, 4, 4, 6),)


@network("dynamic-convolution")
def dynamic() -> Case:
    class Dynamic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernels = nn.Parameter(torch.randn(3, 4, 2, 3, 3))
            self.route = nn.Linear(2, 3)

        def forward(self, x: Tensor) -> Tensor:
            b, c, h, w = x.shape
            weights = functional.softmax(self.route(x.mean((2, 3))) / 4.0, dim=1)
            kernels = (weights @ self.kernels.view(3, -1)).view(b * 4, c, 3, 3)
            y = functional.conv2d(x.reshape(1, b * c, h, w), kernels, padding=1, groups=b)
            return y.view(b, 4, h, w)

    return Dynamic(), (normal(2, 2, 4, 3),)


@network("hypernetwork-style-modulation")
def hyper() -> Case:
    class Modulated(nn.Module):
        """A convolution whose weights a style scales and normalises, and its noise input."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(1, 3, 2, 3, 3))
            self.style = nn.Linear(4, 2)

        def forward(self, x: Tensor, style: Tensor) -> Tensor:
            b, c, h, w = x.shape
            weight = self.weight * self.style(style).view(b, 1, c, 1, 1)
            weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8).view(b, 3, 1, 1, 1)
            x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = x.view(1, b * c, 2 * h, 2 * w)
            y = functional.conv2d(x, weight.view(b * 3, c, 3, 3), padding=1, groups=b)
            return functional.leaky_relu(y.view(b, 3, 2 * h, 2 * w), 0.2) * math.sqrt(2)

    return Modulated(), (normal(2, 2, 3, 2), normal(2, 4))


@network("equivariant-graph-layer")
def equivariant() -> Case:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.edge = nn.Sequential(nn.Linear(7, 5), nn.SiLU())
            self.node, self.shift = nn.Linear(8, 3), nn.Linear(5, 1, bias=False)

        def forward(self, h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            n = h.shape[1]
            gaps = x[:, :, None] - x[:, None]
            squared = gaps.pow(2).sum(-1, keepdim=True)
            pair = [h[:, :, None].expand(-1, -1, n, -1), h[:, None].expand(-1, n, -1, -1)]
            m = self.edge(torch.cat([*pair, squared], -1))
            m = m * (1 - torch.eye(n))[None, :, :, None]
            x = x + (gaps * self.shift(m)).mean(2)
            return h + self.node(torch.cat([h, m.sum(2)], -1)), x

    return Layer(), (normal(1, 4, 3), normal(1, 4, 2))


@network("sinkhorn")
def sinkhorn() -> Case:
    class Sinkhorn(nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            z = scores / 0.5
            for _ in range(3):
                z = z - torch.logsumexp(z, dim=1, keepdim=True)
                z = z - torch.logsumexp(z, dim=0, keepdim=True)
            return z.exp()

    return Sinkhorn(), (normal(3, 4),)


@network("runge-kutta")
def runge_kutta() -> Case:
    class Ode(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.field = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))

        def forward(self, x: Tensor) -> Tensor:
            h = 0.1
            for _ in range(2):
                a = self.field(x)
                b = self.field(x + h / 2 * a)
                c = self.field(x + h / 2 * b)
                x = x + h / 6 * (a + 2 * b + 2 * c + self.field(x + h * c))
            return x

    return Ode(), (normal(3, 2),)


@network("low-rank-and-ternary-weights")
def adapted() -> Case:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(5, 4)
            self.a, self.b = nn.Parameter(torch.randn(2, 5)), nn.Parameter(torch.randn(4, 2))
            self.bits = nn.Parameter(torch.randn(3, 4))

        def forward(self, x: Tensor) -> Tensor:
            y = self.base(x) + (x @ self.a.T @ self.b.T) * (16 / 2)
            scale = self.bits.abs().mean().clamp(min=1e-5)
            ternary = (self.bits / scale).round().clamp(-1, 1) * scale
            top = 127 / y.abs().max(dim=-1, keepdim=True)[0].clamp(min=1e-5)
            return functional.linear((y * top).round().clamp(-128, 127) / top, ternary)

    return Adapted(), (normal(2, 5),)
