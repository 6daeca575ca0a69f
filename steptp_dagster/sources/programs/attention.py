"""Attention."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no position sees a later one."""

    def __init__(self, heads: int, head_size: int) -> None:
        super().__init__()
        size = heads * head_size
        self.heads, self.head_size = heads, head_size
        self.attend = nn.Linear(size, 3 * size)
        self.project = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """``[batch, length, heads*head_size]`` to the same shape."""
        batch, length, size = x.shape
        parts = (batch, length, self.heads, self.head_size)
        q, k, v = (part.view(parts).transpose(1, 2) for part in self.attend(x).split(size, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(self.head_size))
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, size)
        return self.project(mixed)


class GroupedQueryAttention(nn.Module):
    """Causal attention in which ``heads/kv_heads`` heads share their keys and values."""

    def __init__(self, heads: int, kv_heads: int, head_size: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_size = heads, kv_heads, head_size
        size = heads * head_size
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, kv_heads * head_size, bias=False)
        self.value = nn.Linear(size, kv_heads * head_size, bias=False)
        self.project = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """``[batch, length, heads*head_size]`` to the same shape."""
        batch, length, size = x.shape
        parts = (batch, length, -1, self.head_size)
        q, k, v = (f(x).view(parts).transpose(1, 2) for f in (self.query, self.key, self.value))
        shared = self.heads // self.kv_heads
        k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(self.head_size)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, size)
        return self.project(mixed)


class AttentionSum(GroupedQueryAttention):
    """Attention, added up over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum over positions of attention(x)``."""
        return super().forward(x).sum(dim=1)


class AttentionMax(GroupedQueryAttention):
    """Attention, its maxima over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``max over positions of attention(x)``."""
        return torch.amax(super().forward(x), dim=1)


class AttentionMean(GroupedQueryAttention):
    """Attention, averaged over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of attention(x)``."""
        return super().forward(x).mean(dim=1)


class AttentionGemm(nn.Module):
    """Attention, then a linear layer."""

    def __init__(self, heads: int, kv_heads: int, head_size: int, features: int) -> None:
        super().__init__()
        self.attend = GroupedQueryAttention(heads, kv_heads, head_size)
        self.linear = nn.Linear(heads * head_size, features)

    def forward(self, x: Tensor) -> Tensor:
        """``linear(attention(x))``."""
        return self.linear(self.attend(x))


class AttentionGemmReLU(AttentionGemm):
    """Attention, then a linear layer, cut at 0."""

    def forward(self, x: Tensor) -> Tensor:
        """``relu(linear(attention(x)))``."""
        return torch.relu(super().forward(x))


class AttentionGemmGELU(AttentionGemm):
    """Attention, then a linear layer, through a GELU."""

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(linear(attention(x)))``."""
        return functional.gelu(super().forward(x))


class AttentionGemmTanh(AttentionGemm):
    """Attention, then a linear layer, through a tanh."""

    def forward(self, x: Tensor) -> Tensor:
        """``tanh(linear(attention(x)))``."""
        return torch.tanh(super().forward(x))


class AttentionGemmReLUSum(AttentionGemm):
    """Attention, then a linear layer, cut at 0, added up over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum over positions of relu(linear(attention(x)))``."""
        return torch.relu(super().forward(x)).sum(dim=1)


class AttentionGemmReLUMax(AttentionGemm):
    """Attention, then a linear layer, cut at 0, its maxima over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``max over positions of relu(linear(attention(x)))``."""
        return torch.amax(torch.relu(super().forward(x)), dim=1)


class AttentionGemmReLUMean(AttentionGemm):
    """Attention, then a linear layer, cut at 0, averaged over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of relu(linear(attention(x)))``."""
        return torch.relu(super().forward(x)).mean(dim=1)


class AttentionGemmGELUSum(AttentionGemm):
    """Attention, then a linear layer, through a GELU, added up over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum over positions of gelu(linear(attention(x)))``."""
        return functional.gelu(super().forward(x)).sum(dim=1)


class AttentionGemmGELUMax(AttentionGemm):
    """Attention, then a linear layer, through a GELU, its maxima over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``max over positions of gelu(linear(attention(x)))``."""
        return torch.amax(functional.gelu(super().forward(x)), dim=1)


class AttentionGemmGELUMean(AttentionGemm):
    """Attention, then a linear layer, through a GELU, averaged over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of gelu(linear(attention(x)))``."""
        return functional.gelu(super().forward(x)).mean(dim=1)


class AttentionGemmTanhSum(AttentionGemm):
    """Attention, then a linear layer, through a tanh, added up over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum over positions of tanh(linear(attention(x)))``."""
        return torch.tanh(super().forward(x)).sum(dim=1)


class AttentionGemmTanhMax(AttentionGemm):
    """Attention, then a linear layer, through a tanh, its maxima over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``max over positions of tanh(linear(attention(x)))``."""
        return torch.amax(torch.tanh(super().forward(x)), dim=1)


class AttentionGemmTanhMean(AttentionGemm):
    """Attention, then a linear layer, through a tanh, averaged over the positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of tanh(linear(attention(x)))``."""
        return torch.tanh(super().forward(x)).mean(dim=1)
