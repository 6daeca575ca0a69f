"""How far apart the elements are that an access touches from one iteration of a loop to the next.

Tensors lie in memory in row-major order, so an access has an *address*: the quasi-affine form of
the number of its element. Vector loads and stores need addresses that are 1 apart, or equal, and
that start at a multiple of the number of lanes.
"""

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import ZERO, Form, add, is_opaque, names_in
from steptp_dagster.leir.shapes import Shape
from steptp_dagster.leir.walk import indices_in


def address(use: Use, shape: Shape) -> Form:
    """The number of the element that a use touches, row-major, from 0."""
    total, step = ZERO, 1
    for form, extent in zip(reversed(use.subscripts), reversed(shape), strict=True):
        total = add(total, form, step)
        step *= extent
    return total


def stride(use: Use, shape: Shape, index: str) -> int | None:
    """By how many elements the address grows with ``index``; None where that is not constant."""
    for form, written in zip(use.subscripts, use.access.subscripts, strict=True):
        if is_opaque(form) and index in indices_in(written):
            return None
    found = address(use, shape)
    if any(index in names_in(Form(0, ((a, 1),))) for a, _ in found.terms if a != index):
        return None
    return dict(found.terms).get(index, 0)


def aligned(use: Use, shape: Shape, index: str, lanes: int) -> bool:
    """Whether the address at the first value of ``index`` is always a multiple of ``lanes``."""
    found = address(use, shape)
    return all(factor % lanes == 0 for factor in (found.const, *_other(found, index)))


def _other(form: Form, index: str) -> tuple[int, ...]:
    return tuple(factor for atom, factor in form.terms if atom != index)
