"""PyTorch code evaluated in float64 throughout, whatever types it names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


class _Doubles(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every float type that an operator is asked for becomes float64."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Call the operator with its dtypes widened."""
        del types
        wide_args, wide_kwargs = tree_map(_widened, (args, dict(kwargs or {})))
        return func(*wide_args, **wide_kwargs)


def _widened(argument: object) -> object:
    narrow = isinstance(argument, torch.dtype) and argument.is_floating_point
    return torch.float64 if narrow else argument


class _Spacing(TorchFunctionMode):
    """RMS norms without ``eps`` keep the one of the type in which the program works."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function, with an ``eps`` where an RMS norm lacks it."""
        del types
        given = dict(kwargs or {})
        if func in (torch.rms_norm, functional.rms_norm):
            names = ("input", "normalized_shape", "weight", "eps")
            given |= dict(zip(names, args, strict=False))
            if given.get("eps") is None:
                given["eps"] = self.eps
            args = ()
        return func(*args, **given)


def spacing(inputs: Sequence[Any]) -> float:
    """The distance from 1 to the next number of the type in which these inputs are evaluated.

    ``inputs`` may be nested and hold other things than tensors, which do not count.
    """
    tensors = [x for x in tree_leaves(tuple(inputs)) if isinstance(x, torch.Tensor)]
    narrow = [x.dtype for x in tensors if x.is_floating_point()]
    return float(torch.finfo(torch.float64 if torch.float64 in narrow else torch.float32).eps)


@contextmanager
def in_doubles(eps: float) -> Iterator[None]:
    """Evaluate PyTorch code in float64 even where it names, or defaults to, a narrower type.

    ``eps`` is what RMS norms add that are given none.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Spacing(eps), _Doubles():  # type: ignore[no-untyped-call]
            yield
    finally:
        torch.set_default_dtype(before)
