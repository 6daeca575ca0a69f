"""Polynomial, rational and exponential formulas, as they are written down."""

import math

import torch
from torch import Tensor, nn


class PolynomialActivation(nn.Module):
    """A polynomial of degree three, power by power."""

    def forward(self, x: Tensor) -> Tensor:
        """``0.5 + 0.25*x + 0.125*x*x + 0.0625*x*x*x``."""
        return 0.5 + 0.25 * x + 0.125 * x * x + 0.0625 * x * x * x


class PadeTanh(nn.Module):
    """The hyperbolic tangent as a quotient of polynomials."""

    def forward(self, x: Tensor) -> Tensor:
        """``x*(27+x*x)/(27+9*x*x)``."""
        return x * (27.0 + x * x) / (27.0 + 9.0 * x * x)


class SquarePlus(nn.Module):
    """A smooth rectifier made of a root."""

    def forward(self, x: Tensor) -> Tensor:
        """``(x+sqrt(x**2+4))/2``."""
        return (x + torch.sqrt(x**2 + 4.0)) / 2.0


class InverseSquareRootUnit(nn.Module):
    """An element over the root of one plus its square."""

    def forward(self, x: Tensor) -> Tensor:
        """``x*(1+x**2)**-0.5``."""
        return x * (1.0 + x**2) ** -0.5


class ScaledSwish(nn.Module):
    """An element times the sigmoid of a multiple of it."""

    def forward(self, x: Tensor) -> Tensor:
        """``x/(1+exp(-1.702*x))``."""
        return x / (1.0 + torch.exp(-1.702 * x))


class LogCosh(nn.Module):
    """A smooth absolute error: the logarithm of the hyperbolic cosine, without overflow."""

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """``mean(abs(e) + log((1+exp(-2*abs(e)))/2))`` with ``e = predictions-targets``."""
        e = torch.abs(predictions - targets)
        return (e + torch.log((1.0 + torch.exp(-2.0 * e)) / 2.0)).mean()


class GaussianKernel(nn.Module):
    """The kernel of two sets of points in the plane."""

    def forward(self, x: Tensor, y: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """``exp(-(x-u)**2 - (y-v)**2)`` for every pair of points."""
        dx = x[:, None] - u[None, :]
        dy = y[:, None] - v[None, :]
        return torch.exp(-(dx**2) - dy**2)


class ProductKernel(nn.Module):
    """A kernel in space times a kernel in time."""

    def forward(self, x: Tensor, t: Tensor, y: Tensor, s: Tensor) -> Tensor:
        """``exp(-0.5*(x-y)**2)*exp(-abs(t-s))`` for every pair of points."""
        space = torch.exp(-0.5 * (x[:, None] - y[None, :]) ** 2)
        return space * torch.exp(-torch.abs(t[:, None] - s[None, :]))


class DecayedSoftmaxWeights(nn.Module):
    """Weights of attention that fade with the distance, before they are normalised."""

    def forward(self, scores: Tensor, distances: Tensor) -> Tensor:
        """``exp(scores-max)*exp(-abs(distances))``."""
        shifted = scores - scores.amax(dim=-1, keepdim=True)
        return torch.exp(shifted) * torch.exp(-torch.abs(distances))


class InverseSquareRootDecay(nn.Module):
    """The learning rate of a transformer: warm-up, then decay with the root of the step."""

    def forward(self, steps: Tensor) -> Tensor:
        """``min(steps**-0.5, steps*100**-1.5)/sqrt(512)``."""
        warm = steps * 100.0**-1.5
        return torch.minimum(steps**-0.5, warm) / math.sqrt(512.0)


class FoldedNormalization(nn.Module):
    """Normalisation by given statistics and an affine map, in one expression."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        """``weight*(x-mean)/sqrt(variance+1e-5)+bias``."""
        return self.weight * (x - mean) / torch.sqrt(variance + 1e-5) + self.bias


class HarmonicMix(nn.Module):
    """Two quantities in parallel: the inverse of the sum of their inverses, as one quotient."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """``x*y/(x+y)``."""
        return x * y / (x + y)


class ResidualModulation(nn.Module):
    """A feature-wise scale and shift, added to what they modulate."""

    def forward(self, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """``x + x*scale + shift``."""
        return x + x * scale + shift


class SaturationElasticity(nn.Module):
    """How many percent a saturating response grows by for one percent more of its input."""

    def forward(self, x: Tensor, half: Tensor) -> Tensor:
        """``x*f'(x)/f(x)`` with ``f = x/(half+x)`` and ``f' = half/(half+x)**2``."""
        return x * (half / (half + x) ** 2) / (x / (half + x))
