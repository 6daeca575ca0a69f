"""Exporting a module: torch.export, then the decompositions that suit LEIR."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from torch.export import ExportedProgram

#: Composite operators that stay whole: their own nests are shorter, safer or closer to how people
#: write them than what PyTorch would decompose them into.
KEPT: Final = (
    "cross_entropy_loss",
    "elu",
    "group_norm",
    "hardsigmoid",
    "hardswish",
    "layer_norm",
    "linear",
    "logsumexp",
    "matmul",
    "mish",
    "mv",
    "dot",
    "nll_loss_nd",
    "rms_norm",
    "roll",
    "silu",
    "softplus",
    "tril",
    "triu",
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

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in [^\n]+\n\s*(?P<code>[^\n]*)')
_TORCH = str(Path(torch.__file__).parent)


def export(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExportedProgram:
    """The exported program over core ATen and the operators of ``KEPT``.

    Raises what ``torch.export`` raises; its errors have no common type.
    """
    with _quiet():
        exported = torch.export.export(module, inputs)
        table: dict[Any, Any] = torch.export.default_decompositions()
        for name in KEPT:
            packet = getattr(torch.ops.aten, name)
            for overload in packet.overloads():
                table.pop(getattr(packet, overload), None)
        result: ExportedProgram = exported.run_decompositions(table)
        return result


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporting warns about internals of PyTorch that no caller can change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def location(stack_trace: str | None) -> str:
    """The innermost line of the user's own code in a stack trace, as ``file:line: code``.

    Frames inside PyTorch are passed over; where there are no others, the innermost counts.
    """
    frames = list(_FRAME.finditer(stack_trace or ""))
    if not frames:
        return ""
    own = [f for f in frames if not f["file"].startswith(_TORCH)] or frames
    last = own[-1]
    return f"{last['file']}:{last['line']}: {last['code'].strip()}"
