"""What becomes of one case: right, refused, or a fault that names itself."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.validity import check
from steptp_dagster.translate.export import DTYPES
from steptp_dagster.translate.fidelity import fidelity
from steptp_dagster.translate.translate import Translation, TranslationRefusal, translate
from tests.support.battery.values import Case


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> object:
        return self.function(*inputs)


@dataclass(frozen=True, slots=True)
class Finding:
    """``kind`` is right, refused, wrong or crashed; ``text`` says more."""

    kind: str
    text: str = ""


def as_module(case: Case) -> nn.Module:
    """The module of a case."""
    return case[0] if isinstance(case[0], nn.Module) else Called(case[0])


def judged(case: Case) -> Finding:
    """Translate a case and compare what it computes, its shapes and its types with PyTorch's."""
    module, inputs = as_module(case), case[1]
    try:
        result = translate(module, inputs)
    except Exception as error:  # noqa: BLE001 - any of them is a finding
        return Finding("crashed", f"{type(error).__name__}: {error}")
    if isinstance(result, TranslationRefusal):
        return Finding("refused", str(result))
    try:
        return _compared(module, inputs, result)
    except Exception as error:  # noqa: BLE001 - any of them is a finding
        return Finding("crashed", f"comparing: {type(error).__name__}: {error}")


def _compared(module: nn.Module, inputs: tuple[Tensor, ...], result: Translation) -> Finding:
    text = to_text(result.signed.program)
    if check(result.signed) or parse(text).program != result.signed.program:
        return Finding("wrong", f"invalid: {text}")
    with torch.no_grad():
        made: Any = copy.deepcopy(module)(*copy.deepcopy(inputs))
    results = [torch.as_tensor(x) for x in tree_leaves(made) if x is not None]
    expected = [(DTYPES[x.dtype], tuple(x.shape)) for x in results]
    named = {result.names[v.name]: v for v in result.signed.signature.outputs}
    found = [(v.dtype, v.shape) for v in (named[f"output {i}"] for i in range(len(named)))]
    if found != expected:
        return Finding("wrong", f"outputs {found}, expected {expected}")
    error = fidelity(module, inputs, result)
    if not error.faithful:
        return Finding("wrong", f"{error.max_normalised_error} {text}")
    return Finding("right")
