"""Battery: all kinds of nests on extents of 1, on scalars, and on dimensions beyond one block."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as fn

from tests.support.battery.values import Case, real, whole

#: Functions of a tensor and a dimension.
ALONG: tuple[Callable[[Tensor, int], object], ...] = (
    lambda x, d: x.sum(d),
    lambda x, d: x.sum(d, keepdim=True) * x,
    lambda x, d: x.mean(d),
    lambda x, d: x.prod(d),
    lambda x, d: x.amax(d),
    lambda x, d: x.max(d, keepdim=True),
    lambda x, d: x.min(d),
    lambda x, d: (x.argmax(d), x.argmin(d, keepdim=True)),
    lambda x, d: x.var(d, correction=0),
    lambda x, d: torch.linalg.vector_norm(x, dim=d),
    lambda x, d: x.logsumexp(d),
    lambda x, d: (x.softmax(d), x.log_softmax(d)),
    lambda x, d: (x.cumsum(d), x.cumprod(d), x.logcumsumexp(d)),
    lambda x, d: x.cummax(d),
    lambda x, d: x.sort(stable=True, dim=d),
    lambda x, d: x.topk(1, d)[0],
    lambda x, d: (x.median(d)[0], x.kthvalue(1, d)[0]),
    lambda x, d: ((x > 0).any(d), (x > 0).all(d)),
)
#: Functions of a tensor with dimensions, and one of them.
WITHIN: tuple[Callable[[Tensor, int], object], ...] = (
    lambda x, d: (x.flip(d), x.roll(1, d)),
    lambda x, d: x.unbind(d)[0],
    lambda x, d: torch.cat([x, x + 1, x[:0]] if d == 0 else [x, x + 1], d),
    lambda x, d: torch.stack([x, x], d),
    lambda x, d: x.repeat_interleave(2, d),
    lambda x, d: x.narrow(d, 0, 1) + x,
    lambda x, d: x.index_select(d, torch.tensor([0, -1]) % x.shape[d]),
    lambda x, d: x.gather(d, x.argmax(d, keepdim=True)),
    lambda x, d: x.scatter_add(d, torch.zeros(x.shape, dtype=torch.int64), x),
    lambda x, d: x.index_add(d, torch.zeros(x.shape[d], dtype=torch.int64), x),
    lambda x, d: x.scatter(d, x.argmin(d, keepdim=True), 7.0),
    lambda x, d: fn.normalize(x + 0.125, dim=d),
    lambda x, d: torch.diff(torch.cat([x, x], d), dim=d),
    lambda x, d: fn.glu(torch.cat([x, x], d), d),
)


def along(
    dim: int, functions: tuple[Callable[[Tensor, int], object], ...]
) -> Callable[..., object]:
    """All functions at once, along one dimension."""
    return lambda x: [function(x, dim) for function in functions]


SHAPES: tuple[tuple[int, ...], ...] = (
    (1,),
    (5,),
    (1, 1),
    (1, 4),
    (4, 1),
    (2, 1, 3),
    (1, 3, 1),
)
EDGES: dict[str, Case] = {
    **{
        f"along-{'x'.join(map(str, shape))}-{dim}": (along(dim, ALONG), (real(*shape),))
        for shape in SHAPES
        for dim in range(len(shape))
    },
    **{
        f"within-{'x'.join(map(str, shape))}-{dim}": (along(dim, WITHIN), (real(*shape),))
        for shape in SHAPES
        for dim in range(len(shape))
    },
    "along-scalar": (along(0, ALONG), (real(),)),
    "along-negative": (along(-1, ALONG), (real(2, 3),)),
    "within-negative": (along(-2, WITHIN), (real(2, 3),)),
    "conv-of-one": (fn.conv2d, (real(1, 1, 1, 1), real(1, 1, 1, 1), real(1))),
    "conv-padded-from-nothing": (
        lambda x, w: fn.conv2d(x, w, padding=2, dilation=2),
        (real(1, 1, 1, 1), real(1, 1, 3, 3)),
    ),
    "transposed-of-one": (
        lambda x, w: fn.conv_transpose2d(x, w, stride=3, output_padding=2),
        (real(1, 1, 1, 1), real(1, 1, 1, 1)),
    ),
    "pools-of-one": (
        lambda x: (fn.max_pool2d(x, 1), fn.avg_pool2d(x, 3, 1, 1), fn.adaptive_avg_pool2d(x, 2)),
        (real(1, 1, 1, 1),),
    ),
    "norms-of-one": (
        lambda x: (fn.group_norm(x, 1), fn.layer_norm(x, (1,)), fn.local_response_norm(x, 2)),
        (real(1, 2, 1),),
    ),
    "matmul-of-one": (
        lambda x, y: (x @ y, x[0] @ y, x @ y[:, 0], x[0] @ y[:, 0]),
        (real(1, 1), real(1, 1)),
    ),
    "losses-of-one": (
        lambda x, t: (fn.cross_entropy(x, t, label_smoothing=0.1), fn.mse_loss(x, x + 1)),
        (real(1, 1), whole(1, 1)),
    ),
}
LONG: dict[str, Case] = {
    "long-reductions": (
        lambda x: (x.sum(1), x.sum(0), x.argmax(0), x.amax(1), x.var(0)),
        (real(1500, 2),),
    ),
    "long-scans": (lambda x: (x.cumsum(1), x.cummax(1), x.logcumsumexp(1)), (real(1500, 3),)),
    "long-scan": (lambda x: x.cumsum(0), (real(1500, 1),)),
    "long-sorts": (
        lambda x: (x.sort(stable=True, dim=1), x.median(1)[0], x.topk(2, 1)[0]),
        (real(1030, 3),),
    ),
    "long-views": (
        lambda x: (x.T + 1, x.flip(0), x.view(2, -1) * 2, torch.cat([x, x[:30]])),
        (real(1026, 2),),
    ),
    "long-scatters": (
        lambda x, i, y: (
            x.index_add(0, i, y),
            x.index_copy(0, i[:1], y[:1]),
            x.scatter_reduce(0, i[:, None], y, "mean", include_self=False),
            x.scatter_reduce(0, i[:, None], y, "amax"),
        ),
        (real(1500, 1), whole(1500, 2), real(2, 1)),
    ),
    "long-writes": (
        lambda x: torch.slice_scatter(torch.select_scatter(x, x[1], 0, 3), x[:500], 0, 0, 1500, 3),
        (real(1500, 2),),
    ),
    "long-losses": (
        lambda x, t: fn.cross_entropy(x, t, reduction="none", ignore_index=1),
        (real(1100, 2), whole(2, 1100)),
    ),
    "long-embedding": (fn.embedding, (whole(7, 1100), real(7, 2))),
    "long-searches": (
        lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
        (real(1100),),
    ),
    "long-second": (lambda x: (x.softmax(1), x.cumsum(0)), (real(2, 1100),)),
    "long-angles": (torch.atan2, (real(1100), real(1100, seed=1))),
}
