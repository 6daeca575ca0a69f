"""Attention within shifted windows of an image (Swin), and its form without attention."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, network, normal


def _window_partition(x: Tensor, size: int) -> Tensor:
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, c)


def _window_reverse(windows: Tensor, size: int, h: int, w: int) -> Tensor:
    b = int(windows.shape[0] / (h * w / size / size))
    x = windows.view(b, h // size, w // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, -1)


class WindowAttention(nn.Module):
    """Cosine attention with log-spaced continuous position bias, as in Swin V2."""

    def __init__(self, dim: int, size: int, heads: int) -> None:
        super().__init__()
        self.size, self.heads = size, heads
        self.scale = nn.Parameter(torch.log(10 * torch.ones(heads, 1, 1)))
        self.cpb = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, heads, bias=False))
        steps = torch.arange(-(size - 1), size, dtype=torch.float32)
        table = torch.stack(torch.meshgrid([steps, steps], indexing="ij"))
        table = table.permute(1, 2, 0).contiguous().unsqueeze(0) / max(size - 1, 1) * 8
        table = torch.sign(table) * torch.log2(torch.abs(table) + 1.0) / math.log2(8)
        self.register_buffer("table", table, persistent=False)
        grid = torch.stack(torch.meshgrid([torch.arange(size)] * 2, indexing="ij")).flatten(1)
        relative = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0).contiguous()
        relative += size - 1
        relative[:, :, 0] *= 2 * size - 1
        self.register_buffer("index", relative.sum(-1), persistent=False)
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.q_bias = nn.Parameter(torch.randn(dim))
        self.v_bias = nn.Parameter(torch.randn(dim))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, n, c = x.shape
        bias = torch.cat(
            (self.q_bias, torch.zeros_like(self.v_bias, requires_grad=False), self.v_bias)
        )
        qkv = functional.linear(x, self.qkv.weight, bias)
        qkv = qkv.reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).transpose(-2, -1)
        limit = torch.log(torch.tensor(1.0 / 0.01))
        scores = scores * torch.clamp(self.scale, max=limit).exp()
        table = self.cpb(self.table).view(-1, self.heads)
        position = table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous()
        scores = scores + 16 * torch.sigmoid(position).unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(b // windows, windows, self.heads, n, n)
            scores = (scores + mask.unsqueeze(1).unsqueeze(0)).view(-1, self.heads, n, n)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        return self.proj(y)


class SwinBlock(nn.Module):
    def __init__(self, dim: int, side: int, size: int, shift: int) -> None:
        super().__init__()
        self.side, self.size, self.shift = side, size, shift
        self.norm1 = nn.LayerNorm(dim)
        self.attention = WindowAttention(dim, size, 2)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 6), nn.GELU(), nn.Linear(6, dim))
        mask = None
        if shift:
            image = torch.zeros((1, side, side, 1))
            spans = (slice(0, -size), slice(-size, -shift), slice(-shift, None))
            count = 0
            for h in spans:
                for w in spans:
                    image[:, h, w, :] = count
                    count += 1
            flat = _window_partition(image, size).view(-1, size * size)
            mask = flat.unsqueeze(1) - flat.unsqueeze(2)
            mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        h = w = self.side
        b, _, c = x.shape
        shortcut = x
        x = x.view(b, h, w, c)
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = _window_partition(x, self.size).view(-1, self.size * self.size, c)
        windows = self.attention(windows, self.mask).view(-1, self.size, self.size, c)
        x = _window_reverse(windows, self.size, h, w)
        if self.shift:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        x = shortcut + self.norm1(x.view(b, h * w, c))
        return x + self.norm2(self.mlp(x))


class PatchMerging(nn.Module):
    def __init__(self, side: int, dim: int) -> None:
        super().__init__()
        self.side = side
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = nn.LayerNorm(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        b, _, c = x.shape
        x = x.view(b, self.side, self.side, c)
        parts = [x[:, i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        x = torch.cat(parts, -1).view(b, -1, 4 * c)
        return self.norm(self.reduction(x))


@network("swin-v2")
def swin() -> Case:
    return nn.Sequential(SwinBlock(4, 4, 2, 0), SwinBlock(4, 4, 2, 1), PatchMerging(4, 4)), (
        normal(1, 16, 4),
    )


class SwinMlp(nn.Module):
    def __init__(self, dim: int, side: int, size: int, shift: int, heads: int) -> None:
        super().__init__()
        self.side, self.size, self.shift, self.heads = side, size, shift, heads
        self.padding = [size - shift, shift, size - shift, shift]
        self.norm1 = nn.LayerNorm(dim)
        self.spatial = nn.Conv1d(heads * size**2, heads * size**2, 1, groups=heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 6), nn.GELU(), nn.Linear(6, dim))

    def forward(self, x: Tensor) -> Tensor:
        h = w = self.side
        b, _, c = x.shape
        shortcut = x
        x = self.norm1(x).view(b, h, w, c)
        if self.shift:
            left, right, top, bottom = self.padding
            shifted = functional.pad(x, [0, 0, left, right, top, bottom], "constant", 0)
        else:
            shifted = x
        _, hh, ww, _ = shifted.shape
        windows = _window_partition(shifted, self.size)
        windows = windows.view(-1, self.size * self.size, self.heads, c // self.heads)
        windows = windows.transpose(1, 2).reshape(
            -1, self.heads * self.size * self.size, c // self.heads
        )
        mixed = self.spatial(windows)
        mixed = mixed.view(-1, self.heads, self.size * self.size, c // self.heads).transpose(1, 2)
        mixed = mixed.reshape(-1, self.size * self.size, c).reshape(-1, self.size, self.size, c)
        shifted = _window_reverse(mixed, self.size, hh, ww)
        if self.shift:
            left, _, top, _ = self.padding
            x = shifted[:, left : left + h, top : top + w, :].contiguous()
        else:
            x = shifted
        x = shortcut + x.view(b, h * w, c)
        return x + self.mlp(self.norm2(x))


@network("swin-mlp")
def swin_mlp() -> Case:
    return nn.Sequential(SwinMlp(4, 4, 2, 0, 2), SwinMlp(4, 4, 2, 1, 2)), (normal(1, 16, 4),)
