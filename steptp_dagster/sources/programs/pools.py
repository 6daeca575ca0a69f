"""Pooling over one, two and three spatial dimensions."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

from torch import Tensor, nn
from torch.nn import functional


class MaxPool1d(nn.Module):
    """The maximum of each window."""

    def __init__(self, kernel: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool1d(kernel, stride, padding, dilation)

    def forward(self, x: Tensor) -> Tensor:
        """``max_pool1d(x)``."""
        return self.pool(x)


class MaxPool2d(nn.Module):
    """The maximum of each window."""

    def __init__(self, kernel: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(kernel, stride, padding, dilation)

    def forward(self, x: Tensor) -> Tensor:
        """``max_pool2d(x)``."""
        return self.pool(x)


class MaxPool3d(nn.Module):
    """The maximum of each window."""

    def __init__(self, kernel: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool3d(kernel, stride, padding, dilation)

    def forward(self, x: Tensor) -> Tensor:
        """``max_pool3d(x)``."""
        return self.pool(x)


class AvgPool1d(nn.Module):
    """The mean of each window, padding counted."""

    def __init__(self, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        """``avg_pool1d(x)``."""
        return functional.avg_pool1d(x, self.kernel, self.stride, self.padding)


class AvgPool2d(nn.Module):
    """The mean of each window, padding counted."""

    def __init__(self, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        """``avg_pool2d(x)``."""
        return functional.avg_pool2d(x, self.kernel, self.stride, self.padding)


class AvgPool3d(nn.Module):
    """The mean of each window, padding counted."""

    def __init__(self, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        """``avg_pool3d(x)``."""
        return functional.avg_pool3d(x, self.kernel, self.stride, self.padding)
