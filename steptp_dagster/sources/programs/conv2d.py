"""Convolutions and what follows them; a class is named for its operators from left to right."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

import torch
from torch import Tensor, nn
from torch.nn import functional


class Convolution(nn.Module):
    """A convolution with a bias."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel)


class GroupedConvolution(Convolution):
    """A convolution and a normalisation of its filters in groups."""

    def __init__(self, channels: int, groups: int, filters_per_group: int, kernel: int) -> None:
        super().__init__(channels, groups * filters_per_group, kernel)
        self.norm = nn.GroupNorm(groups, groups * filters_per_group)


class Conv2DReLUBiasAdd(Convolution):
    """A convolution, cut at 0, plus a bias that is a parameter of its own."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``relu(conv(x)) + bias``."""
        return torch.relu(self.conv(x)) + self.bias


class Conv2dInstanceNormDivide(nn.Module):
    """A convolution without bias, normalised per sample and channel, halved."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel, bias=False)
        self.norm = nn.InstanceNorm2d(filters)

    def forward(self, x: Tensor) -> Tensor:
        """``instance_norm(conv(x))/2``."""
        return self.norm(self.conv(x)) / 2.0


class Conv2dAddScaleSigmoidGroupNorm(nn.Module):
    """A shifted, scaled and squashed convolution, normalised in groups."""

    def __init__(self, channels: int, groups: int, filters_per_group: int, kernel: int) -> None:
        super().__init__()
        filters = groups * filters_per_group
        self.conv = nn.Conv2d(channels, filters, kernel)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))
        self.scale = nn.Parameter(torch.randn(filters, 1, 1))
        self.norm = nn.GroupNorm(groups, filters)

    def forward(self, x: Tensor) -> Tensor:
        """``group_norm(sigmoid((conv(x) + bias)*scale))``."""
        return self.norm(torch.sigmoid((self.conv(x) + self.bias) * self.scale))


class Conv2dMinTanhTanh(Convolution):
    """The smallest channel of a convolution, squashed twice."""

    def forward(self, x: Tensor) -> Tensor:
        """``tanh(tanh(min over channels of conv(x)))``."""
        return torch.tanh(torch.tanh(torch.amin(self.conv(x), dim=1, keepdim=True)))


class Conv2dMinAddMultiply(Convolution):
    """A convolution limited from above, plus a bias, doubled."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``2*(min(conv(x), 0.5) + bias)``."""
        return (torch.clamp(self.conv(x), max=0.5) + self.bias) * 2.0


class Conv2dScalingMin(Convolution):
    """The smallest channel of a doubled convolution."""

    def forward(self, x: Tensor) -> Tensor:
        """``min over channels of 2*conv(x)``."""
        return torch.min(self.conv(x) * 2.0, dim=1, keepdim=True)[0]


class Conv2dSubtractHardSwishMaxPoolMish(Convolution):
    """A shifted convolution, activated before and after pooling."""

    def forward(self, x: Tensor) -> Tensor:
        """``mish(max_pool(hardswish(conv(x) - 0.5)))``."""
        y = functional.hardswish(self.conv(x) - 0.5)
        return functional.mish(functional.max_pool2d(y, kernel_size=2))


class Conv2dSubtractTanhSubtractAvgPool(Convolution):
    """A convolution shifted before and after a tanh, then averaged."""

    def forward(self, x: Tensor) -> Tensor:
        """``avg_pool(tanh(conv(x) - 0.5) - 0.2)``."""
        return functional.avg_pool2d(torch.tanh(self.conv(x) - 0.5) - 0.2, kernel_size=2)


class Conv2dMishMish(Convolution):
    """A convolution through two activations."""

    def forward(self, x: Tensor) -> Tensor:
        """``mish(mish(conv(x)))``."""
        return functional.mish(functional.mish(self.conv(x)))


