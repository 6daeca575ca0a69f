"""Reading what ``torch.export`` makes: results, changes of state, shapes and example values."""

from typing import Final

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coords
from steptp_dagster.translate.export import DTYPES
from steptp_dagster.translate.operators import Unsupported

#: Checks of what exporting with fixed shapes and dtypes has established; they compute nothing.
CHECKS: Final = frozenset({"aten._assert_tensor_metadata.default"})
#: The dtypes of Python numbers that a module returns.
NUMBERS: Final[dict[type, str]] = {bool: "bool", int: "i64", float: "f32"}
#: Kinds of outputs of a graph that are results, or no concern of the caller: an input that the
#: module has used as its scratch paper, the order of checks.
HARMLESS: Final = (
    OutputKind.USER_OUTPUT,
    OutputKind.USER_INPUT_MUTATION,
    OutputKind.TOKEN,
)
#: Buffers of batch norms that training updates and nothing reads in the same call.
RUNNING: Final = ("running_mean", "running_var", "num_batches_tracked")


def change_of_state(output: OutputSpec) -> str:
    """Why a program with this output of its graph is refused; empty where it need not be."""
    if output.kind in HARMLESS:
        return ""
    # what batch norms remember changes no result of this call
    if str(output.target).rsplit(".", maxsplit=1)[-1] in RUNNING:
        return ""
    if output.kind == OutputKind.BUFFER_MUTATION:
        return "the module updates its state; call .eval() on it"
    return "the module changes its own parameters; one that leaves them alone does"


def examples_of(
    exported: ExportedProgram, inputs: tuple[torch.Tensor, ...]
) -> dict[str, tuple[int, int]]:
    """The least and the largest element of every integer input, by its name in the graph."""
    specs = exported.graph_signature.input_specs
    names = [spec.arg.name for spec in specs if spec.kind == InputKind.USER_INPUT]
    leaves = tree_leaves(inputs)
    if len(names) != len(leaves):
        return {}
    return {
        name: (int(leaf.min()), int(leaf.max()))
        for name, leaf in zip(names, leaves, strict=True)
        if isinstance(leaf, torch.Tensor) and DTYPES.get(leaf.dtype, "")[:1] in ("i", "u")
        if leaf.numel()
    }


def no_element(_: Coords) -> Expr:
    """Refuse to read an element of a tensor that has none."""
    raise Unsupported("", "an element of an empty tensor; tensors with elements do")


def is_plain(node: Node) -> bool:
    """Whether the first tensor that a node reads fills its memory in row-major order."""
    reads = node.all_input_nodes
    fake = reads[0].meta.get("val") if reads else None
    return isinstance(fake, torch.Tensor) and fake.is_contiguous() and not fake.storage_offset()


def loosely(fake: object) -> tuple[tuple[int, ...], str]:
    """Shape and dtype of a result that may not be used; empty where it is no plain tensor."""
    if not isinstance(fake, torch.Tensor):
        return (), ""
    return tuple(int(n) for n in fake.shape), DTYPES.get(fake.dtype, "")


def results_of(meta: object) -> list[object]:
    """The results of a node: one, or those of its tuple that exist."""
    if isinstance(meta, list | tuple):
        return [m for m in meta if m is not None]
    return [meta]
