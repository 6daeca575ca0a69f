"""Buffers and tensors written in the code: constants with values, or formulas of the indices.

A constant's values are part of the program's text, so large ones are costly. What many programs
hold as large tables has a short formula, though: causal masks are triangles, position ids are
ramps, and masks for many heads repeat one. Triangles are always written as formulas, the others
where a table would be long. What is left beyond ``LIMIT`` elements is refused.
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import torch

from steptp_dagster.leir.ast import Expr
from steptp_dagster.leir.signature import Scalar, Variable
from steptp_dagster.translate.builder import Builder
from steptp_dagster.translate.coords import Coord, Coords, constant
from steptp_dagster.translate.operators import Unsupported
from steptp_dagster.translate.scalars import choose, compare, literal
from steptp_dagster.translate.values import Value, filled

#: Elements of all constants of a program together: some megabytes of text.
LIMIT: Final = 1 << 18
#: Elements from which a constant counts as large: formulas are looked for, equal ones shared.
LARGE: Final = 4096


@dataclass(slots=True)
class Constants:
    """The constants of one program."""

    builder: Builder
    _shared: dict[bytes, Value] = field(default_factory=dict)
    _elements: int = 0

    def value(self, held: torch.Tensor, dtype: str) -> Value:
        """The constant tensor ``held``, whose LEIR type is ``dtype``.

        Raises Unsupported for NaNs and for more elements than a text can hold.
        """
        held = held.detach().cpu().contiguous()
        if held.is_floating_point() and bool(held.isnan().any()):
            raise Unsupported("", "a constant tensor that holds NaN; masks and infinities do")
        formula = _triangle(held, dtype)
        if formula is None and held.numel() >= LARGE:
            formula = _uniform(held, dtype) or _ramp(held, dtype)
        if formula is not None:
            return formula
        if held.numel() < LARGE:
            return self._table(held, dtype)
        few = held
        repeated = [d for d in range(held.dim()) if _repeats(held, d)]
        for d in repeated:
            few = few.narrow(d, 0, 1)
        return self._table_once(few.contiguous(), dtype).broadcast(tuple(held.shape))

    def _table_once(self, held: torch.Tensor, dtype: str) -> Value:
        """A large table, which other equal ones share."""
        digest = blake2b(f"{dtype}{list(held.shape)}".encode(), digest_size=16)
        digest.update(held.reshape(-1).view(torch.uint8).numpy().tobytes())
        key = digest.digest()
        if key not in self._shared:
            self._shared[key] = self._table(held, dtype)
        return self._shared[key]

    def _table(self, held: torch.Tensor, dtype: str) -> Value:
        self._elements += held.numel()
        if self._elements > LIMIT:
            raise Unsupported(
                "",
                f"a constant of {held.numel()} elements, which makes more than {LIMIT} in all; "
                "make it a parameter or an input, or compute it in forward",
            )
        values: tuple[Scalar, ...] = tuple(held.reshape(-1).tolist())
        shape = tuple(held.shape)
        return self.builder.declare(
            lambda name: Variable("const", name, dtype, shape, values=values)
        )


def _repeats(held: torch.Tensor, dim: int) -> bool:
    """Whether all positions of a dimension hold the same."""
    return held.shape[dim] > 1 and bool((held == held.narrow(dim, 0, 1)).all())


def _triangle(held: torch.Tensor, dtype: str) -> Value | None:
    """One value on and below a diagonal of the last two dimensions, another above."""
    if held.dim() < 2 or min(held.shape[-2:]) < 2:
        return None
    rows, columns = held.shape[-2:]
    matrices = held.reshape(-1, rows, columns)
    below, above = matrices[0, -1, 0], matrices[0, 0, -1]
    if bool(below == above):
        return None
    edge = int((matrices[0, 0] == below).sum()) - 1
    if edge < 0:  # the diagonal starts below the first row
        edge = -int((matrices[0, :, 0] == above).sum())
    gap = torch.arange(columns)[None] - torch.arange(rows)[:, None]
    if not bool((matrices == torch.where(gap <= edge, below, above)).all()):
        return None
    low, high = below.item(), above.item()

    def element(c: Coords) -> Expr:
        row, column = c[-2], c[-1]
        # column - row <= edge, written without a negative term
        left, right = (column, row + edge) if edge >= 0 else (column - edge, row)
        if dtype == "bool":
            return compare(left.to_expr(), "<=" if low else ">", right.to_expr())
        inside = compare(left.to_expr(), "<=", right.to_expr())
        return choose(inside, literal(low), literal(high))

    return Value(tuple(held.shape), dtype, element)


def _uniform(held: torch.Tensor, dtype: str) -> Value | None:
    """One value everywhere."""
    first = held.reshape(-1)[0]
    if not bool((held == first).all()):
        return None
    return filled(tuple(held.shape), dtype, literal(first.item()))


def _ramp(held: torch.Tensor, dtype: str) -> Value | None:
    """Integers that grow evenly along every dimension."""
    if held.dtype != torch.int64:
        return None
    origin = int(held.reshape(-1)[0])
    steps = []
    expected = torch.full_like(held, origin)
    for d, extent in enumerate(held.shape):
        corner = held.movedim(d, 0).reshape(extent, -1)[:, 0]
        step = int(corner[1]) - int(corner[0]) if extent > 1 else 0
        side = [1] * held.dim()
        side[d] = extent
        expected = expected + (torch.arange(extent) * step).reshape(side)
        steps.append(step)
    if not torch.equal(expected, held):
        return None

    def at(c: Coords) -> Coord:
        total = constant(origin)
        for coord, step in zip(c, steps, strict=True):
            total = total + coord * step
        return total

    return Value(tuple(held.shape), dtype, lambda c: at(c).to_expr())
