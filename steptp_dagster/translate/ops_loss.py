"""Classification losses, kept whole so that class numbers subscript the scores directly."""

import math

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.ops_index import picker, place
from steptp_dagster.translate.ops_softmax import row_max_and_sum
from steptp_dagster.translate.scalars import add, call, div, literal, mul, neg, sub
from steptp_dagster.translate.values import Value

_NONE, _MEAN, _SUM = 0, 1, 2


@operator("aten.cross_entropy_loss.default")
def cross_entropy(  # the operator's schema
    op: Call,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Value:
    """The negative log-softmax of each row at its class, or against probabilities."""
    if label_smoothing:
        raise Unsupported("label_smoothing", "smoothed labels; 0 does")
    dim = 1 if x.rank > 1 else 0
    top, total = row_max_and_sum(op, x, dim)
    logs = op.builder.compute(
        x.shape,
        op.accumulator,
        lambda *c: sub(sub(x(*c), top(*c)), call("log", total(*c))),
    )
    if not target.is_float:
        return _at_classes(op, logs, target, weight, reduction, ignore_index)
    if weight is not None:
        raise Unsupported("weight", "weighted classes; none do")
    wide = target.broadcast(x.shape)
    rows = (*x.shape[:dim], *x.shape[dim + 1 :])

    def element(coords: Coords, taps: Coords) -> Expr:
        at = (*coords[:dim], *taps, *coords[dim:])
        return mul(wide(*at), logs(*at))

    losses = op.builder.reduce(rows, op.accumulator, (x.shape[dim],), add, element)
    return _reduced(op, losses, reduction)


@operator("aten.nll_loss_nd.default")
def nll_loss(  # the operator's schema
    op: Call,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
) -> Value:
    """The negative score of each row at its class."""
    return _at_classes(op, x, target, weight, reduction, ignore_index)


def _at_classes(  # what both losses share
    op: Call,
    logs: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
) -> Value:
    dim = 1 if logs.rank > 1 else 0
    classes = logs.shape[dim]
    if weight is not None:
        raise Unsupported("weight", "weighted classes; none do")
    if 0 <= ignore_index < classes:
        raise Unsupported("ignore_index", f"class {ignore_index} is ignored; no class at all does")
    index = picker(op, target, classes)

    def scores(*c: Coord) -> Expr:
        return logs(*c[:dim], place(index(*c), classes), *c[dim:])

    return _reduced(op, Value(index.shape, logs.dtype, lambda c: scores(*c)), reduction)


def _reduced(op: Call, scores: Value, reduction: int) -> Value:
    """The negated scores: each of them, their mean over the rows, or their sum."""
    if reduction == _NONE:
        return op.builder.compute(op.shape, op.dtype, lambda *c: neg(scores(*c)))
    total = op.builder.reduce((), op.accumulator, scores.shape, add, lambda _, t: scores(*t))
    count = math.prod(scores.shape) if reduction == _MEAN else 1

    def element(*_: Coord) -> Expr:
        negative = neg(total())
        return negative if reduction == _SUM else div(negative, literal(count))

    return op.builder.compute((), op.dtype, element)
