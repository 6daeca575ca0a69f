"""Exporting a module: torch.export, then the decompositions that suit LEIR."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import torch
from torch import nn
from torch._decomp import decomposition_table
from torch.export import ExportedProgram, exported_program
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from steptp_dagster.translate.tracing import quiet, watched
from steptp_dagster.translate.unchecked import CHECKING, masks_as_given, unchecked

#: Composite operators that stay whole: their own nests are shorter, safer or closer to how people
#: write them than what PyTorch would decompose them into.
KEPT: Final = (
    "_pad_circular",
    "bilinear",
    "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "col2im",
    "cross_entropy_loss",
    "elu",
    "group_norm",
    "gru",
    "hardsigmoid",
    "hardswish",
    "layer_norm",
    "im2col",
    "linear",
    "logsumexp",
    "lstm",
    "matmul",
    "multilabel_margin_loss",  # what export makes of it computes something else
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mv",
    "dot",
    "nll_loss_nd",
    "one_hot",
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "rms_norm",
    "rnn_relu",
    "rnn_tanh",
    "roll",
    "silu",
    "softplus",
    "tril",
    "triu",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
    "xlogy",
)

DTYPES: Final[dict[torch.dtype, str]] = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "bool",
}


def export(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExportedProgram:
    """The exported program over core ATen and the operators of ``KEPT``.

    Raises what ``torch.export`` raises; its errors have no common type.
    """
    with quiet(), masks_as_given(), _shapes_of_recurrent():
        exported = _exported(module, inputs)
        with _known_composites():
            result: ExportedProgram = exported.run_decompositions(dict(_decompositions()))
        return result


def _exported(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExportedProgram:
    try:
        with watched():
            return torch.export.export(module, inputs)
    except GuardOnDataDependentSymNode as error:
        if CHECKING not in str(error):
            raise
        with unchecked(), watched():
            return torch.export.export(module, inputs)


#: Where PyTorch looks up, for every program anew, which of its operators are composite.
_LOOKUP: Final = "_collect_all_valid_cia_ops"
#: Composites whose decomposition depends on the device and so has to be named.
_BY_DEVICE: Final = ("scaled_dot_product_attention",)


@cache
def _tables() -> tuple[Mapping[Any, Any], frozenset[Any]]:
    """Decompositions, and the composite operators that need more than their own kernel.

    Both are the same for all programs, but PyTorch makes them for each: enumerating two thousand
    operators and overriding five hundred takes longer than exporting a small program. Composites
    that are neither kept nor listed decompose by their kernels, which is what the table says too.
    """
    defaults: Any = torch.export.default_decompositions()
    table: dict[Any, Any] = dict(defaults.items())
    for name in KEPT:
        for overload in _overloads(name):
            table.pop(overload, None)
    lookup = getattr(exported_program, _LOOKUP, None)
    if lookup is None:  # a PyTorch that works otherwise: the slow way is right as well
        return table, frozenset()
    composites = frozenset(lookup())
    by_device = {overload for name in _BY_DEVICE for overload in _overloads(name)}
    needed = (composites - table.keys()) | (composites & by_device)
    kernels = composites - needed
    return {op: how for op, how in table.items() if op not in kernels}, needed


def _overloads(name: str) -> list[Any]:
    packet = getattr(torch.ops.aten, name)
    return [getattr(packet, overload) for overload in packet.overloads()]


def _decompositions() -> Mapping[Any, Any]:
    return _tables()[0]


@contextmanager
def _known_composites() -> Iterator[None]:
    """PyTorch takes the composites that need attention from ``_tables``."""
    needed = _tables()[1]
    before = getattr(exported_program, _LOOKUP, None)
    if before is None or not needed:
        yield
        return
    setattr(exported_program, _LOOKUP, lambda: set(needed))
    try:
        yield
    finally:
        setattr(exported_program, _LOOKUP, before)


#: Recurrent layers, whose results PyTorch describes by running through the whole sequence.
_RECURRENT: Final = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _described(x: torch.Tensor, first: Any, *arguments: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401
    """Empty results of a recurrent layer with the states ``first``: outputs, then states."""
    states = first if isinstance(first, list | tuple) else (first,)
    bidirectional = arguments[5]
    features = states[0].shape[-1] * (2 if bidirectional else 1)
    return x.new_empty((*x.shape[:2], features)), *(x.new_empty(s.shape) for s in states)


@contextmanager
def _shapes_of_recurrent() -> Iterator[None]:
    """Recurrent layers are described by their shapes, in no time, while a module is exported.

    PyTorch takes them apart into one cell for each step instead, twice for each export, which takes
    minutes for long sequences. Nothing is evaluated here, so that empty tensors do.
    """
    overloads = [getattr(torch.ops.aten, name).input for name in _RECURRENT]
    if not all(hasattr(op, "py_kernels") and hasattr(op, "_dispatch_cache") for op in overloads):
        yield  # a PyTorch that works otherwise: the slow way is right as well
        return
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    before = [dict(overload.py_kernels) for overload in overloads]
    by_table = {op: decomposition_table[op] for op in overloads if op in decomposition_table}
    for overload in overloads:
        for key in keys:
            overload.py_kernels[key] = _described
        overload._dispatch_cache.clear()
    decomposition_table.update(dict.fromkeys(by_table, _described))
    try:
        yield
    finally:
        decomposition_table.update(by_table)
        for overload, kernels in zip(overloads, before, strict=True):
            overload.py_kernels.clear()
            overload.py_kernels.update(kernels)
            overload._dispatch_cache.clear()
