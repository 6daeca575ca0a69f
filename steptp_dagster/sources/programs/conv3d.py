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
        self.conv = nn.Conv3d(channels, filters, kernel)


class GroupedConvolution(Convolution):
    """A convolution and a normalisation of its filters in groups."""

    def __init__(self, channels: int, groups: int, filters_per_group: int, kernel: int) -> None:
        super().__init__(channels, groups * filters_per_group, kernel)
        self.norm = nn.GroupNorm(groups, groups * filters_per_group)


class Conv3dGroupNormMean(GroupedConvolution):
    """A convolution normalised in groups, averaged over all positions."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of group_norm(conv(x))``."""
        return self.norm(self.conv(x)).mean(dim=(2, 3, 4))


class Conv3dMinSoftmax(Convolution):
    """The smallest slice of a convolution, its channels as probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """``softmax over channels of min over depth of conv(x)``."""
        return torch.softmax(torch.amin(self.conv(x), dim=2), dim=1)


class Conv3dHardSwishReLUSoftmaxMean(Convolution):
    """An activated convolution, its channels as probabilities, averaged."""

    def forward(self, x: Tensor) -> Tensor:
        """``mean over positions of softmax(relu(hardswish(conv(x))))``."""
        y = torch.relu(functional.hardswish(self.conv(x)))
        return torch.softmax(y, dim=1).mean(dim=(2, 3, 4))


class Conv3dMaxLogSumExpReLU(Convolution):
    """Maxima of a convolution, one smooth maximum over the channels."""

    def forward(self, x: Tensor) -> Tensor:
        """``relu(logsumexp over channels of max_pool(conv(x)))``."""
        y = functional.max_pool3d(self.conv(x), kernel_size=2)
        return torch.relu(torch.logsumexp(y, dim=1, keepdim=True))


class Conv3dMishTanh(Convolution):
    """A convolution through two activations."""

    def forward(self, x: Tensor) -> Tensor:
        """``tanh(mish(conv(x)))``."""
        return torch.tanh(functional.mish(self.conv(x)))


class Conv3dScalingTanhMultiplySigmoid(Convolution):
    """A convolution with a factor per channel before and after a tanh."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.scale = nn.Parameter(torch.randn(filters, 1, 1, 1))
        self.factor = nn.Parameter(torch.randn(filters, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``sigmoid(tanh(conv(x)*scale)*factor)``."""
        return torch.sigmoid(torch.tanh(self.conv(x) * self.scale) * self.factor)


class Conv3dSoftmaxMaxPoolMaxPool(Convolution):
    """Channels of a convolution as probabilities, pooled twice."""

    def forward(self, x: Tensor) -> Tensor:
        """``max_pool(max_pool(softmax over channels of conv(x)))``."""
        y = torch.softmax(self.conv(x), dim=1)
        return functional.max_pool3d(functional.max_pool3d(y, kernel_size=2), kernel_size=2)


class Conv3dMultiplyInstanceNormClampMultiplyMax(nn.Module):
    """A normalised and limited convolution with two factors per channel; the largest channel."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, filters, kernel, bias=False)
        self.before = nn.Parameter(torch.randn(filters, 1, 1, 1))
        self.norm = nn.InstanceNorm3d(filters)
        self.after = nn.Parameter(torch.randn(filters, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``max over channels of clamp(instance_norm(conv(x)*before))*after``."""
        y = torch.clamp(self.norm(self.conv(x) * self.before), min=-1.0, max=1.0)
        return torch.max(y * self.after, dim=1)[0]


class Conv3dReLULeakyReLUGELUSigmoidBiasAdd(Convolution):
    """A convolution through four activations, plus a bias."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``sigmoid(gelu(leaky_relu(relu(conv(x))))) + bias``."""
        y = functional.leaky_relu(torch.relu(self.conv(x)), negative_slope=0.01)
        return torch.sigmoid(functional.gelu(y)) + self.bias


class Conv3dGroupNormMinClamp(GroupedConvolution):
    """The smallest normalised channel of a convolution, limited."""

    def forward(self, x: Tensor) -> Tensor:
        """``clamp(min over channels of group_norm(conv(x)))``."""
        y = torch.amin(self.norm(self.conv(x)), dim=1, keepdim=True)
        return torch.clamp(y, min=-1.0, max=0.0)


class Conv3dDivideMaxGlobalAvgPoolBiasAddSum(Convolution):
    """Halved maxima of a convolution, averaged, shifted and added up."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``sum over channels of (mean over positions of max_pool(conv(x)/2) + bias)``."""
        y = functional.max_pool3d(self.conv(x) / 2.0, kernel_size=2)
        return (functional.adaptive_avg_pool3d(y, 1) + self.bias).sum(dim=1)


class Conv3dLeakyReLUSumClampGELU(Convolution):
    """An activated convolution plus a parameter, limited."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__(channels, filters, kernel)
        self.addend = nn.Parameter(torch.randn(filters, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(clamp(leaky_relu(conv(x)) + addend))``."""
        y = functional.leaky_relu(self.conv(x), negative_slope=0.2) + self.addend
        return functional.gelu(torch.clamp(y, min=-1.0, max=1.0))
