"""Example inputs of any nesting as the flat tensors that a translation takes.

Tensors in lists, tuples and dicts, keyword arguments, and constants (numbers, bools, texts, None)
between them: ``Rearranged`` is a module that takes the tensors alone, one after the other.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import (
    MappingKey,
    SequenceKey,
    TreeSpec,
    keystr,
    tree_flatten_with_path,
    tree_unflatten,
)

from steptp_dagster.translate.export import DTYPES
from steptp_dagster.users.refusal import Refused

#: Working precisions, and their types.
PRECISIONS: Final = {n: t for t, n in DTYPES.items() if t.is_floating_point}
_CONSTANTS: Final = (int, float, str, type(None))
_OWN: Final = "program."
_FLAT: Final = "tensors_"


@dataclass(frozen=True, slots=True)
class Example:
    """A module in evaluation mode that takes ``tensors``; ``names`` are what users call them."""

    module: nn.Module
    tensors: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    constants: Mapping[str, object]

    def shown(self, name: str) -> str:
        """The user's name for what a translation calls ``name``."""
        if not isinstance(self.module, Rearranged):
            return name
        if name.startswith(_FLAT) and name.removeprefix(_FLAT).isdigit():
            return self.names[int(name.removeprefix(_FLAT))]
        return name.removeprefix(_OWN)


class Rearranged(nn.Module):
    """A module called with flat tensors, which are put where the user's module expects them."""

    def __init__(self, program: nn.Module, leaves: Sequence[object], spec: TreeSpec) -> None:
        super().__init__()
        self.program = program
        self._constants = [None if isinstance(x, torch.Tensor) else x for x in leaves]
        self._tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        self._spec = spec

    def forward(self, *tensors: torch.Tensor) -> Any:  # noqa: ANN401 - what the program returns
        """Call the program."""
        leaves: list[object] = list(self._constants)
        for position, tensor in zip(self._tensors, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = tree_unflatten(leaves, self._spec)
        return self.program(*args, **kwargs)


def example(module: object, args: object, kwargs: object, where: str) -> Example:
    """A module and its inputs, checked. Raises Refused; ``where`` is the place that it names."""
    if not isinstance(module, nn.Module):
        found = f"the class {module.__name__}" if isinstance(module, type) else _type(module)
        message = f"expected an instance of torch.nn.Module, found {found}"
        raise Refused("not-a-module", message, where)
    if isinstance(args, torch.Tensor):
        args = (args,)
    if isinstance(args, Mapping) and not kwargs:
        args, kwargs = (), args
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        message = (
            f"inputs must be a tensor, a list or tuple of arguments, or a dict of arguments by "
            f"name, found {_type(args if isinstance(kwargs, Mapping) else kwargs)}"
        )
        raise Refused("bad-inputs", message, where)
    whole = (tuple(args), {str(name): value for name, value in kwargs.items()})
    paths, spec = tree_flatten_with_path(whole)
    names = _names(module, len(args))
    leaves: list[object] = []
    tensors: list[torch.Tensor] = []
    shown: list[str] = []
    constants: dict[str, object] = {}
    for path, leaf in paths:
        place = path[1]
        first = names[place.idx] if isinstance(place, SequenceKey) else _key(place)
        name = first + keystr(path[2:])
        if isinstance(leaf, torch.Tensor):
            _check(leaf, name, where)
            tensors.append(leaf.detach())
            shown.append(name)
        elif isinstance(leaf, _CONSTANTS):
            constants[name] = leaf
        else:
            message = f"the input `{name}` is {_type(leaf)}, which is never translated"
            raise Refused("bad-inputs", message, where)
        leaves.append(leaf)
    if not tensors:
        raise Refused("bad-inputs", "there is no tensor among the inputs", where)
    module = module.eval()
    if kwargs or not all(isinstance(value, torch.Tensor) for value in args):
        module = Rearranged(module, leaves, spec).eval()
    return Example(module, tuple(tensors), tuple(shown), constants)


def _key(place: object) -> str:
    return str(place.key) if isinstance(place, MappingKey) else ""


def _check(tensor: torch.Tensor, name: str, where: str) -> None:
    if tensor.layout != torch.strided:
        message = f"the input `{name}` is a tensor of layout {tensor.layout}; dense ones do"
        raise Refused("bad-inputs", message, where)
    if tensor.device.type != "cpu":
        message = f"the input `{name}` is on the device {tensor.device}; make it on the CPU"
        raise Refused("bad-inputs", message, where)


def _type(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def _names(module: nn.Module, count: int) -> list[str]:
    """What ``forward`` calls its positional arguments."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p.name for p in parameters if p.kind in positional][:count]
    return named + [f"input{i}" for i in range(len(named), count)]


def precision(given: Example) -> tuple[str | None, bool]:
    """The working precision of an example, and whether all its floats have it.

    It is that of the first float among inputs, parameters and buffers; None without floats.
    """
    tensors = [*given.tensors, *given.module.parameters(), *given.module.buffers()]
    found = [DTYPES.get(t.dtype, "") for t in tensors if t.dtype.is_floating_point]
    return (found[0] if found else None), len(set(found)) <= 1


def cast(given: Example, dtype: str) -> Example:
    """The example with all its floats in one precision; the module is changed in place."""
    wanted = PRECISIONS[dtype]
    made: dict[int, nn.Parameter] = {}
    # Module.to() exchanges tensors in place, which those without data refuse.
    for module in given.module.modules():
        for name, held in module._parameters.items():
            if held is None or not held.is_floating_point() or held.dtype == wanted:
                continue
            if id(held) not in made:
                made[id(held)] = nn.Parameter(held.detach().to(wanted), requires_grad=False)
            module._parameters[name] = made[id(held)]
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                module._buffers[name] = buffer.to(wanted)
    tensors = tuple(t.to(wanted) if t.is_floating_point() else t for t in given.tensors)
    return replace(given, tensors=tensors)


def smallest() -> Example:
    """A small example of our own."""
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    return example(module, torch.ones(2, 3), {}, "")


def without_memory() -> FakeTensorMode:
    """A context in which tensors have shapes and types but no elements, and so take no memory."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def rows_kept(given: Example, rows: int) -> Example:
    """The example with the first ``rows`` of all inputs that have as many rows as the first."""
    whole = next(t.shape[0] for t in given.tensors if t.dim())
    tensors = tuple(
        t[:rows].clone() if t.dim() and t.shape[0] == whole else t for t in given.tensors
    )
    return replace(given, tensors=tensors)
