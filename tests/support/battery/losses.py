"""Battery: losses, with every reduction, weight and option."""

import torch
from torch import nn
from torch.nn import functional as fn

from tests.support.battery.values import Case, positive, real, truth, unit, whole

X, Y = real(4, 5), real(4, 5, seed=1)
ROW, OTHER = real(6), real(6, seed=1)
CLASSES = whole(5, 4)
WEIGHTS = positive(5)
SIGNS = truth(6) * 2.0 - 1
IGNORED = torch.tensor([1, -100, 4, -100])

CLASSIFICATION: dict[str, Case] = {
    "cross-entropy": (nn.CrossEntropyLoss(), (X, CLASSES)),
    "cross-entropy-sum": (nn.CrossEntropyLoss(reduction="sum"), (X, CLASSES)),
    "cross-entropy-none": (nn.CrossEntropyLoss(reduction="none"), (X, CLASSES)),
    "cross-entropy-weight": (nn.CrossEntropyLoss(WEIGHTS), (X, CLASSES)),
    "cross-entropy-weight-sum": (nn.CrossEntropyLoss(WEIGHTS, reduction="sum"), (X, CLASSES)),
    "cross-entropy-weight-none": (nn.CrossEntropyLoss(WEIGHTS, reduction="none"), (X, CLASSES)),
    "cross-entropy-smooth": (nn.CrossEntropyLoss(label_smoothing=0.1), (X, CLASSES)),
    "cross-entropy-smooth-sum": (
        nn.CrossEntropyLoss(label_smoothing=0.3, reduction="sum"),
        (X, CLASSES),
    ),
    "cross-entropy-smooth-weight": (
        nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.2),
        (X, CLASSES),
    ),
    "cross-entropy-smooth-weight-none": (
        nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.2, reduction="none"),
        (X, CLASSES),
    ),
    "cross-entropy-ignore": (nn.CrossEntropyLoss(ignore_index=2), (X, CLASSES)),
    "cross-entropy-ignore-weight": (
        nn.CrossEntropyLoss(WEIGHTS, ignore_index=2, label_smoothing=0.1),
        (X, CLASSES),
    ),
    "cross-entropy-ignore-none": (
        nn.CrossEntropyLoss(ignore_index=0, reduction="none"),
        (X, CLASSES),
    ),
    "cross-entropy-ignored-constant": (
        lambda x: fn.cross_entropy(x, torch.tensor([1, -100, 4, -100])),
        (X,),
    ),
    "cross-entropy-soft": (lambda x, y: fn.cross_entropy(x, y.softmax(1)), (X, Y)),
    "cross-entropy-soft-weight": (
        lambda x, y, w: fn.cross_entropy(x, y.softmax(1), weight=w),
        (X, Y, WEIGHTS),
    ),
    "cross-entropy-soft-smooth": (
        lambda x, y: fn.cross_entropy(x, y.softmax(1), label_smoothing=0.1, reduction="sum"),
        (X, Y),
    ),
    "cross-entropy-soft-image": (
        lambda x, y: fn.cross_entropy(x, y.softmax(1)),
        (real(2, 3, 4), real(2, 3, 4, seed=1)),
    ),
    "cross-entropy-image": (nn.CrossEntropyLoss(), (real(2, 3, 2, 4), whole(3, 2, 2, 4))),
    "cross-entropy-image-weight": (
        nn.CrossEntropyLoss(positive(3), label_smoothing=0.1),
        (real(2, 3, 4), whole(3, 2, 4)),
    ),
    "cross-entropy-row": (nn.CrossEntropyLoss(), (real(5), whole(5))),
    "cross-entropy-row-weight": (
        nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.1),
        (real(5), whole(5)),
    ),
    "cross-entropy-tokens": (
        lambda x, t: fn.cross_entropy(x.view(-1, 5), t.view(-1), ignore_index=-1),
        (real(2, 3, 5), whole(5, 2, 3)),
    ),
    "nll": (nn.NLLLoss(), (X.log_softmax(1), CLASSES)),
    "nll-weight": (nn.NLLLoss(WEIGHTS), (X, CLASSES)),
    "nll-weight-ignore": (nn.NLLLoss(WEIGHTS, ignore_index=1, reduction="sum"), (X, CLASSES)),
    "nll-none": (nn.NLLLoss(reduction="none", ignore_index=3), (X, CLASSES)),
    "nll-image": (nn.NLLLoss(positive(3)), (real(2, 3, 2, 2), whole(3, 2, 2, 2))),
    "bce": (nn.BCELoss(), (unit(4, 5), unit(4, 5, seed=1))),
    "bce-weight": (nn.BCELoss(positive(5), reduction="sum"), (unit(4, 5), unit(4, 5, seed=1))),
    "bce-edges": (nn.BCELoss(), (truth(4, 5).float(), truth(4, 5, seed=1).float())),
    "bce-logits": (nn.BCEWithLogitsLoss(), (X * 9, unit(4, 5))),
    "bce-logits-pos": (nn.BCEWithLogitsLoss(pos_weight=positive(5)), (X, unit(4, 5))),
    "bce-logits-both": (
        nn.BCEWithLogitsLoss(positive(5), reduction="none", pos_weight=positive(5, seed=1)),
        (X, unit(4, 5)),
    ),
    "multi-margin": (nn.MultiMarginLoss(), (X, CLASSES)),
    "multi-margin-p": (nn.MultiMarginLoss(2, 0.5, WEIGHTS), (X, CLASSES)),
    "multilabel-margin": (
        nn.MultiLabelMarginLoss(),
        (X, torch.tensor([[1, 3, -1, 0, 0]]).expand(4, 5)),
    ),
    "multilabel-soft": (nn.MultiLabelSoftMarginLoss(), (X, truth(4, 5).float())),
    "multilabel-soft-weight": (nn.MultiLabelSoftMarginLoss(WEIGHTS), (X, truth(4, 5).float())),
    "focal-by-hand": (
        lambda x, t: (
            (1 - torch.exp(-fn.cross_entropy(x, t, reduction="none"))) ** 2
            * fn.cross_entropy(x, t, reduction="none")
        ).mean(),
        (X, CLASSES),
    ),
    "dice-by-hand": (
        lambda x, y: 1 - 2 * (x.sigmoid() * y).sum() / (x.sigmoid().sum() + y.sum() + 1e-6),
        (X, truth(4, 5).float()),
    ),
    "ctc": (
        lambda x, t: fn.ctc_loss(x, t, torch.tensor([5, 5]), torch.tensor([2, 2])),
        (real(5, 2, 4).log_softmax(-1), whole(4, 2, 2, low=1)),
    ),
}
REGRESSION: dict[str, Case] = {
    "mse": (nn.MSELoss(), (X, Y)),
    "mse-none": (nn.MSELoss(reduction="none"), (X, Y)),
    "mse-sum": (nn.MSELoss(reduction="sum"), (X, Y)),
    "mse-by-hand": (lambda x, y: torch.mean((x - y) ** 2), (X, Y)),
    "l1": (nn.L1Loss(), (X, Y)),
    "l1-sum": (nn.L1Loss(reduction="sum"), (X, Y)),
    "smooth-l1": (nn.SmoothL1Loss(), (X, Y)),
    "smooth-l1-beta": (nn.SmoothL1Loss(reduction="none", beta=0.25), (X, Y)),
    "smooth-l1-zero": (nn.SmoothL1Loss(beta=0.0), (X, Y)),
    "huber": (nn.HuberLoss(), (X, Y)),
    "huber-delta": (nn.HuberLoss(reduction="sum", delta=0.5), (X, Y)),
    "kl": (nn.KLDivLoss(reduction="batchmean"), (X.log_softmax(1), Y.softmax(1))),
    "kl-zeros": (nn.KLDivLoss(reduction="sum"), (X.log_softmax(1), torch.eye(4, 5))),
    "kl-log": (nn.KLDivLoss(reduction="batchmean", log_target=True), (X, Y)),
    "kl-mean": (nn.KLDivLoss(), (X, Y.softmax(1))),
    "kl-none": (nn.KLDivLoss(reduction="none", log_target=True), (X, Y)),
    "poisson": (nn.PoissonNLLLoss(), (X, Y.abs())),
    "poisson-full": (nn.PoissonNLLLoss(False, True, reduction="sum"), (X.abs(), Y.abs().round())),
    "gaussian": (nn.GaussianNLLLoss(), (X, Y, positive(4, 5))),
    "gaussian-full": (nn.GaussianNLLLoss(full=True, reduction="none"), (X, Y, positive(4, 1))),
    "soft-margin": (nn.SoftMarginLoss(), (ROW, SIGNS)),
    "hinge-by-hand": (lambda x, y: torch.mean(torch.clamp(1 - x * y, min=0)), (ROW, SIGNS)),
    "hinge-embedding": (nn.HingeEmbeddingLoss(), (ROW, SIGNS)),
    "hinge-embedding-margin": (nn.HingeEmbeddingLoss(0.5, reduction="none"), (ROW, SIGNS)),
    "margin-ranking": (nn.MarginRankingLoss(), (ROW, OTHER, SIGNS)),
    "margin-ranking-margin": (nn.MarginRankingLoss(0.5, reduction="sum"), (ROW, OTHER, SIGNS)),
    "cosine-embedding": (nn.CosineEmbeddingLoss(), (X, Y, SIGNS[:4])),
    "cosine-embedding-margin": (
        nn.CosineEmbeddingLoss(0.25, reduction="none"),
        (X, Y, SIGNS[:4]),
    ),
    "cosine-loss-by-hand": (lambda x, y: torch.mean(1 - fn.cosine_similarity(x, y, dim=1)), (X, Y)),
    "triplet": (nn.TripletMarginLoss(), (X, Y, real(4, 5, seed=2))),
    "triplet-options": (
        nn.TripletMarginLoss(0.5, p=1, swap=True, reduction="none"),
        (X, Y, real(4, 5, seed=2)),
    ),
    "triplet-distance": (
        nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(p=2)),
        (X, Y, real(4, 5, seed=2)),
    ),
    "contrastive": (
        lambda x, y: fn.cross_entropy(
            fn.normalize(x + 0.1) @ fn.normalize(y + 0.1).T / 0.07, torch.arange(4)
        ),
        (X, Y),
    ),
}
