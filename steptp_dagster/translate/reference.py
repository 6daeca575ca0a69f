"""What PyTorch computes: a module as a function of arrays by LEIR name."""

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from steptp_dagster.leir.signature import Variable
from steptp_dagster.translate.doubles import in_doubles, spacing
from steptp_dagster.translate.translate import Translation

Array = NDArray[Any]


class ModuleFailed(RuntimeError):
    """The module raised on these inputs; the message says what."""


@dataclass(slots=True)
class Reference:
    """A translated module that can be evaluated on any inputs and parameters.

    ``inputs`` are the example inputs of the translation: they decide dtypes and structure, and are
    never changed, even by modules that work in place. Buffers keep their values, as the constants
    of the translation do. PyTorch computes on one thread, so that sums have one order.
    """

    module: nn.Module
    inputs: Sequence[Any]
    translation: Translation
    _copies: dict[bool, nn.Module] = field(default_factory=dict, init=False)

    def given(self) -> dict[str, Array]:
        """The example inputs and the module's own parameters."""
        return bind(self.translation, self.module, self.inputs)

    def run(self, arrays: Mapping[str, Array], *, double: bool) -> dict[str, Array]:
        """Outputs by LEIR name: in float64 throughout, or in the module's own precision.

        Floats come as float64 arrays, whose values are those of the precision. Raises ModuleFailed
        where the module raises.
        """
        module = self._prepared(arrays, double=double)
        inputs = self._arguments(arrays, double=double)
        mode = in_doubles(spacing(self.inputs)) if double else nullcontext()
        try:
            with torch.no_grad(), _quietly(), mode:
                results = [x for x in tree_leaves(module(*inputs)) if x is not None]
        except Exception as error:
            raise ModuleFailed(f"{type(error).__name__}: {error}") from error
        found = [_array(_result(result)) for result in results]
        names = [v.name for v in outputs_in_order(self.translation)]
        return dict(zip(names, found, strict=True))

    def _prepared(self, arrays: Mapping[str, Array], *, double: bool) -> nn.Module:
        """A copy of the module with the parameters of ``arrays``."""
        if double not in self._copies:
            copied = _copy(self.module)
            self._copies[double] = _doubled(copied) if double else copied
        module = self._copies[double]
        parameters = dict(module.named_parameters(remove_duplicate=False))
        for variable in _of_role(self.translation, "param"):
            target = parameters[self.translation.names[variable.name]]
            with torch.no_grad():
                target.copy_(_tensor(arrays[variable.name], target.dtype))
        return module

    def _arguments(self, arrays: Mapping[str, Array], *, double: bool) -> Sequence[Any]:
        """The example inputs with the values of ``arrays``."""
        names = (v.name for v in _of_role(self.translation, "input"))
        leaves, structure = tree_flatten(tuple(self.inputs))

        def replaced(leaf: object) -> object:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            wide = double and leaf.is_floating_point()
            return _tensor(arrays[next(names)], torch.float64 if wide else leaf.dtype)

        arguments: Sequence[Any] = tree_unflatten([replaced(leaf) for leaf in leaves], structure)
        return arguments


def _copy(module: nn.Module) -> nn.Module:
    """A copy of a module that shares nothing with it.

    ``deepcopy`` leaves functions alone; those that modules hold and that enclose parts of the
    original (``self.mlp = lambda x: layers.out(layers.up(x))``) get the copies of these parts.
    """
    memo: dict[int, Any] = {}
    copied: nn.Module = copy.deepcopy(module, memo)
    for part in copied.modules():
        for name, held in list(vars(part).items()):
            if isinstance(held, FunctionType) and held.__closure__:
                cells = tuple(_copied_cell(cell, memo) for cell in held.__closure__)
                own = FunctionType(
                    held.__code__, held.__globals__, held.__name__, held.__defaults__, cells
                )
                own.__kwdefaults__ = held.__kwdefaults__
                vars(part)[name] = own
    return copied


def _doubled(module: nn.Module) -> nn.Module:
    """The module in float64, tensors that are plain attributes (``self.h0``) included."""

    def wide(held: object) -> object:
        narrow = isinstance(held, torch.Tensor) and held.is_floating_point()
        return held.double() if narrow else held  # type: ignore[attr-defined]

    for part in module.double().modules():
        for name, held in list(vars(part).items()):
            if not name.startswith("_") and isinstance(held, torch.Tensor | list | tuple | dict):
                vars(part)[name] = tree_map(wide, held)
    return module


def _copied_cell(cell: CellType, memo: Mapping[int, Any]) -> CellType:
    try:
        return CellType(memo.get(id(cell.cell_contents), cell.cell_contents))
    except ValueError:  # a cell that holds nothing yet
        return cell


def bind(translation: Translation, module: nn.Module, inputs: Sequence[Any]) -> dict[str, Array]:
    """Arrays for every input and parameter of a translation, by LEIR name.

    ``inputs`` in the order of the module's ``forward``; parameters from ``module``. Floats come as
    float64.
    """
    parameters = dict(module.named_parameters(remove_duplicate=False))
    given = (x for x in tree_leaves(tuple(inputs)) if isinstance(x, torch.Tensor))
    arrays = {v.name: _array(next(given)) for v in _of_role(translation, "input")}
    for variable in _of_role(translation, "param"):
        arrays[variable.name] = _array(parameters[translation.names[variable.name]])
    return arrays


def outputs_in_order(translation: Translation) -> list[Variable]:
    """The output variables in the order in which the module returns them."""
    by_position = {translation.names[v.name]: v for v in translation.signed.signature.outputs}
    return [by_position[f"output {i}"] for i in range(len(by_position))]


def _of_role(translation: Translation, role: str) -> list[Variable]:
    return [v for v in translation.signed.signature.variables if v.role == role]


def _result(result: object) -> torch.Tensor:
    """A result of a module as a tensor; floats that are no tensors are exact."""
    exact = torch.float64 if isinstance(result, float) else None
    return torch.as_tensor(result, dtype=exact)


def _tensor(values: Array, dtype: torch.dtype) -> torch.Tensor:
    """A fresh tensor of the values, which ``dtype`` can represent or round."""
    kind = np.asarray(values)
    wide = kind if kind.dtype.kind in "iub" else kind.astype(np.float64)
    return torch.from_numpy(np.array(wide)).to(dtype).clone()


def _array(tensor: torch.Tensor) -> Array:
    """The values of a tensor in an array of its own, floats as float64."""
    held = tensor.detach()
    return np.array((held.double() if held.is_floating_point() else held).numpy())


@contextmanager
def _quietly() -> Iterator[None]:
    """One thread, no warnings."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(before)
