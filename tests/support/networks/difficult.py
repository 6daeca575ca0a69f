"""Programs that cannot be translated, or only just: each must end in a translation or a refusal."""

import random
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import integers, normal

#: name -> (forward, inputs); the forward is a method body given as a function of the inputs.
DIFFICULT: Final[dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]] = {}


class Forward(nn.Module):
    """A function as a module with some layers at hand."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def difficult(name: str, *inputs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in DIFFICULT
        DIFFICULT[name] = (function, inputs)
        return function

    return register


@difficult("branch-on-value", normal(3))
def branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * 2
    return -x


@difficult("loop-until", normal(3))
def until(x: Tensor) -> Tensor:
    while x.abs().max() > 0.01:
        x = x / 2
    return x


@difficult("item-as-number", normal(3))
def item(x: Tensor) -> Tensor:
    return x * x.max().item()


@difficult("item-as-size", torch.tensor([3, 4]))
def size(n: Tensor) -> Tensor:
    return torch.zeros(int(n[0]), 2) + 1


@difficult("tolist", normal(3))
def listed(x: Tensor) -> Tensor:
    return torch.tensor([2 * v for v in x.tolist()])


@difficult("boolean-mask", normal(4))
def mask(x: Tensor) -> Tensor:
    return x[x > 0].sum()


@difficult("nonzero", normal(4))
def nonzero(x: Tensor) -> Tensor:
    return torch.nonzero(x > 0).float().sum()


@difficult("unique", integers(3, 5))
def unique(x: Tensor) -> Tensor:
    return torch.unique(x).sum()


@difficult("assert-on-value", normal(3).abs())
def asserted(x: Tensor) -> Tensor:
    assert (x >= 0).all()
    return x.sqrt()


@difficult("dropout-in-training", normal(3))
def dropped(x: Tensor) -> Tensor:
    return functional.dropout(x, 0.5, training=True)


@difficult("random-normal", normal(3))
def randomised(x: Tensor) -> Tensor:
    return x + torch.randn_like(x)


@difficult("random-permutation", normal(3))
def permuted(x: Tensor) -> Tensor:
    return x[torch.randperm(3)]


@difficult("multinomial", normal(3).abs())
def sampled(x: Tensor) -> Tensor:
    return torch.multinomial(x, 1)


@difficult("python-random", normal(3))
def python_random(x: Tensor) -> Tensor:
    return x * random.Random(0).random()


@difficult("complex-parts", normal(3, 2))
def complex_parts(x: Tensor) -> Tensor:
    return torch.view_as_complex(x).abs()


@difficult("complex-literal", normal(3))
def complex_literal(x: Tensor) -> Tensor:
    return (x * 1j).imag


@difficult("fourier", normal(4))
def fourier(x: Tensor) -> Tensor:
    return torch.fft.fft(x).real


@difficult("sparse", normal(3, 3))
def sparse(x: Tensor) -> Tensor:
    return torch.sparse.mm(x.to_sparse(), x)


@difficult("sparse-input", normal(3, 3).to_sparse())
def sparse_input(x: Tensor) -> Tensor:
    return x.to_dense() * 2


@difficult("quantized", normal(3))
def quantized(x: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()


@difficult("fake-quantized", normal(3))
def fake_quantized(x: Tensor) -> Tensor:
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)


class Straight(torch.autograd.Function):
    """A rounding whose gradient is that of the identity."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.round()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient


@difficult("own-autograd-function", normal(3))
def straight(x: Tensor) -> Tensor:
    return Straight.apply(x * 3) * 2


@difficult("gradient-inside", normal(3))
def gradient(x: Tensor) -> Tensor:
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        return torch.autograd.grad((y**3).sum(), y)[0]


def _plain(x: Tensor) -> Tensor:
    return torch.relu(x) + 1


