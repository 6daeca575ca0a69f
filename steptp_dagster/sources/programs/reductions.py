"""Reductions over a dimension, softmaxes and running values."""

import torch
from torch import Tensor, nn


class Softmax(nn.Module):
    """Rows as probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """``softmax`` over the last dimension."""
        return torch.softmax(x, dim=-1)


class LogSoftmax(nn.Module):
    """Rows as logarithms of probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """``log_softmax`` over the last dimension."""
        return torch.log_softmax(x, dim=-1)


class Sum(nn.Module):
    """The sum over a dimension, which is kept."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``sum(x, dim)``."""
        return torch.sum(x, dim=self.dim, keepdim=True)


class Mean(nn.Module):
    """The mean over a dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``mean(x, dim)``."""
        return torch.mean(x, dim=self.dim)


class Max(nn.Module):
    """The maximum over a dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``max(x, dim)``, the values."""
        return torch.max(x, dim=self.dim)[0]


class Min(nn.Module):
    """The minimum over a dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``min(x, dim)``, the values."""
        return torch.min(x, dim=self.dim)[0]


class Prod(nn.Module):
    """The product over a dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``prod(x, dim)``."""
        return torch.prod(x, dim=self.dim)


class Argmax(nn.Module):
    """Where a dimension has its maximum."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``argmax(x, dim)``."""
        return torch.argmax(x, dim=self.dim)


class Argmin(nn.Module):
    """Where a dimension has its minimum."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """``argmin(x, dim)``."""
        return torch.argmin(x, dim=self.dim)


class CumSum(nn.Module):
    """Running sums along the rows."""

    def forward(self, x: Tensor) -> Tensor:
        """``cumsum`` over the last dimension."""
        return torch.cumsum(x, dim=1)


class CumProd(nn.Module):
    """Running products along the rows."""

    def forward(self, x: Tensor) -> Tensor:
        """``cumprod`` over the last dimension."""
        return torch.cumprod(x, dim=1)


class ReverseCumSum(nn.Module):
    """Running sums from the end of the rows."""

    def forward(self, x: Tensor) -> Tensor:
        """``flip(cumsum(flip(x)))``."""
        return torch.cumsum(x.flip(1), dim=1).flip(1)


class ExclusiveCumSum(nn.Module):
    """The sum of all elements before each one."""

    def forward(self, x: Tensor) -> Tensor:
        """Running sums of the row shifted by one zero."""
        shifted = torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), dim=1)
        return torch.cumsum(shifted, dim=1)


class MaskedCumSum(nn.Module):
    """Running sums of those elements that a mask lets through."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``cumsum(x*mask)``."""
        return torch.cumsum(x * mask, dim=1)
