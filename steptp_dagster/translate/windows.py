"""Sliding windows: what convolutions and pools read, and the padded copies they read it from."""

from dataclasses import dataclass

from steptp_dagster.leir.ast import Compare, Expr, Int
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call
from steptp_dagster.translate.scalars import choose, compare, conjunction
from steptp_dagster.translate.values import Value


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial dimension: position ``out*stride + tap*dilation - before`` of the input."""

    taps: int
    stride: int
    before: int
    dilation: int

    def reach(self, out: int) -> int:
        """Number of padded input positions that ``out`` windows touch."""
        return (out - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def position(self, out: Coord, tap: Coord) -> Coord:
        """The padded input position of a tap of a window."""
        return out * self.stride + tap * self.dilation


def per_dimension(values: list[int] | int, count: int) -> list[int]:
    """One number for each spatial dimension; a single one serves all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * count if len(listed) == 1 else listed


def inside(at: Coord, extent: int) -> Expr | None:
    """The condition ``0 <= at < extent``, as far as it is not known to hold."""
    below, above = at.low < 0, at.high >= extent
    # ``low <= rest < low + extent`` reads better than a negative constant on the left
    shift = max(0, -at.constant)
    shown = (at + shift).to_expr()
    if below and above:
        return Compare((Int(shift), shown, Int(extent + shift)), ("<=", "<"))
    if below:
        return compare(shown, ">=", Int(shift))
    return compare(shown, "<", Int(extent + shift)) if above else None


def guarded(x: Value, at: Coords, otherwise: Expr) -> Expr:
    """The element of ``x`` at ``at`` where that lies inside it, else ``otherwise``."""
    tests = [inside(c, n) for c, n in zip(at, x.shape, strict=True)]
    condition = conjunction([t for t in tests if t is not None])
    return x(*at) if condition is None else choose(condition, x(*at), otherwise)


def padded(
    call: Call, x: Value, windows: list[Window], out: tuple[int, ...], filler: Expr
) -> Value:
    """``x`` with its last dimensions padded as far as the windows reach, in a nest of its own.

    Where the windows never leave the input this is ``x`` itself and there is no nest.
    """
    lead = x.rank - len(windows)
    reach = tuple(w.reach(n) for w, n in zip(windows, out, strict=True))
    before = (0,) * lead + tuple(w.before for w in windows)
    if not any(before) and all(r <= n for r, n in zip(reach, x.shape[lead:], strict=True)):
        return x
    shape = (*x.shape[:lead], *reach)

    def element(*c: Coord) -> Expr:
        return guarded(x, tuple(k - p for k, p in zip(c, before, strict=True)), filler)

    return call.builder.compute(shape, x.dtype, element)
