"""Two equal operators on different inputs, combined at the end."""

import torch
from torch import Tensor, nn


class AddAdd(nn.Module):
    """Two sums, multiplied."""

    def forward(self, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
        """``(a+b)*(c+d)``."""
        return (a + b) * (c + d)


class ExpExp(nn.Module):
    """Two exponentials, added."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``exp(a)+exp(b)``."""
        return torch.exp(a) + torch.exp(b)


class LogLog(nn.Module):
    """Two logarithms, multiplied."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``log(a)*log(b)``."""
        return torch.log(a) * torch.log(b)


class LogLogAdd(nn.Module):
    """Two logarithms, added."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``log(a)+log(b)``."""
        return torch.log(a) + torch.log(b)


class AbsAbs(nn.Module):
    """Two absolute values, multiplied."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``abs(a)*abs(b)``."""
        return torch.abs(a) * torch.abs(b)


class SqrtSqrt(nn.Module):
    """Two square roots, multiplied."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``sqrt(a)*sqrt(b)``."""
        return torch.sqrt(a) * torch.sqrt(b)


class MatMulMatMul(nn.Module):
    """Two products with one right operand each, added."""

    def forward(self, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
        """``a@b + c@d``."""
        return torch.matmul(a, b) + torch.matmul(c, d)
