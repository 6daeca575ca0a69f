"""Convolutions."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

from torch import Tensor, nn


class Conv1d(nn.Module):
    """A convolution over one dimension."""

    def __init__(  # the arguments of the layer
        self, channels: int, filters: int, kernel: int, stride: int, dilation: int, bias: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(
            channels, filters, kernel, stride=stride, dilation=dilation, bias=bool(bias)
        )

    def forward(self, x: Tensor) -> Tensor:
        """``conv1d(x)``."""
        return self.conv(x)


class Conv2d(nn.Module):
    """A convolution with a square kernel."""

    def __init__(
        self, channels: int, filters: int, kernel: int, stride: int, padding: int, bias: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels, filters, kernel, stride=stride, padding=padding, bias=bool(bias)
        )

    def forward(self, x: Tensor) -> Tensor:
        """``conv2d(x)``."""
        return self.conv(x)


class AsymmetricConv2d(nn.Module):
    """A convolution with a rectangular kernel, dilated and padded."""

    def __init__(  # the arguments of the layer
        self,
        channels: int,
        filters: int,
        kernel_height: int,
        kernel_width: int,
        padding: int,
        dilation: int,
        bias: int,
    ) -> None:
        super().__init__()
        kernel = (kernel_height, kernel_width)
        self.conv = nn.Conv2d(
            channels, filters, kernel, padding=padding, dilation=dilation, bias=bool(bias)
        )

    def forward(self, x: Tensor) -> Tensor:
        """``conv2d(x)``."""
        return self.conv(x)


class Conv3d(nn.Module):
    """A convolution with a cubic kernel."""

    def __init__(self, channels: int, filters: int, kernel: int, bias: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, filters, kernel, bias=bool(bias))

    def forward(self, x: Tensor) -> Tensor:
        """``conv3d(x)``."""
        return self.conv(x)


class AsymmetricConv3d(nn.Module):
    """A convolution with a kernel of three different sides."""

    def __init__(
        self,
        channels: int,
        filters: int,
        kernel_depth: int,
        kernel_height: int,
        kernel_width: int,
        bias: int,
    ) -> None:
        super().__init__()
        kernel = (kernel_depth, kernel_height, kernel_width)
        self.conv = nn.Conv3d(channels, filters, kernel, bias=bool(bias))

    def forward(self, x: Tensor) -> Tensor:
        """``conv3d(x)``."""
        return self.conv(x)


class DepthwiseConv2d(nn.Module):
    """One square kernel per channel."""

    def __init__(self, channels: int, kernel: int, stride: int, padding: int, bias: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels,
            channels,
            kernel,
            stride=stride,
            padding=padding,
            groups=channels,
            bias=bool(bias),
        )

    def forward(self, x: Tensor) -> Tensor:
        """``conv2d(x)`` channel by channel."""
        return self.conv(x)


class AsymmetricDepthwiseConv2d(nn.Module):
    """One rectangular kernel per channel."""

    def __init__(self, channels: int, kernel_height: int, kernel_width: int, bias: int) -> None:
        super().__init__()
        kernel = (kernel_height, kernel_width)
        self.conv = nn.Conv2d(channels, channels, kernel, groups=channels, bias=bool(bias))

    def forward(self, x: Tensor) -> Tensor:
        """``conv2d(x)`` channel by channel."""
        return self.conv(x)


class DepthwiseSeparableConv2d(nn.Module):
    """A kernel per channel, then a mixture of the channels at each position."""

    def __init__(self, channels: int, filters: int, kernel: int, padding: int, bias: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            channels, channels, kernel, padding=padding, groups=channels, bias=bool(bias)
        )
        self.pointwise = nn.Conv2d(channels, filters, 1, bias=bool(bias))

    def forward(self, x: Tensor) -> Tensor:
        """``pointwise(depthwise(x))``."""
        return self.pointwise(self.depthwise(x))


class PointwiseConv2d(nn.Module):
    """A mixture of the channels at each position."""

    def __init__(self, channels: int, filters: int, bias: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 1, bias=bool(bias))

    def forward(self, x: Tensor) -> Tensor:
        """``conv2d(x)`` with a kernel of one element."""
        return self.conv(x)
