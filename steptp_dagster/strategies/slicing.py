"""Copies of slices: the inputs that a nest reads at one loop's index, cut to that loop's range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Loop, Nest
from steptp_dagster.leir.walk import accesses_in, fresh_indices, map_expr
from steptp_dagster.strategies.naming import header_names, own_header
from steptp_dagster.strategies.rewrite import affine_sum


@dataclass(frozen=True, slots=True)
class Slice:
    """A tensor that is read with the sliced index alone in one dimension."""

    read: Access
    dimension: int


def slices(equation: Equation, subscript: Expr) -> tuple[Slice, ...]:
    """The tensors that the value reads with ``subscript`` as a dimension, by first occurrence.

    The target of the equation is none of them. Where several dimensions fit, the first counts.
    """
    found: dict[str, Slice] = {}
    for access in accesses_in(equation.value):
        if access.name != equation.target.name and subscript in access.subscripts:
            found.setdefault(access.name, Slice(access, access.subscripts.index(subscript)))
    return tuple(found.values())


def copied(
    of: Slice, name: str, shape: Sequence[int], extent: int, offset: int, place: int = 0
) -> Nest:
    """The nest that copies a slice: all of the other dimensions of a tensor of that ``shape``.

    ``extent`` elements from ``offset`` on go to ``place`` and what follows it.
    """
    names = fresh_indices(())
    sizes = [extent if d == of.dimension else size for d, size in enumerate(shape)]
    loops = tuple([Loop("L", next(names), size) for size in sizes])
    indices = [loop.index for loop in loops]
    header = own_header(loops, indices)
    by = header_names(loops, indices, header)
    own: list[Expr] = [by.get(index) or Index(index) for index in indices]
    there = list(own)
    there[of.dimension] = affine_sum(own[of.dimension], offset)
    here = list(own)
    here[of.dimension] = affine_sum(own[of.dimension], place)
    read = of.read
    target = Access(name, read.dtype, read.scope, tuple(here), pos=read.pos)
    value = Access(read.name, read.dtype, read.scope, tuple(there), pos=read.pos)
    return Nest(header, (Equation(target, value),))


def read_from(
    equation: Equation, copies: Mapping[str, tuple[int, str]], subscript: Expr, index: str
) -> Equation:
    """The equation with reads of slices turned to their copies, at the bare index.

    ``copies`` holds for each sliced tensor the dimension and the name of its copy.
    """
    bare = Index(index)

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Access) or node.name not in copies:
            return node
        dimension, name = copies[node.name]
        if node.subscripts[dimension] != subscript:
            return node
        here = (*node.subscripts[:dimension], bare, *node.subscripts[dimension + 1 :])
        return Access(name, node.dtype, node.scope, here, pos=node.pos)

    value = map_expr(equation.value, visit)
    return Equation(equation.target, value, equation.guard, pos=equation.pos)
