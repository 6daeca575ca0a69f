"""Losses: one number for a batch."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class MSELoss(nn.Module):
    """The mean squared difference."""

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """``mean((predictions-targets)**2)``."""
        return torch.mean((predictions - targets) ** 2)


class HuberLoss(nn.Module):
    """Squares of small differences, absolute values of large ones."""

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """``smooth_l1_loss(predictions, targets)``."""
        return functional.smooth_l1_loss(predictions, targets)


class HingeLoss(nn.Module):
    """The mean violation of a margin."""

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """``mean(max(1-predictions*targets, 0))``."""
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


class CosineSimilarityLoss(nn.Module):
    """The mean distance of directions."""

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """``mean(1-cosine_similarity(predictions, targets))``."""
        return torch.mean(1 - functional.cosine_similarity(predictions, targets, dim=1))


class KLDivLoss(nn.Module):
    """The divergence of two rows of probabilities, which the program normalises itself."""

    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """``mean over rows of sum(t*(log_softmax(targets)-log_softmax(predictions)))``."""
        log_targets = torch.log_softmax(targets, dim=-1)
        log_predictions = torch.log_softmax(predictions, dim=-1)
        difference = torch.exp(log_targets) * (log_targets - log_predictions)
        return difference.sum(dim=-1).mean()


class TripletMarginLoss(nn.Module):
    """How much farther the negative is from the anchor than the positive."""

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """``triplet_margin_loss(anchor, positive, negative)``."""
        return functional.triplet_margin_loss(anchor, positive, negative, margin=1.0)


class CrossEntropyLoss(nn.Module):
    """How unlikely the right classes are."""

    def forward(self, predictions: Tensor, classes: Tensor) -> Tensor:
        """``cross_entropy(predictions, classes)``, the classes as numbers."""
        return functional.cross_entropy(predictions, classes)
