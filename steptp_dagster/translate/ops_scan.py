"""Scans: every element from those before it, as a recurrence or, for sums and products, a triangle.

The recurrence takes one step per element, in a serial loop. The triangle (``scan="triangular"``)
makes every element of its own, from all elements up to it: more work, none of it in sequence.
"""

from steptp_dagster.leir.ast import Binary, Expr, Inf
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, axis, operator
from steptp_dagster.translate.ops_elementwise import floating
from steptp_dagster.translate.ops_reduce import Combine, largest, smallest
from steptp_dagster.translate.scalars import ONE, ZERO, add, call, choose, compare, mul, neg, sub
from steptp_dagster.translate.values import Value


def _first(c: Coord) -> Expr:
    """Whether a position is the first of its dimension."""
    return compare((c - 1).to_expr(), "<", ZERO)


def _scan(op: Call, x: Value, dim: int, combine: Combine, identity: Expr) -> Value:
    """The running value along a dimension."""
    if x.rank == 0:
        return op.builder.store(x, op.dtype)
    at = axis(dim, x.rank)
    if op.builder.scan == "triangular":
        return _triangle(op, x, at, combine, identity)
    running = op.builder.recurrence(
        x.shape,
        op.accumulator,
        at,
        lambda c, before: combine(choose(_first(c[at]), identity, before), x(*c)),
    )
    return op.builder.store(running, op.dtype)


def _triangle(op: Call, x: Value, at: int, combine: Combine, identity: Expr) -> Value:
    def element(c: Coords, taps: Coords) -> Expr:
        (tap,) = taps
        there = (*c[:at], tap, *c[at + 1 :])
        if x.shape[at] == 1:
            return x(*there)
        return choose(compare(tap.to_expr(), "<=", c[at].to_expr()), x(*there), identity)

    total = op.builder.reduce(x.shape, op.accumulator, (x.shape[at],), combine, element)
    return op.builder.store(total, op.dtype)


@operator("aten.cumsum.default")
def cumsum(op: Call, x: Value, dim: int, _dtype: object) -> Value:
    """Running sums."""
    return _scan(op, floating(op, x), dim, add, ZERO)


@operator("aten.cumprod.default")
def cumprod(op: Call, x: Value, dim: int, _dtype: object) -> Value:
    """Running products."""
    return _scan(op, floating(op, x), dim, mul, ONE)


def _running_extreme(op: Call, x: Value, dim: int, combine: Combine) -> tuple[Value, ...]:
    """Running extremes, and where the last element stands that is as extreme."""
    if x.rank == 0:
        zero = op.builder.compute((), "i64", lambda *_: ZERO)
        return op.builder.store(x), zero
    at = axis(dim, x.rank)
    values = op.builder.recurrence(
        x.shape,
        x.dtype,
        at,
        lambda c, before: choose(_first(c[at]), x(*c), combine(before, x(*c))),
    )
    if 1 not in op.used:
        return (values,)

    def position(c: Coords, before: Expr) -> Expr:
        here = c[at].to_expr()
        newer = choose(compare(x(*c), "==", values(*c)), here, before)
        return choose(_first(c[at]), here, newer)

    return values, op.builder.recurrence(x.shape, "i64", at, position)


@operator("aten.cummax.default")
def cummax(op: Call, x: Value, dim: int) -> tuple[Value, ...]:
    """Running maxima and their last positions."""
    return _running_extreme(op, x, dim, largest)


@operator("aten.cummin.default")
def cummin(op: Call, x: Value, dim: int) -> tuple[Value, ...]:
    """Running minima and their last positions."""
    return _running_extreme(op, x, dim, smallest)


@operator("aten.logcumsumexp.default")
def logcumsumexp(op: Call, x: Value, dim: int) -> Value:
    """Running log-sums of exponentials: ``max(a,b)+log(1+exp(-abs(a-b)))``, safe at every size."""
    if x.rank == 0:
        return op.builder.store(x, op.dtype)
    at = axis(dim, x.rank)

    def joined(a: Expr, b: Expr) -> Expr:
        smooth = call("log", add(ONE, call("exp", neg(call("abs", sub(a, b))))))
        # two equal infinities have no difference
        alike = Binary("&", compare(a, "==", b), compare(call("abs", b), "==", Inf()))
        return choose(alike, b, add(call("max", a, b), smooth))

    def step(c: Coords, before: Expr) -> Expr:
        return choose(_first(c[at]), x(*c), joined(before, x(*c)))

    running = op.builder.recurrence(x.shape, op.accumulator, at, step)
    return op.builder.store(running, op.dtype)
