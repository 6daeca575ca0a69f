"""Battery: views, copies, writes to parts, positions, tensors made from nothing."""

import torch
from torch import Tensor
from torch.nn import functional as fn

from tests.support.battery.values import Case, positive, real, truth, whole

VIEWS: dict[str, Case] = {
    "transpose": (lambda x: x.transpose(0, -1).contiguous() + 1, (real(2, 3, 4),)),
    "permute": (lambda x: x.permute(1, -1, 0) * 2, (real(2, 3, 4),)),
    "movedim": (lambda x: x.movedim((0, 1), (-1, 0)) * 2, (real(2, 3, 4),)),
    "swapaxes": (lambda x: x.swapaxes(0, 1) * 2, (real(2, 3, 4),)),
    "mT-adjoint": (lambda x: x.mT + x.adjoint(), (real(2, 3, 4),)),
    "reshape-infer": (lambda x: x.reshape(4, -1) * 2, (real(2, 3, 4),)),
    "reshape-noncontiguous": (lambda x: x.reshape(6, 2) * 2, (real(4, 3).T,)),
    "reshape-scalar": (lambda x: x.reshape(()) * x.reshape(1, 1), (real(1),)),
    "view-dtype-same": (lambda x: x.view(-1) * 2, (real(2, 3),)),
    "view-as-bits": (lambda x: x.view(torch.int32), (real(2, 3),)),
    "flatten": (lambda x: torch.flatten(x, 1) * 2, (real(2, 3, 4),)),
    "unflatten": (lambda x: x.unflatten(1, (2, 3)) * 2, (real(2, 6),)),
    "ravel": (lambda x: x.ravel() * 2, (real(3, 2).T,)),
    "squeeze-all": (lambda x: x.squeeze() * 2, (real(1, 3, 1),)),
    "squeeze-none": (lambda x: x.squeeze(0) * 2, (real(2, 3),)),
    "squeeze-dims": (lambda x: x.squeeze((0, 2)) * 2, (real(1, 3, 1),)),
    "unsqueeze": (lambda x: x[None, :, None] * x.unsqueeze(-1), (real(3),)),
    "expand": (lambda x: x.expand(2, -1, 4) * 2, (real(3, 1),)),
    "expand-as": (lambda x, y: x.expand_as(y) + y, (real(1, 4), real(3, 4))),
    "broadcast-to": (lambda x: torch.broadcast_to(x, (2, 3)) * 2, (real(3),)),
    "broadcast-tensors": (torch.broadcast_tensors, (real(3, 1), real(4))),
    "repeat": (lambda x: x.repeat(2, 1, 3), (real(2, 2),)),
    "tile": (lambda x: torch.tile(x, (2, 2)), (real(2, 3),)),
    "repeat-interleave": (lambda x: x.repeat_interleave(3, 0) + 1, (real(2, 3),)),
    "repeat-interleave-flat": (lambda x: torch.repeat_interleave(x, 2), (real(2, 3),)),
    "repeat-interleave-list": (
        lambda x: torch.repeat_interleave(x, torch.tensor([1, 2]), dim=0, output_size=3),
        (real(2, 3),),
    ),
    "chunk": (lambda x: [c * 2 for c in x.chunk(3, 1)], (real(2, 7),)),
    "split": (lambda x: torch.split(x, [1, 4, 2], -1), (real(2, 7),)),
    "tensor-split": (lambda x: torch.tensor_split(x, (1, 4), 1), (real(2, 7),)),
    "hsplit": (lambda x: torch.hsplit(x, 3), (real(2, 6),)),
    "unbind": (lambda x: torch.unbind(x, 1), (real(2, 3),)),
    "cat-negative": (lambda x, y: torch.cat((x, y), -1), (real(2, 3), real(2, 1))),
    "cat-one": (lambda x: torch.cat([x], 0), (real(2, 3),)),
    "cat-empty": (lambda x: torch.cat([x, x[:0]], 0), (real(2, 3),)),
    "cat-same": (lambda x: torch.cat([x, x, x * 2]), (real(2, 3),)),
    "stack": (lambda x, y: torch.stack((x, y), -1), (real(2, 3), real(2, 3, seed=1))),
    "hstack": (lambda x, y: (torch.hstack((x, y)), torch.vstack((x, y))), (real(3), real(3))),
    "dstack": (lambda x, y: torch.dstack((x, y)), (real(2, 3), real(2, 3))),
    "column-stack": (lambda x, y: torch.column_stack((x, y)), (real(3), real(3, 2))),
    "slice": (lambda x: x[:, 1:-1:2] * 2, (real(3, 8),)),
    "slice-beyond": (lambda x: x[:, -100:100] * 2, (real(3, 4),)),
    "slice-empty": (lambda x: x[:, 3:3].sum() + x.sum(), (real(3, 4),)),
    "narrow": (lambda x: x.narrow(1, 1, 2) * 2, (real(3, 4),)),
    "select": (lambda x: x.select(-1, -2) * 2, (real(3, 4),)),
    "ellipsis": (lambda x: x[..., 0] + x[0, ..., 1:2].sum(), (real(2, 3, 4),)),
    "newaxis": (lambda x: x[:, None] - x[None], (real(4),)),
    "flip": (lambda x: torch.flip(x, (0, -1)), (real(2, 3, 4),)),
    "fliplr": (lambda x: torch.fliplr(x) + torch.flipud(x), (real(3, 3),)),
    "rot90": (lambda x: torch.rot90(x, 1, (0, 1)) * 2, (real(2, 3),)),
    "rot90-more": (lambda x: torch.rot90(x, 3) + torch.rot90(x, -1), (real(3, 3),)),
    "roll": (lambda x: torch.roll(x, (1, -2), (0, 1)), (real(3, 5),)),
    "roll-flat": (lambda x: torch.roll(x, -4), (real(3, 5),)),
    "as-strided": (lambda x: x.as_strided((2, 3), (1, 2)) * 2, (real(8),)),
    "as-strided-windows": (lambda x: torch.as_strided(x, (4, 3), (2, 1), 1).sum(1), (real(12),)),
    "unfold": (lambda x: x.unfold(0, 3, 2).mean(-1), (real(9),)),
    "diagonal": (lambda x: x.diagonal(dim1=-2, dim2=-1) * 2, (real(2, 3, 3),)),
    "diagonal-offset": (lambda x: torch.diagonal(x, -1, 1, 2), (real(2, 3, 4),)),
    "tril": (lambda x: torch.tril(x) + torch.triu(x, 1), (real(3, 4),)),
    "triu-batch": (lambda x: x.triu(-1), (real(2, 3, 4),)),
    "tril-int": (lambda i: i.tril(), (whole(9, 3, 3),)),
    "tril-half": (lambda x: x.tril(), (real(3, 3).half(),)),
    "meshgrid": (
        lambda x, y: torch.meshgrid(x, y, indexing="ij"),
        (real(3), real(4)),
    ),
    "meshgrid-xy": (lambda x, y: torch.meshgrid(x, y, indexing="xy")[0] * 2, (real(3), real(4))),
    "noncontiguous-add": (lambda x, y: x + y, (real(4, 3).T, real(3, 4))),
    "expanded-input": (lambda x: x.sum(0), (real(1, 4).expand(3, 4),)),
    "strided-input": (lambda x: x * 2, (real(6, 6)[::2, 1::3],)),
    "size-one": (lambda x: x.sum(0).mean(), (real(1, 1, 1),)),
    "shape-arithmetic": (lambda x: x / x.shape[0] + x.numel() + x.dim(), (real(2, 3),)),
    "einops-like": (
        lambda x: x.view(2, 3, 2, 2).permute(0, 2, 1, 3).reshape(4, 6) * 2,
        (real(2, 3, 4),),
    ),
    "atleast": (torch.atleast_2d, (real(3),)),
}


