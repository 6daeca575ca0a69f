"""Densities, likelihoods and divergences, as textbooks write them."""

import math

import torch
from torch import Tensor, nn


class GaussianLogDensity(nn.Module):
    """The logarithm of a normal density with a scale for every element, summed over a row."""

    def forward(self, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
        """``sum(-0.5*((x-mean)/scale)**2 - log(scale) - 0.5*log(2*pi))``."""
        z = (x - mean) / scale
        density = -0.5 * z * z - torch.log(scale) - 0.5 * math.log(2 * math.pi)
        return density.sum(dim=-1)


class LogNormalLogDensity(nn.Module):
    """The logarithm of a log-normal density."""

    def forward(self, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
        """``-log(x*scale) - 0.5*((log(x)-mean)/scale)**2 - 0.5*log(2*pi)``."""
        z = (torch.log(x) - mean) / scale
        return -torch.log(x * scale) - 0.5 * z**2 - 0.5 * math.log(2 * math.pi)


class StudentLogDensity(nn.Module):
    """The logarithm of Student's density with 3 degrees of freedom, but for its constant."""

    def forward(self, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
        """``-2*log(1+((x-mean)/scale)**2/3) - log(scale)``."""
        z = (x - mean) / scale
        return -2.0 * torch.log(1.0 + z**2 / 3.0) - torch.log(scale)


class BetaLogDensity(nn.Module):
    """The logarithm of a beta density with whole parameters, but for its constant."""

    def forward(self, x: Tensor) -> Tensor:
        """``2*log(x) + 3*log(1-x)``."""
        return 2.0 * torch.log(x) + 3.0 * torch.log(1.0 - x)


class GammaLogDensity(nn.Module):
    """The logarithm of a gamma density of shape 3, but for its constant."""

    def forward(self, x: Tensor, rate: Tensor) -> Tensor:
        """``3*log(rate) + 2*log(x) - rate*x``."""
        return 3.0 * torch.log(rate) + 2.0 * torch.log(x) - rate * x


class BernoulliLogLikelihood(nn.Module):
    """How likely truth values are under given probabilities."""

    def forward(self, probabilities: Tensor, targets: Tensor) -> Tensor:
        """``mean(t*log(p) + (1-t)*log(1-p))``."""
        p, t = probabilities, targets
        return (t * torch.log(p) + (1.0 - t) * torch.log(1.0 - p)).mean()


class PoissonLogLikelihood(nn.Module):
    """How likely counts are under given rates, but for a constant."""

    def forward(self, rates: Tensor, counts: Tensor) -> Tensor:
        """``sum(counts*log(rates) - rates)``."""
        return (counts * torch.log(rates) - rates).sum(dim=-1)


class CategoricalLogLikelihood(nn.Module):
    """How likely counts of classes are under a softmax, as its definition says."""

    def forward(self, logits: Tensor, counts: Tensor) -> Tensor:
        """``sum(counts*log(softmax(logits)))`` over every row."""
        return (counts * torch.log(torch.softmax(logits, dim=-1))).sum(dim=-1)


class LogisticLoss(nn.Module):
    """The loss of logistic regression with labels -1 and 1."""

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """``mean(log(1+exp(-labels*scores)))``."""
        return torch.log(1.0 + torch.exp(-labels * scores)).mean()


class FocalLoss(nn.Module):
    """The logarithm of the probability of the right class, weighted by what is left to learn."""

    def forward(self, probabilities: Tensor) -> Tensor:
        """``mean(-(1-p)**2*log(p))``."""
        p = probabilities
        return (-((1.0 - p) ** 2) * torch.log(p)).mean()


class LabelSmoothingCrossEntropy(nn.Module):
    """The cross-entropy with a part of the target spread over all classes."""

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """``mean(-sum((0.9*targets+0.1/classes)*log_softmax(logits)))``."""
        smooth = targets * 0.9 + 0.1 / targets.shape[-1]
        return -(smooth * torch.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


class GaussianDivergence(nn.Module):
    """The Kullback-Leibler divergence of two normal distributions with diagonal covariance."""

    def forward(
        self, mean: Tensor, scale: Tensor, prior_mean: Tensor, prior_scale: Tensor
    ) -> Tensor:
        """``sum(log(t/s) + (s**2+(m-n)**2)/(2*t**2) - 0.5)``."""
        difference = mean - prior_mean
        spread = (scale**2 + difference**2) / (2.0 * prior_scale**2)
        return (torch.log(prior_scale / scale) + spread - 0.5).sum(dim=-1)


class CategoricalEntropy(nn.Module):
    """The entropy of rows of probabilities that a softmax makes."""

    def forward(self, logits: Tensor) -> Tensor:
        """``-sum(p*log(p))`` with ``p = softmax(logits)``."""
        p = torch.softmax(logits, dim=-1)
        return -(p * torch.log(p)).sum(dim=-1)


class LogOdds(nn.Module):
    """How a probability compares with its complement, on a logarithmic scale."""

    def forward(self, probabilities: Tensor) -> Tensor:
        """``log(p/(1-p))``."""
        return torch.log(probabilities / (1.0 - probabilities))


class GeometricMean(nn.Module):
    """The geometric mean of every row."""

    def forward(self, x: Tensor) -> Tensor:
        """``exp(mean(log(x)))``."""
        return torch.exp(torch.log(x).mean(dim=-1))


class LogSumOfProducts(nn.Module):
    """The logarithm of an expectation: weights times values, both positive."""

    def forward(self, weights: Tensor, values: Tensor) -> Tensor:
        """``log(sum(weights*values)) - log(sum(weights))``."""
        return torch.log((weights * values).sum(dim=-1)) - torch.log(weights.sum(dim=-1))


class PearsonResiduals(nn.Module):
    """How far truth values are from given probabilities, in units of their variance."""

    def forward(self, probabilities: Tensor, targets: Tensor) -> Tensor:
        """``sum((t-p)**2/(p*(1-p)))`` over every row."""
        p, t = probabilities, targets
        return ((t - p) ** 2 / (p * (1.0 - p))).sum(dim=-1)


class LomaxSecondMoment(nn.Module):
    """The second moment of a Pareto distribution that starts at zero."""

    def forward(self, shape: Tensor, scale: Tensor) -> Tensor:
        """``2*scale**2/((shape-1)*(shape-2))``."""
        return 2.0 * scale**2 / ((shape - 1.0) * (shape - 2.0))


class DensityRatio(nn.Module):
    """How much likelier data is under one normal distribution than under another, equally wide."""

    def forward(self, x: Tensor, mean: Tensor, other: Tensor, scale: Tensor) -> Tensor:
        """``(exp(-z**2/2)/scale)/(exp(-w**2/2)/scale)`` with ``z``, ``w`` in units of ``scale``."""
        z = (x - mean) / scale
        w = (x - other) / scale
        density = torch.exp(-0.5 * z**2) / scale
        return density / (torch.exp(-0.5 * w**2) / scale)
