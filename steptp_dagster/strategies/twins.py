"""Two nests that compute the same function of different tensors: what they share and do not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Real,
    Unary,
)
from steptp_dagster.leir.walk import children, indices_in, iter_expr
from steptp_dagster.strategies.slicing import Slice


@dataclass(frozen=True, slots=True)
class Twins:
    """Two one-equation nests that are equal up to names.

    ``loops`` and ``equation`` are the first's, ``others`` the second's loops, by position.
    ``names`` maps each tensor of the first to the one that stands in its place in the second.
    """

    loops: tuple[Loop, ...]
    others: tuple[Loop, ...]
    equation: Equation
    names: Mapping[str, str]

    @property
    def renaming(self) -> tuple[tuple[str, str], ...]:
        """The second's indices with the first's, by position."""
        return tuple(
            (other.index, one.index) for one, other in zip(self.loops, self.others, strict=True)
        )

    @property
    def candidates(self) -> tuple[tuple[Loop, Loop], ...]:
        """Pairs of loops that may be put one behind the other.

        The one pair that differs, or else all that run more than once.
        """
        pairs = tuple(zip(self.loops, self.others, strict=True))
        differing = tuple(pair for pair in pairs if pair[0].extent != pair[1].extent)
        return differing or tuple(pair for pair in pairs if pair[0].extent > 1)


def single(nest: Nest) -> Equation | None:
    """The only equation of a nest that holds nothing else and has no guard."""
    found = nest.body[0]
    if len(nest.body) > 1 or not isinstance(found, Equation) or found.guard is not None:
        return None
    return found


def headers_fit(first: Nest, second: Nest) -> bool:
    """Whether loops agree in kind, axis and start, and in all extents but at most one."""
    if len(first.loops) != len(second.loops):
        return False
    pairs = list(zip(first.loops, second.loops, strict=True))
    alike = all((a.kind, a.axis, a.start, b.start) == (b.kind, b.axis, 0, 0) for a, b in pairs)
    return alike and sum(a.extent != b.extent for a, b in pairs) <= 1


def twins(first: Nest, second: Nest) -> Twins | None:
    """The correspondence of two nests, or None where kinds of loops or the equations differ."""
    if [(a.kind, a.axis) for a in first.loops] != [(b.kind, b.axis) for b in second.loops]:
        return None
    mine, yours = single(first), single(second)
    if mine is None or yours is None:
        return None
    by = {b.index: a.index for a, b in zip(first.loops, second.loops, strict=True)}
    names: dict[str, str] = {}
    pairs = ((mine.target, yours.target), (mine.value, yours.value))
    if not all(_alike(a, b, names, by) for a, b in pairs):
        return None
    if len(set(names.values())) < len(names):
        return None
    return Twins(first.loops, second.loops, mine, names)


def _alike(a: Expr, b: Expr, names: dict[str, str], by: Mapping[str, str]) -> bool:
    """Whether two expressions are equal up to tensor names, with the second's indices renamed.

    Fills ``names``.
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, Index) and isinstance(b, Index):
        return a.name == by.get(b.name, b.name)
    if isinstance(a, Access) and isinstance(b, Access):
        if (a.dtype, a.scope) != (b.dtype, b.scope):
            return False
        if names.setdefault(a.name, b.name) != b.name:
            return False
    elif _head(a) != _head(b):
        return False
    mine, yours = children(a), children(b)
    return len(mine) == len(yours) and all(
        _alike(x, y, names, by) for x, y in zip(mine, yours, strict=True)
    )


def _head(expr: Expr) -> object:
    """What a node that is no access is, apart from its children."""
    match expr:
        case Binary() | Unary():
            return expr.op
        case Call():
            return expr.function
        case Compare():
            return expr.ops
        case Int():
            return expr.value
        case Real():
            return expr.text
    return None


def joined_dimensions(found: Twins, index: str) -> dict[str, Slice] | None:
    """For each tensor that differs, the dimension that the loop indexes with its bare index.

    None where some use of the index is anything else: in the value, in a compound subscript, in
    a tensor that both nests read, or in two dimensions.
    """
    result: dict[str, Slice] = {}
    uses = 0
    for access in _accesses(found.equation):
        if found.names[access.name] == access.name:
            continue
        dimensions = [d for d, s in enumerate(access.subscripts) if s == Index(index)]
        if len(dimensions) != 1:
            return None
        known = result.setdefault(access.name, Slice(access, dimensions[0]))
        if known.dimension != dimensions[0]:
            return None
        uses += 1
    every = sum(
        isinstance(node, Index) and node.name == index
        for expr in (found.equation.target, found.equation.value)
        for node in iter_expr(expr)
    )
    return result if uses == every else None


def _accesses(equation: Equation) -> Iterator[Access]:
    for expr in (equation.target, equation.value):
        yield from (node for node in iter_expr(expr) if isinstance(node, Access))


def spatial(loops: tuple[Loop, ...], target: Access) -> tuple[Loop, ...]:
    """The loops whose indices the target uses."""
    return tuple(loop for loop in loops if loop.index in indices_in(target))
