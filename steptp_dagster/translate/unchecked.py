"""Functions of PyTorch that look at their data before they compute, which cannot be exported.

``gaussian_nll_loss`` raises where a variance is negative. Where it is the obstacle, modules are
exported a second time with the loss without that check. Transformers look whether a mask is the
causal one, for which they have a faster way to the same result; for exporting, masks are masks.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.modules import transformer
from torch.overrides import TorchFunctionMode

#: The function that checks, as errors of exporting name it.
CHECKING: Final = "gaussian_nll_loss"


def _gaussian(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    if not isinstance(var, Tensor):
        var = torch.full_like(input, var)
    if var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    clamped = var.clamp(min=eps)
    loss = 0.5 * (torch.log(clamped) + (input - target) ** 2 / clamped)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


class _Unchecked(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function, the loss without its check."""
        del types
        called = _gaussian if func is functional.gaussian_nll_loss else func
        return called(*args, **dict(kwargs or {}))


#: How transformers look at their masks.
_DETECTOR: Final = "_detect_is_causal_mask"


def _as_stated(
    _mask: Tensor | None, is_causal: bool | None = None, _size: int | None = None
) -> bool:
    """Whether the caller says that the mask is causal."""
    return bool(is_causal)


@contextmanager
def masks_as_given() -> Iterator[None]:
    """Transformers believe what they are told about masks instead of looking at them."""
    before = getattr(transformer, _DETECTOR, None)
    if before is None:  # a PyTorch that works otherwise
        yield
        return
    setattr(transformer, _DETECTOR, _as_stated)
    try:
        yield
    finally:
        setattr(transformer, _DETECTOR, before)


@contextmanager
def unchecked() -> Iterator[None]:
    """Evaluate PyTorch code without checks of values."""
    with _Unchecked():
        yield
