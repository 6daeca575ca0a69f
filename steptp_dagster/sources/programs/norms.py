"""Normalisations and norms."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalisation over the last dimension, with scale and shift."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: Tensor) -> Tensor:
        """``(x-mean)/sqrt(var+eps)*weight+bias``."""
        return self.norm(x)


class BatchNorm(nn.Module):
    """Normalisation per channel with stored statistics."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """``(x-running_mean)/sqrt(running_var+eps)*weight+bias``."""
        return self.norm(x)


class InstanceNorm(nn.Module):
    """Normalisation per sample and channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """``(x-mean)/sqrt(var+eps)`` over the positions."""
        return self.norm(x)


class GroupNorm(nn.Module):
    """Normalisation per sample and group of channels."""

    def __init__(self, groups: int, channels_per_group: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, groups * channels_per_group)

    def forward(self, x: Tensor) -> Tensor:
        """``(x-mean)/sqrt(var+eps)*weight+bias`` over the group, whose channels are a dimension."""
        return self.norm(x.flatten(1, 2))


class RMSNorm(nn.Module):
    """Division by the root of the mean square over the channels."""

    def forward(self, x: Tensor) -> Tensor:
        """``x/sqrt(mean(x**2)+eps)``."""
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)


class FrobeniusNorm(nn.Module):
    """Division by the Euclidean norm of all elements."""

    def forward(self, x: Tensor) -> Tensor:
        """``x/norm(x)``."""
        return x / torch.norm(x, p="fro")


class L1Norm(nn.Module):
    """Division by the sum of absolute values of the row."""

    def forward(self, x: Tensor) -> Tensor:
        """``x/sum(abs(x))``."""
        return x / torch.sum(torch.abs(x), dim=1, keepdim=True)


class L2Norm(nn.Module):
    """Division by the Euclidean norm of the row."""

    def forward(self, x: Tensor) -> Tensor:
        """``x/norm(x, dim=1)``."""
        return x / torch.norm(x, p=2, dim=1, keepdim=True)
