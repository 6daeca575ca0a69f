"""Two equal operators on different inputs, combined at the end."""

import torch
from torch import Tensor, nn
from torch.nn import functional


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


class ConvConv1d(nn.Module):
    """Two convolutions with one kernel that keep the size, added."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, filters, kernel, padding="same", bias=False)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``conv(a) + conv(b)``."""
        return torch.add(self.conv(a), self.conv(b))


class ConvConv2d(nn.Module):
    """Two convolutions with one kernel that keep the size, added."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel, padding="same", bias=False)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``conv(a) + conv(b)``."""
        return torch.add(self.conv(a), self.conv(b))


class ConvConv3d(nn.Module):
    """Two convolutions with one kernel that keep the size, added."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, filters, kernel, padding="same", bias=False)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``conv(a) + conv(b)``."""
        return torch.add(self.conv(a), self.conv(b))


class PaddedConvConv1d(nn.Module):
    """Two convolutions with one kernel and any padding, written out, added."""

    def __init__(self, channels: int, filters: int, kernel: int, padding: int, stride: int) -> None:
        super().__init__()
        self.around = (padding,) * 2
        self.conv = nn.Conv1d(channels, filters, kernel, stride=stride)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``conv(pad(a)) + conv(pad(b))``."""
        padded_a, padded_b = functional.pad(a, self.around), functional.pad(b, self.around)
        return torch.add(self.conv(padded_a), self.conv(padded_b))


class PaddedConvConv2d(nn.Module):
    """Two convolutions with one kernel and any padding, written out, added."""

    def __init__(self, channels: int, filters: int, kernel: int, padding: int, stride: int) -> None:
        super().__init__()
        self.around = (padding,) * 4
        self.conv = nn.Conv2d(channels, filters, kernel, stride=stride)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``conv(pad(a)) + conv(pad(b))``."""
        padded_a, padded_b = functional.pad(a, self.around), functional.pad(b, self.around)
        return torch.add(self.conv(padded_a), self.conv(padded_b))


class PaddedConvConv3d(nn.Module):
    """Two convolutions with one kernel and any padding, written out, added."""

    def __init__(self, channels: int, filters: int, kernel: int, padding: int, stride: int) -> None:
        super().__init__()
        self.around = (padding,) * 6
        self.conv = nn.Conv3d(channels, filters, kernel, stride=stride)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``conv(pad(a)) + conv(pad(b))``."""
        padded_a, padded_b = functional.pad(a, self.around), functional.pad(b, self.around)
        return torch.add(self.conv(padded_a), self.conv(padded_b))
