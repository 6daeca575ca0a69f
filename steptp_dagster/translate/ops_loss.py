"""Classification losses, kept whole so that class numbers subscript the scores directly."""

import math
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import Expr
from steptp_dagster.translate.coords import Coord, Coords
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.ops_index import clamped, picker, place
from steptp_dagster.translate.ops_softmax import row_max_and_sum
from steptp_dagster.translate.scalars import (
    ONE,
    ZERO,
    Scalar,
    add,
    call,
    choose,
    compare,
    div,
    literal,
    mul,
    neg,
    sub,
)
from steptp_dagster.translate.values import Value

_NONE, _MEAN, _SUM = 0, 1, 2
#: The class that PyTorch ignores unless it is told otherwise: none of those there are.
_NO_CLASS: Final = -100


@dataclass(frozen=True, slots=True)
class _Options:
    """What both losses can be told: the parameters of PyTorch's operators."""

    weight: Value | None
    reduction: int
    ignore_index: int
    smoothing: float = 0.0


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
    dim = 1 if x.rank > 1 else 0
    top, total = row_max_and_sum(op, x, dim)
    logs = op.builder.compute(
        x.shape,
        op.accumulator,
        lambda *c: sub(sub(x(*c), top(*c)), call("log", total(*c))),
    )
    options = _Options(weight, reduction, ignore_index, label_smoothing)
    if target.is_float:
        return _against_probabilities(op, logs, target, options)
    return _at_classes(op, logs, target, options)


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
    return _at_classes(op, x, target, _Options(weight, reduction, ignore_index))


def _class_dim(x: Value) -> int:
    return 1 if x.rank > 1 else 0


def _against_probabilities(op: Call, logs: Value, target: Value, options: _Options) -> Value:
    """``-sum(weight * target * logs)`` of each row; smoothing mixes in the uniform distribution."""
    dim = _class_dim(logs)
    classes = logs.shape[dim]
    wide = target.broadcast(logs.shape)

    def element(coords: Coords, taps: Coords) -> Expr:
        at = (*coords[:dim], *taps, *coords[dim:])
        wanted = wide(*at)
        if options.smoothing:
            kept = mul(literal(1 - options.smoothing), wanted)
            wanted = add(kept, literal(options.smoothing / classes))
        if options.weight is not None:
            wanted = mul(options.weight(*taps), wanted)
        return mul(wanted, logs(*at))

    rows = (*logs.shape[:dim], *logs.shape[dim + 1 :])
    losses = op.builder.reduce(rows, op.accumulator, (classes,), add, element)
    return _reduced(op, losses, options.reduction, math.prod(rows))


def _at_classes(op: Call, logs: Value, target: Value, options: _Options) -> Value:
    """The scores at the classes, smoothed and weighted, and their mean by the weights."""
    dim = _class_dim(logs)
    classes = logs.shape[dim]
    ignored = options.ignore_index
    ignoring = _ignores(op, target, classes, ignored)
    if ignoring and not 0 <= ignored < classes:
        index = clamped(op, target, classes)
        if ignored in (-1, classes):
            op.builder.restrict_source(target, min(0, ignored), max(classes - 1, ignored))
    else:
        index = picker(op, target, classes)
    rows = index.shape
    weights = _weights(op, target, index, options, ignoring)

    def score(*c: Coord) -> Expr:
        return logs(*c[:dim], place(index(*c), classes), *c[dim:])

    def weighted(*c: Coord) -> Expr:
        return score(*c) if weights is None else mul(weights(*c), score(*c))

    losses = Value(rows, logs.dtype, lambda c: weighted(*c))
    if options.smoothing:
        losses = _smoothed(op, logs, losses, target if ignoring else None, options)
    total: Value | int = math.prod(rows)
    if weights is not None and options.reduction == _MEAN:
        given = weights
        total = op.builder.reduce((), op.accumulator, rows, add, lambda _, t: given(*t))
    return _reduced(op, losses, options.reduction, total)


def _ignores(op: Call, target: Value, classes: int, ignored: int) -> bool:
    """Whether some row may be ignored: its class is named, or the targets hold it."""
    low, high = op.builder.seen(target)
    if 0 <= ignored < classes or ignored != _NO_CLASS:
        return True
    return low is not None and high is not None and low <= ignored <= high


def _weights(
    op: Call, target: Value, index: Value, options: _Options, ignoring: bool
) -> Value | None:
    """The weight of each row: that of its class, 0 where it is ignored; None where all are 1."""
    weight = options.weight
    if weight is None and not ignoring:
        return None

    def element(*c: Coord) -> Expr:
        of_class = ONE if weight is None else weight(place(index(*c), weight.shape[0]))
        if not ignoring:
            return of_class
        kept = compare(target(*c), "!=", literal(options.ignore_index))
        return choose(kept, of_class, ZERO)

    return op.builder.compute(index.shape, op.accumulator, element)


def _smoothed(
    op: Call, logs: Value, losses: Value, ignoring: Value | None, options: _Options
) -> Value:
    """The mixture of the scores at the classes and the sum of all scores of the row."""
    dim = _class_dim(logs)
    classes = logs.shape[dim]
    weight = options.weight

    def element(coords: Coords, taps: Coords) -> Expr:
        read = logs(*coords[:dim], *taps, *coords[dim:])
        return read if weight is None else mul(weight(*taps), read)

    sums = op.builder.reduce(losses.shape, op.accumulator, (classes,), add, element)

    def mixed(*c: Coord) -> Expr:
        everywhere = mul(literal(options.smoothing / classes), sums(*c))
        if ignoring is not None:
            kept = compare(ignoring(*c), "!=", literal(options.ignore_index))
            everywhere = choose(kept, everywhere, ZERO)
        return add(mul(literal(1 - options.smoothing), losses(*c)), everywhere)

    return Value(losses.shape, losses.dtype, lambda c: mixed(*c))


def _reduced(op: Call, scores: Value, reduction: int, total: Value | Scalar) -> Value:
    """The negated scores: each of them, their sum, or the sum by ``total``."""
    if reduction == _NONE:
        return op.builder.compute(op.shape, op.dtype, lambda *c: neg(scores(*c)))
    whole = op.builder.reduce((), op.accumulator, scores.shape, add, lambda _, t: scores(*t))

    def element(*_: Coord) -> Expr:
        negative = neg(whole())
        if reduction == _SUM:
            return negative
        return div(negative, total() if isinstance(total, Value) else literal(total))

    return op.builder.compute((), op.dtype, element)
