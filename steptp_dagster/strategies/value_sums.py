"""What accumulations come to: bounds of sums, products and extremes of terms with known facts.

A sum of ``n`` terms lies within ``n`` times the bounds of one, widened by what rounding at every
step can add (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2).
"""

from math import exp, inf

from steptp_dagster.leir.dtypes import DType
from steptp_dagster.leir.updates import Update
from steptp_dagster.strategies import value_operations as operations
from steptp_dagster.strategies.intervals import (
    INF,
    ROUNDOFF,
    UNDERFLOW,
    add,
    down,
    hull,
    multiply,
    rounded,
    up,
)
from steptp_dagster.strategies.value_facts import ValueFact
from steptp_dagster.strategies.value_operations import joined, stated, stored


def started(update: Update, dtype: DType) -> ValueFact:
    """What an implicit start puts into memory."""
    if update.op in ("+", "*"):
        value = 0.0 if update.op == "+" else 1.0
        return stated((value, value), dtype, "the start of an update", whole=True, plus=True)
    if not dtype.is_float:
        return operations.whole_range(dtype, "the start of an update")
    value = -INF if update.op == "max" else INF
    return stated((value, value), dtype, "the start of an update", exact_finite=False)


def accumulated(
    update: Update,
    term: ValueFact,
    start: ValueFact | None,
    times: tuple[int, int],
    dtype: DType,
) -> tuple[ValueFact, ValueFact]:
    """What an update writes at any time, and what stands at the end.

    ``times``: how often an element is updated, at least and at most; ``start`` is None for an
    implicit start, which nobody reads.
    """
    evaluation = dtype.evaluation
    if update.op in ("max", "min"):
        pick = operations.larger if update.op == "max" else operations.smaller
        best = stored(term, dtype)
        last = best if start is None else pick(start, best, evaluation)
        if start is not None and start.lower == start.upper and abs(start.lower) == INF:
            last = last._replace(exact_finite=best.exact_finite)
        return (best if start is None else joined(joined(start, best), last)), last
    first = start
    if first is None:
        value = 0.0 if update.op == "+" else 1.0
        first = stated((value, value), evaluation, "the start", whole=True, plus=True)
    if update.op == "+":
        always, last = _summed(first, term, times, dtype)
    else:
        always = last = _multiplied(first, term, times[1], dtype)
    if start is not None:
        always = joined(start, always)
    return always, last


def _summed(
    start: ValueFact, term: ValueFact, times: tuple[int, int], dtype: DType
) -> tuple[ValueFact, ValueFact]:
    least, most = times
    roundoff = ROUNDOFF.get(dtype.name, 0.0)
    ends = []
    slack = (start.magnitude + most * term.magnitude) * _growth(most + 1, roundoff)
    slack = INF if slack != slack else slack + most * UNDERFLOW.get(dtype.name, 0.0)
    all_terms = _scaled(term, most)
    for count in (1, least):  # partial sums are made of at least one term
        partial = all_terms if count == most else hull(_scaled(term, count), all_terms)
        low, high = add(start.interval, partial)
        low, high = (low, high) if slack == 0.0 else (down(low - slack), up(high + slack))
        if low != low or high != high:
            low, high = -INF, INF
        if start.nonnegative and term.nonnegative:
            # adding what is not negative makes no sum smaller, rounded or not
            low = max(low, start.lower, term.lower, 0.0)
        if start.nonpositive and term.nonpositive:
            high = min(high, start.upper, term.upper, 0.0)
        ends.append(rounded((low, high), dtype.name) if dtype.is_float else (low, high))
    same = (start.nonnegative and term.nonnegative) or (start.nonpositive and term.nonpositive)
    both_signs = min(start.lower, term.lower) == -INF and max(start.upper, term.upper) == INF
    overflows = ends[0] == (-INF, INF)
    facts = [
        stored(
            stated(
                interval,
                dtype.evaluation,
                "a sum of terms that are not negative" if term.nonnegative else "a sum",
                nan=start.nan or term.nan or both_signs or overflows,
                whole=start.whole and term.whole,
                plus=start.plus and term.plus,
                exact_nonzero=same and (start.exact_nonzero or term.exact_nonzero),
                exact_finite=start.exact_finite and term.exact_finite,
            ),
            dtype,
        )
        for interval in ends
    ]
    return facts[0], facts[1]


def _scaled(term: ValueFact, count: int) -> tuple[float, float]:
    return multiply((float(count), float(count)), term.interval)


def _growth(operations_: int, roundoff: float) -> float:
    """By how much of the sum of magnitudes rounding may move a sum."""
    power = operations_ * roundoff * 1.01
    return inf if power > 700.0 else up(exp(power) - 1.0, 4) if roundoff else 0.0


def _multiplied(start: ValueFact, term: ValueFact, most: int, dtype: DType) -> ValueFact:
    """A product of up to ``most`` factors: signs, and bounds where all of them stay within 1."""
    plus = start.plus and term.plus
    low, high = (0.0 if start.nonnegative and term.nonnegative else -INF), INF
    if start.magnitude <= 1.0 and term.magnitude <= 1.0:
        low, high = max(low, -1.0), 1.0
    if start.lower >= 1.0 and term.lower >= 1.0:
        low = 1.0
    fact = stated(
        (low, high),
        dtype.evaluation,
        "a product",
        nan=start.nan or term.nan or high == INF,
        whole=start.whole and term.whole,
        plus=plus,
        exact_nonzero=start.exact_nonzero and term.exact_nonzero,
        exact_finite=start.exact_finite and term.exact_finite,
    )
    if most == 1:
        fact = operations.multiplied(start, term, dtype.evaluation)
    return stored(fact, dtype)
