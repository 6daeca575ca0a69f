"""Element-wise activation functions."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class ReLU(nn.Module):
    """The larger of 0 and the element."""

    def forward(self, x: Tensor) -> Tensor:
        """``max(x, 0)``."""
        return torch.relu(x)


class LeakyReLU(nn.Module):
    """Negative elements scaled down."""

    def forward(self, x: Tensor) -> Tensor:
        """``x`` where positive, else ``0.01*x``."""
        return functional.leaky_relu(x, negative_slope=0.01)


class Sigmoid(nn.Module):
    """The logistic function."""

    def forward(self, x: Tensor) -> Tensor:
        """``1/(1+exp(-x))``."""
        return torch.sigmoid(x)


class Tanh(nn.Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """``tanh(x)``."""
        return torch.tanh(x)


class Swish(nn.Module):
    """The element times its sigmoid, as two operators."""

    def forward(self, x: Tensor) -> Tensor:
        """``x*sigmoid(x)``."""
        return x * torch.sigmoid(x)


class GELU(nn.Module):
    """The element times the normal distribution function at it, exact or approximated."""

    def __init__(self, tanh: int) -> None:
        super().__init__()
        self.approximate = "tanh" if tanh else "none"

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(x)``."""
        return functional.gelu(x, approximate=self.approximate)


class NewGELU(nn.Module):
    """The tanh approximation of GELU, written out."""

    def forward(self, x: Tensor) -> Tensor:
        """``0.5*x*(1+tanh(sqrt(2/pi)*(x+0.044715*x**3)))``."""
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


class SELU(nn.Module):
    """The self-normalising exponential unit."""

    def forward(self, x: Tensor) -> Tensor:
        """``selu(x)``."""
        return torch.selu(x)


class HardSigmoid(nn.Module):
    """A piecewise linear sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        """``min(max(x+3, 0), 6)/6``."""
        return functional.hardsigmoid(x)


class Softplus(nn.Module):
    """A smooth maximum of 0 and the element."""

    def forward(self, x: Tensor) -> Tensor:
        """``log(1+exp(x))``."""
        return functional.softplus(x)


class Softsign(nn.Module):
    """A slow sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        """``x/(1+abs(x))``."""
        return x / (1 + torch.abs(x))


class ELU(nn.Module):
    """Negative elements through an exponential."""

    def forward(self, x: Tensor) -> Tensor:
        """``x`` where positive, else ``exp(x)-1``."""
        return functional.elu(x, alpha=1.0)


class HardTanh(nn.Module):
    """The element limited to -1 .. 1."""

    def forward(self, x: Tensor) -> Tensor:
        """``min(max(x, -1), 1)``."""
        return functional.hardtanh(x, min_val=-1.0, max_val=1.0)