@cache
def _made(how: str) -> Callable[[Tensor], Tensor]:
    """The function compiled by PyTorch, which warns of itself and takes long to import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.compile(_plain) if how == "compile" else torch.jit.script(_plain)


@difficult("compiled-function", normal(3))
def compiled(x: Tensor) -> Tensor:
    return _made("compile")(x) * 2


@difficult("scripted-function", normal(3))
def scripted(x: Tensor) -> Tensor:
    return _made("script")(x) * 2


@difficult("no-grad", normal(3))
def without_gradient(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    return y + x.detach()


@difficult("inference-mode", normal(3))
def inference(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x * 2


@difficult("autocast", normal(3, 3))
def autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x


@difficult("numpy-inside", normal(3))
def numpy_inside(x: Tensor) -> Tensor:
    return torch.from_numpy(np.sin(x.numpy()))


@difficult("vmap", normal(3, 4))
def mapped(x: Tensor) -> Tensor:
    return torch.vmap(lambda row: row.softmax(0) * 2)(x)


@difficult("checkpoint", normal(3))
def checkpointed(x: Tensor) -> Tensor:
    from torch.utils.checkpoint import checkpoint

    return checkpoint(torch.sin, x, use_reentrant=False) * 2


@difficult("cond", normal(3))
def conditional(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,))


@difficult("while-loop", normal(3))
def while_loop(x: Tensor) -> Tensor:
    from torch._higher_order_ops.while_loop import while_loop

    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (start, x))[1]


@difficult("meta-device", normal(3))
def other_device(x: Tensor) -> Tensor:
    return x.to("meta") * 2


@difficult("cuda-inside", normal(3))
def cuda(x: Tensor) -> Tensor:
    return x.cuda() * 2


@difficult("nested-tensor", normal(3))
def nested(x: Tensor) -> Tensor:
    return torch.nested.nested_tensor([x, x]).to_padded_tensor(0.0)


@difficult("wrong-shapes", normal(3), normal(4))
def wrong(x: Tensor, y: Tensor) -> Tensor:
    return x + y


@difficult("raises", normal(3))
def raising(x: Tensor) -> Tensor:
    raise ValueError("no such mode")


@difficult("raises-from-argument", normal(3))
def missing(x: Tensor) -> Tensor:
    return {"a": x}["b"]


@difficult("recursion", normal(3))
def recursion(x: Tensor) -> Tensor:
    return recursion(x)


@difficult("returns-nothing", normal(3))
def nothing(x: Tensor) -> None:
    x * 2


@difficult("returns-text", normal(3))
def text(x: Tensor) -> tuple[Tensor, str]:
    return x * 2, "done"


@difficult("prints", normal(3))
def printing(x: Tensor) -> Tensor:
    _ = f"{x.shape}"
    return x * 2


@difficult("text-input", normal(3), "relu")
def text_input(x: Tensor, kind: str) -> Tensor:
    return getattr(torch, kind)(x)


@difficult("empty-tensor", normal(3))
def empty(x: Tensor) -> Tensor:
    return torch.cat([x[:0], x]) * 2


@difficult("float64-inside", normal(3))
def widened(x: Tensor) -> Tensor:
    return (x.double() * 2).float()


@difficult("eigenvalues", normal(3, 3))
def eigenvalues(x: Tensor) -> Tensor:
    return torch.linalg.eigvalsh(x + x.T)


@difficult("inverse", normal(3, 3))
def inverse(x: Tensor) -> Tensor:
    return torch.linalg.inv(x + 3 * torch.eye(3))


@difficult("cholesky", normal(3, 3))
def cholesky(x: Tensor) -> Tensor:
    return torch.linalg.cholesky(x @ x.T + torch.eye(3))


@difficult("determinant", normal(3, 3))
def determinant(x: Tensor) -> Tensor:
    return torch.linalg.det(x)


@difficult("histogram", normal(9))
def histogram(x: Tensor) -> Tensor:
    return torch.histc(x, 4, -1, 1)


@difficult("bincount", integers(4, 9))
def bincount(x: Tensor) -> Tensor:
    return torch.bincount(x, minlength=4)


@difficult("float8", normal(4))
def float8(x: Tensor) -> Tensor:
    return x.to(torch.float8_e4m3fn).float()


@difficult("unsigned", integers(4, 4))
def unsigned(x: Tensor) -> Tensor:
    return (x.to(torch.uint16) + 1).to(torch.int64)


@difficult("data-pointer", normal(3))
def pointer(x: Tensor) -> Tensor:
    return x * (x.data_ptr() % 2)


@difficult("packed-sequence", normal(3, 2, 4))
def packed(x: Tensor) -> Tensor:
    lengths = torch.tensor([3, 2])
    return nn.utils.rnn.pack_padded_sequence(x, lengths).data * 2
