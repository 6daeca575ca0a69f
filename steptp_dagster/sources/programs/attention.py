"""Attention."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

import math

import torch
from torch import Tensor, nn


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