def columns_written(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 0] = 1.5
    y[0, 1:] = x[1, 1:]
    y[-1] = 0
    return y


def steps_written(x: Tensor) -> Tensor:
    y = torch.zeros(6, 4)
    y[::2] = x
    y[1::2, 1:3] += x[:, :2]
    return y


def filled_in_loop(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i].sum() * i
    return y


def masked_written(x: Tensor, m: Tensor) -> Tensor:
    y = x.clone()
    y[m] = -1.0
    return y


def accumulated(x: Tensor) -> Tensor:
    total = torch.zeros(x.shape[1])
    for row in x:
        total += row
        total *= 0.5
    return total


def list_written(x: Tensor) -> Tensor:
    y = x.clone()
    y[[0, 2]] = 5.0
    return y


def index_written(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    y = x.clone()
    y[i] = v
    return y


def at_later_dimensions(x: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Writes where the first indexed dimension is not the first, and where two are apart."""
    middle, apart, wide = x.clone(), x.clone(), x.clone()
    middle[:, i] = x[:, :2] * 2
    apart[i, :, j] = x[:2, :, 0] + 1
    wide[i[:, None], j] += 1.0
    return middle, apart, wide


def row_of_view(x: Tensor) -> Tensor:
    y = x * 1
    z = y.view(2, 6)
    z[:, 1].mul_(3)
    y.t()[0].add_(1)
    return y + z.sum()


WRITES: dict[str, Case] = {
    "add-inplace": (lambda x: (x * 1).add_(2).mul_(3).sub_(x).div_(2), (real(3, 4),)),
    "operator-inplace": (accumulated, (real(3, 4),)),
    "masked-fill-inplace": (lambda x, m: x.clone().masked_fill_(m, 0.5), (real(3, 4), truth(4))),
    "clamp-inplace": (lambda x: x.clone().clamp_(0, 1).relu_().exp_(), (real(3, 4),)),
    "fill": (lambda x: x.clone().fill_(2) + x.clone().zero_(), (real(3, 4),)),
    "fill-diagonal": (lambda x: x.clone().fill_diagonal_(7), (real(3, 4),)),
    "copy": (lambda x, y: x.clone().copy_(y), (real(3, 4), whole(5, 4))),
    "columns": (columns_written, (real(3, 4),)),
    "steps": (steps_written, (real(3, 4),)),
    "loop": (filled_in_loop, (real(3, 4),)),
    "through-views": (row_of_view, (real(3, 4),)),
    "mask": (masked_written, (real(3, 4), truth(3, 4))),
    "list": (list_written, (real(3, 4),)),
    "index": (index_written, (real(5, 3), torch.tensor([3, 0]), real(2, 3, seed=1))),
    "later-dimensions": (
        at_later_dimensions,
        (real(3, 3, 4), torch.tensor([2, 0]), torch.tensor([1, 2])),
    ),
    "from-the-end": (index_written, (real(5, 3), torch.tensor([-1, 0]), real(2, 3, seed=1))),
    "segment-softmax": (
        lambda x, i: x.exp() / torch.zeros(4).index_add(0, i, x.exp())[i],
        (real(6), whole(4, 6)),
    ),
    "counts": (
        lambda i: torch.zeros(4, dtype=torch.int64).scatter_add(0, i, torch.ones_like(i)),
        (whole(4, 9),),
    ),
    "slice-scatter": (
        lambda x, y: torch.slice_scatter(x, y, 1, 1, 4, 2),
        (real(3, 5), real(3, 2)),
    ),
    "select-scatter": (lambda x, y: torch.select_scatter(x, y, -1, -2), (real(3, 5), real(3))),
    "diagonal-scatter": (lambda x, y: torch.diagonal_scatter(x, y, 1), (real(3, 5), real(3))),
    "scatter": (
        lambda x, i, y: x.scatter(1, i, y),
        (real(3, 5), whole(5, 3, 2) * 0 + torch.arange(2), real(3, 2)),
    ),
    "scatter-value": (lambda x, i: x.scatter(1, i, 2.5), (real(3, 5), whole(5, 3, 2))),
    "scatter-one-hot": (
        lambda i: torch.zeros(4, 5).scatter_(1, i.unsqueeze(1), 1.0),
        (whole(5, 4),),
    ),
    "scatter-add": (
        lambda x, i, y: x.scatter_add(1, i, y),
        (real(3, 5), whole(5, 3, 4), real(3, 4)),
    ),
    "scatter-add-first": (
        lambda x, i, y: x.scatter_add(0, i, y),
        (real(5, 3), whole(5, 4, 2), real(4, 3)),
    ),
    "scatter-reduce": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "amax"),
        (real(3, 5), whole(5, 3, 4), real(3, 4)),
    ),
    "scatter-reduce-prod": (
        lambda x, i, y: x.scatter_reduce(0, i, y, "prod", include_self=False),
        (real(3, 4), whole(3, 2, 4), real(2, 4)),
    ),
    "scatter-reduce-mean": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "mean"),
        (real(3, 5), whole(5, 3, 4), real(3, 4)),
    ),
    "scatter-reduce-op": (
        lambda x, i, y: x.scatter(1, i, y, reduce="add"),
        (real(3, 5), whole(5, 3, 4), real(3, 4)),
    ),
    "index-add": (lambda x, i, y: x.index_add(0, i, y), (real(5, 3), whole(5, 4), real(4, 3))),
    "index-add-alpha": (
        lambda x, i, y: x.index_add(1, i, y, alpha=-2),
        (real(3, 5), whole(5, 4), real(3, 4)),
    ),
    "index-copy": (
        lambda x, y: x.index_copy(0, torch.tensor([3, 0]), y),
        (real(5, 3), real(2, 3)),
    ),
    "index-fill": (lambda x, i: x.index_fill(1, i, 9.0), (real(3, 5), whole(5, 2))),
    "index-put-accumulate": (
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        (real(5, 3), whole(5, 4), real(4, 3)),
    ),
    "index-put-pairs": (
        lambda x, y: x.index_put((torch.tensor([0, 2]), torch.tensor([1, 3])), y),
        (real(3, 5), real(2)),
    ),
    "masked-scatter": (
        lambda x, m, y: x.masked_scatter(m, y),
        (real(3, 4), truth(3, 4), real(12)),
    ),
    "put": (lambda x: x.put(torch.tensor([1, 5]), torch.tensor([9.0, 8.0])), (real(3, 4),)),
}
INDEXING: dict[str, Case] = {
    "embedding": (fn.embedding, (whole(7, 2, 3), real(7, 4))),
    "embedding-padding": (
        lambda i, w: fn.embedding(i, w, padding_idx=0),
        (whole(7, 2, 3, dtype=torch.int32), real(7, 4)),
    ),
    "embedding-bag": (
        lambda i, w: fn.embedding_bag(i, w, mode="sum"),
        (whole(7, 2, 3), real(7, 4)),
    ),
    "embedding-bag-mean": (fn.embedding_bag, (whole(7, 2, 3), real(7, 4))),
    "embedding-bag-max": (
        lambda i, w: fn.embedding_bag(i, w, mode="max"),
        (whole(7, 2, 3), real(7, 4)),
    ),
    "embedding-bag-weights": (
        lambda i, w, s: fn.embedding_bag(i, w, mode="sum", per_sample_weights=s),
        (whole(7, 2, 3), real(7, 4), real(2, 3)),
    ),
    "embedding-bag-offsets": (
        lambda i, w: fn.embedding_bag(i, w, torch.tensor([0, 2]), mode="sum"),
        (whole(7, 5), real(7, 4)),
    ),
    "one-hot": (lambda i: fn.one_hot(i, 5), (whole(5, 2, 3),)),
    "index-select": (lambda x, i: torch.index_select(x, -1, i), (real(3, 5), whole(5, 2))),
    "gather": (lambda x, i: torch.gather(x, 0, i), (real(5, 3), whole(5, 2, 3))),
    "gather-argmax": (lambda x: x.gather(1, x.argmax(1, keepdim=True)), (real(3, 5),)),
    "take": (torch.take, (real(3, 4), whole(12, 2, 2))),
    "take-along": (lambda x, i: torch.take_along_dim(x, i, 1), (real(3, 4), whole(4, 3, 2))),
    "index-lists": (lambda x: x[[0, 2], [1, -1]], (real(3, 4),)),
    "index-tensor": (lambda x, i: x[i, :2], (real(5, 3), whole(5, 2, 2))),
    "index-int32": (lambda x, i: x[i], (real(5, 3), whole(5, 2, dtype=torch.int32))),
    "index-uint8-cast": (lambda x, i: x[i.long()], (real(5, 3), whole(5, 2, dtype=torch.uint8))),
    "index-mask": (lambda x, m: x[m].sum(), (real(3, 4), truth(3, 4))),
    "index-computed": (lambda x, i: x[i % 5], (real(5, 3), whole(50, 4))),
    "index-clamped": (lambda x, i: x[i.clamp(0, 4)], (real(5, 3), whole(50, 4, low=-9))),
    "index-shifted": (lambda x, i: x[i + 1], (real(5, 3), whole(4, 4))),
    "index-range": (lambda x: x[torch.arange(4), torch.arange(4)], (real(4, 5),)),
    "index-reverse-range": (lambda x: x[:, torch.arange(4, -1, -1)], (real(4, 5),)),
    "masked-select": (torch.masked_select, (real(3, 4), truth(3, 4))),
    "relative-bias": (
        lambda t: t[(torch.arange(4)[:, None] - torch.arange(4)[None] + 3)].sum(-1),
        (real(7, 2),),
    ),
    "clamped-positions": (
        lambda t: t[(torch.arange(4)[:, None] - torch.arange(4)[None]).clamp(-2, 2) + 2],
        (real(5, 2),),
    ),
}
CREATION: dict[str, Case] = {
    "zeros": (lambda x: x + torch.zeros(3, 4) + torch.zeros_like(x), (real(3, 4),)),
    "ones": (lambda x: x * torch.ones(4) - torch.ones_like(x), (real(3, 4),)),
    "full": (lambda x: x * torch.full((3, 1), 2.5) + torch.full_like(x, 3), (real(3, 4),)),
    "new": (lambda x: x + x.new_zeros(4) + x.new_ones(3, 1) + x.new_full((1,), 7), (real(3, 4),)),
    "new-tensor": (lambda x: x + x.new_tensor([1.0, 2.0, 3.0, 4.0]), (real(3, 4),)),
    "eye": (lambda x: x @ torch.eye(4) + torch.eye(3, 4), (real(3, 4),)),
    "arange": (lambda x: x + torch.arange(4) * torch.arange(0.5, 2.5, 0.5), (real(3, 4),)),
    "arange-negative": (lambda x: x + torch.arange(3, -1, -1), (real(3, 4),)),
    "arange-dtype": (lambda x: x * torch.arange(4, dtype=torch.float32), (real(3, 4),)),
    "arange-int32": (lambda x: x * torch.arange(4, dtype=torch.int32), (real(3, 4),)),
    "linspace": (lambda x: x + torch.linspace(-1, 1, 4), (real(3, 4),)),
    "linspace-one": (lambda x: x + torch.linspace(2, 5, 1), (real(3, 4),)),
    "logspace": (lambda x: x + torch.logspace(0, 2, 4), (real(3, 4),)),
    "tensor-list": (lambda x: x * torch.tensor([1.0, -2.0, 0.5, 3.0]), (real(3, 4),)),
    "tensor-ints": (lambda x: x * torch.tensor([1, 2, 3, 4]), (real(3, 4),)),
    "tensor-bools": (lambda x: x * torch.tensor([True, False, True, True]), (real(3, 4),)),
    "tensor-scalar": (lambda x: x * torch.tensor(2.5) + torch.tensor(3), (real(3, 4),)),
    "tril-indices": (lambda x: x[tuple(torch.tril_indices(3, 3))], (real(3, 4),)),
    "causal-mask": (
        lambda x: x.masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf")).softmax(-1),
        (real(2, 4, 4),),
    ),
    "alibi": (
        lambda x: x - (torch.arange(4)[:, None] - torch.arange(4)[None]).abs() * 0.5,
        (real(2, 4, 4),),
    ),
    "sinusoids": (
        lambda x: (
            x
            + torch.sin(
                torch.arange(4)[:, None]
                * torch.exp(torch.arange(0, 6) * (-torch.log(torch.tensor(10000.0)) / 6))
            )
        ),
        (real(2, 4, 6),),
    ),
    "empty-filled": (lambda x: torch.empty(3, 4).copy_(x) * 2, (real(3, 4),)),
    "rand-refused": (lambda x: x * torch.randn_like(x), (real(3, 4),)),
    "hann": (lambda x: x * torch.hann_window(4), (real(3, 4),)),
    "positive-table": (lambda x: x / torch.arange(1, 5).sqrt(), (positive(3, 4),)),
}