class Conv2dActivationBatchNorm(Convolution):
    """A convolution, an activation made of three, stored statistics."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x: Tensor) -> Tensor:
        """``batch_norm(y*tanh(softplus(y))) of y = conv(x)``."""
        y = self.conv(x)
        return self.norm(y * torch.tanh(functional.softplus(y)))


class Conv2dMultiplyLeakyReLUGELU(Convolution):
    """A convolution with a factor per channel through two activations."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.factor = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(leaky_relu(conv(x)*factor))``."""
        return functional.gelu(functional.leaky_relu(self.conv(x) * self.factor))


class Conv2dReLUHardSwish(Convolution):
    """A convolution, cut at 0, then a piecewise gate."""

    def forward(self, x: Tensor) -> Tensor:
        """``y*clamp((y + 3)/6) of y = relu(conv(x))``."""
        y = torch.relu(self.conv(x))
        return y * torch.clamp((y + 3.0) / 6.0, min=0.0, max=1.0)


class Conv2dHardSwishReLU(Convolution):
    """A convolution, gated, then cut at 0."""

    def forward(self, x: Tensor) -> Tensor:
        """``relu(hardswish(conv(x)))``."""
        return torch.relu(functional.hardswish(self.conv(x)))


class Conv2dAvgPoolSigmoidSum(Convolution):
    """Averages of a convolution, squashed and added up per sample."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum(sigmoid(avg_pool(conv(x))))``."""
        y = torch.sigmoid(functional.avg_pool2d(self.conv(x), kernel_size=2))
        return y.sum(dim=(1, 2, 3))


class Conv2dGELUGlobalAvgPool(Convolution):
    """An activated convolution, averaged over all positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of gelu(conv(x))``."""
        y = functional.gelu(self.conv(x))
        return functional.adaptive_avg_pool2d(y, 1).squeeze(-1).squeeze(-1)


class Conv2dDivideLeakyReLU(Convolution):
    """A convolution, halved, negative results scaled down."""

    def forward(self, x: Tensor) -> Tensor:
        """``leaky_relu(conv(x)/2)``."""
        return functional.leaky_relu(self.conv(x) / 2.0, negative_slope=0.01)


class Conv2dBatchNormScaling(Convolution):
    """A convolution with stored statistics, doubled."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x: Tensor) -> Tensor:
        """``2*batch_norm(conv(x))``."""
        return self.norm(self.conv(x)) * 2.0


class Conv2dTanhScalingBiasAddMax(Convolution):
    """A squashed, scaled and shifted convolution, its maxima."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``max_pool(2*tanh(conv(x)) + bias)``."""
        return functional.max_pool2d(torch.tanh(self.conv(x)) * 2.0 + self.bias, kernel_size=2)


class Conv2dGroupNormScaleMaxPoolClamp(GroupedConvolution):
    """A convolution normalised in groups, scaled, its limited maxima."""

    def __init__(self, channels: int, groups: int, filters_per_group: int, kernel: int) -> None:
        super().__init__(channels, groups, filters_per_group, kernel)
        filters = groups * filters_per_group
        self.scale = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``clamp(max_pool(group_norm(conv(x))*scale))``."""
        y = functional.max_pool2d(self.norm(self.conv(x)) * self.scale, kernel_size=2)
        return torch.clamp(y, min=0.0, max=1.0)


class Conv2dSubtractSubtractMish(Convolution):
    """A convolution, shifted twice and activated."""

    def forward(self, x: Tensor) -> Tensor:
        """``mish(conv(x) - 0.5 - 0.2)``."""
        return functional.mish(self.conv(x) - 0.5 - 0.2)


class Conv2dGroupNormTanhHardSwishResidualAddLogSumExp(GroupedConvolution):
    """A convolution plus its own activation, as one smooth maximum per position."""

    def forward(self, x: Tensor) -> Tensor:
        """``logsumexp over channels of (y + hardswish(tanh(group_norm(y)))) of y = conv(x)``."""
        y = self.conv(x)
        z = y + functional.hardswish(torch.tanh(self.norm(y)))
        return torch.logsumexp(z, dim=1, keepdim=True)
