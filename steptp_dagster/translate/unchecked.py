"""Functions of PyTorch that look at their data before they compute, which cannot be exported.

Only ``gaussian_nll_loss`` does: it raises where a variance is negative. Where it is the obstacle,
modules are exported a second time with the loss without that check.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional
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


@contextmanager
def unchecked() -> Iterator[None]:
    """Evaluate PyTorch code without checks of values."""
    with _Unchecked():
        yield
