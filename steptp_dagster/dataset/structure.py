"""The structure of a program: what it has in common with the same program at other shapes."""

from collections.abc import Hashable
from typing import Final

from steptp_dagster.leir.ast import Int, Loop, Real
from steptp_dagster.leir.signature import SignedProgram

#: How many programs of one structure must agree: two of different extents tell a formula from a
#: coincidence.
NEEDED: Final = 2

Number = int | float
#: Numbers of a program, in the order of its text.
Numbers = tuple[Number, ...]


def structure(signed: SignedProgram) -> tuple[Hashable, Numbers]:
    """A program without its numbers, and the numbers in order; values of constants aside."""
    numbers: list[Number] = []
    form = [_form(nest, numbers) for nest in signed.program.nests]
    for v in signed.signature.variables:
        bounds = tuple(type(b).__name__ for b in (v.low, v.high))
        form.append((v.role, v.name, v.dtype, len(v.shape), bounds, v.values is None))
        numbers += v.shape
    return tuple(form), tuple(numbers)


def _form(node: object, numbers: list[Number]) -> Hashable:
    match node:
        case Int() | Real():
            numbers.append(node.value)
            return type(node).__name__
        case Loop():
            numbers += (node.start, node.extent)
            return (node.kind, node.index)
        case tuple():
            return tuple(_form(item, numbers) for item in node)
        case str() | None:
            return node
    fields = (f for f in type(node).__slots__ if f != "pos")  # type: ignore[attr-defined]
    return (type(node).__name__, *(_form(getattr(node, f), numbers) for f in fields))
