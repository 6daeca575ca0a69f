"""The value fact of one operation from those of its operands."""

import math
from collections.abc import Callable
from typing import Final

from steptp_dagster.leir.conversion import integer_range
from steptp_dagster.leir.dtypes import DTYPES, DType
from steptp_dagster.strategies import intervals
from steptp_dagster.strategies.intervals import EVERYTHING, INF, Interval, contains
from steptp_dagster.strategies.value_facts import ValueFact

UNKNOWN: Final = ValueFact(-INF, INF, True, False, False, False, False, "nothing is known")
#: Functions of one argument that never decrease, with values between -1 and 1.
_MONOTONE: Final[dict[str, Callable[[float], float]]] = {"erf": math.erf, "tanh": math.tanh}
_WHOLE: Final[dict[str, Callable[[float], int]]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
}


def stated(
    interval: Interval,
    dtype: DType,
    why: str,
    *,
    nan: bool = False,
    whole: bool = False,
    plus: bool = False,
    exact_nonzero: bool = False,
    exact_finite: bool = True,
) -> ValueFact:
    """A fact in a type: floats are widened by rounding, integers that may wrap are unknown."""
    if dtype.is_float:
        low, high = intervals.rounded(interval, dtype.name)
    else:
        lowest, highest = integer_range(dtype)
        if not (lowest <= interval[0] and interval[1] <= highest):
            return whole_range(dtype, "an integer that may wrap")
        low, high, whole, nan = *interval, True, False
        plus = low >= 0
    above = low > 0.0
    return ValueFact(
        low,
        high,
        nan,
        whole,
        plus or above,
        exact_nonzero or above or high < 0.0,
        exact_finite,
        why,
    )


def whole_range(dtype: DType, why: str) -> ValueFact:
    """Any value of an integer type."""
    lowest, highest = integer_range(dtype)
    return ValueFact(lowest, highest, False, True, lowest >= 0, False, True, why)


def joined(x: ValueFact, y: ValueFact) -> ValueFact:
    """What holds for both."""
    if x is y:
        return x
    wider = x if x.lower <= y.lower and y.upper <= x.upper else y
    return ValueFact(
        min(x.lower, y.lower),
        max(x.upper, y.upper),
        x.nan or y.nan,
        x.whole and y.whole,
        x.plus and y.plus,
        x.exact_nonzero and y.exact_nonzero,
        x.exact_finite and y.exact_finite,
        wider.why,
    )


def stored(x: ValueFact, dtype: DType) -> ValueFact:
    """What a read finds after a store to ``dtype``: the rounding of f16, wrapping integers."""
    if not dtype.is_float:
        if dtype.kind == "bool":
            return ValueFact(0.0, 1.0, False, True, True, False, True, "a truth value")
        if x.nan or intervals.infinite(x.interval):
            return whole_range(dtype, "a float turned into an integer")
        ends = float(math.trunc(x.lower)), float(math.trunc(x.upper))
        return stated(ends, dtype, x.why, exact_nonzero=x.exact_nonzero and x.whole)
    low, high = intervals.rounded(x.interval, dtype.name)
    if low == x.lower and high == x.upper:
        return x
    return x._replace(lower=low, upper=high)


def converted(x: ValueFact, dtype: DType) -> ValueFact:
    """The operand in the type of the operation."""
    return stored(x, dtype)


def negated(x: ValueFact, dtype: DType) -> ValueFact:
    """``-x``."""
    return stated(
        intervals.negative(x.interval),
        dtype,
        x.why,
        nan=x.nan,
        whole=x.whole,
        exact_nonzero=x.exact_nonzero,
        exact_finite=x.exact_finite,
    )


def added(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``x+y``."""
    same_sign = (x.nonnegative and y.nonnegative) or (x.nonpositive and y.nonpositive)
    opposite = (x.lower == -INF and y.upper == INF) or (x.upper == INF and y.lower == -INF)
    return stated(
        intervals.add(x.interval, y.interval),
        dtype,
        "a sum of terms that are not negative" if x.nonnegative and y.nonnegative else "a sum",
        nan=x.nan or y.nan or opposite,
        plus=x.plus and y.plus,
        exact_nonzero=same_sign and (x.exact_nonzero or y.exact_nonzero),
        whole=x.whole and y.whole,
        exact_finite=x.exact_finite and y.exact_finite,
    )


def subtracted(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``x-y``."""
    found = added(x, negated(y, dtype), dtype)
    return found._replace(why="a difference")


def multiplied(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``x*y`` of values that have nothing to do with each other."""
    undefined = (contains(x.interval, 0.0) and intervals.infinite(y.interval)) or (
        contains(y.interval, 0.0) and intervals.infinite(x.interval)
    )
    return stated(
        intervals.multiply(x.interval, y.interval),
        dtype,
        "a product",
        nan=x.nan or y.nan or undefined,
        plus=x.plus and y.plus,
        exact_nonzero=x.exact_nonzero and y.exact_nonzero,
        whole=x.whole and y.whole,
        exact_finite=x.exact_finite and y.exact_finite,
    )


def squared(x: ValueFact, dtype: DType) -> ValueFact:
    """``x*x`` of one value."""
    return stated(
        intervals.square(x.interval),
        dtype,
        "a square is not negative",
        nan=x.nan,
        whole=x.whole,
        plus=True,
        exact_nonzero=x.exact_nonzero,
        exact_finite=x.exact_finite,
    )


def divided(x: ValueFact, y: ValueFact, dtype: DType, *, part: bool = False) -> ValueFact:
    """``x/y``; ``part``: ``y`` is the sum of ``x`` and something that is not negative either."""
    undefined = (contains(x.interval, 0.0) and contains(y.interval, 0.0)) or (
        intervals.infinite(x.interval) and intervals.infinite(y.interval)
    )
    found = intervals.divide(x.interval, y.interval, plus=y.plus)
    why = "a quotient"
    if part and x.nonnegative:
        found = max(found[0], 0.0), min(found[1], 1.0)
        why = "a part of a sum of terms that are not negative"
    return stated(
        found,
        dtype,
        why,
        nan=x.nan or y.nan or undefined,
        plus=x.plus and y.plus,
        exact_nonzero=x.exact_nonzero and y.exact_finite,
        exact_finite=x.exact_finite and y.exact_finite and y.exact_nonzero,
    )


def raised(x: ValueFact, n: ValueFact, dtype: DType) -> ValueFact:
    """``x**n``."""
    exponent = n.lower
    if n.lower == n.upper and exponent == math.floor(exponent) and abs(exponent) <= 2.0**20:
        whole = int(abs(exponent))
        base = stated(
            intervals.whole_power(x.interval, whole),
            dtype,
            "an even power is not negative" if whole % 2 == 0 else "a power",
            nan=x.nan,
            whole=x.whole and exponent >= 0,
            plus=x.plus or whole % 2 == 0,
            exact_nonzero=x.exact_nonzero or whole == 0,
            exact_finite=x.exact_finite,
        )
        if exponent >= 0:
            return base
        one = stated((1.0, 1.0), dtype, "a number")
        ends = divided(one, base, dtype)
        return ends._replace(lower=intervals.down(ends.lower, 2), upper=intervals.up(ends.upper, 2))
    if not x.nonnegative:
        return UNKNOWN
    return stated(
        intervals.power(x.interval, n.interval),
        dtype,
        "a power of what is not negative",
        nan=x.nan or n.nan,
        plus=x.plus,
        exact_nonzero=x.exact_nonzero and x.exact_finite and n.exact_finite,
        exact_finite=x.exact_finite and n.exact_finite and (x.exact_positive or n.lower > 0.0),
    )


def floor_divided(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``x//y``."""
    if not dtype.is_float and contains(y.interval, 0.0):
        return whole_range(dtype, "an integer division by something that may be 0")
    quotient = intervals.divide(x.interval, y.interval)
    ends = (
        math.floor(quotient[0]) if math.isfinite(quotient[0]) else quotient[0],
        (math.floor(quotient[1]) if math.isfinite(quotient[1]) else quotient[1]),
    )
    finite = x.exact_finite and y.exact_finite and not contains(y.interval, 0.0)
    return stated(ends, dtype, "a floor", nan=True, whole=True, exact_finite=finite)


def remainder(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``x%y``, which has the sign of ``y``; known for integers only."""
    if dtype.is_float or contains(y.interval, 0.0):
        return UNKNOWN if dtype.is_float else whole_range(dtype, "a remainder")
    if y.positive:
        if x.lower >= 0 and x.upper < y.lower:
            return stated(x.interval, dtype, x.why, exact_nonzero=x.exact_nonzero)
        high = y.upper - 1 if x.lower < 0 else min(y.upper - 1, x.upper)
        return stated((0.0, high), dtype, "a remainder is at least 0")
    return stated((y.lower + 1, 0.0), dtype, "a remainder has the sign of its divisor")


def larger(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``max(x,y)``; NaN goes through."""
    above = x.exact_positive or y.exact_positive
    return stated(
        (max(x.lower, y.lower), max(x.upper, y.upper)),
        dtype,
        "a maximum is at least each of its operands",
        nan=x.nan or y.nan,
        plus=x.plus and y.plus,
        exact_nonzero=above or (x.exact_nonzero and y.exact_nonzero),
        whole=x.whole and y.whole,
        exact_finite=x.exact_finite and y.exact_finite,
    )


def smaller(x: ValueFact, y: ValueFact, dtype: DType) -> ValueFact:
    """``min(x,y)``; NaN goes through."""
    below = (x.nonpositive and x.exact_nonzero) or (y.nonpositive and y.exact_nonzero)
    return stated(
        (min(x.lower, y.lower), min(x.upper, y.upper)),
        dtype,
        "a minimum is at most each of its operands",
        nan=x.nan or y.nan,
        plus=x.plus and y.plus,
        exact_nonzero=below or (x.exact_nonzero and y.exact_nonzero),
        whole=x.whole and y.whole,
        exact_finite=x.exact_finite and y.exact_finite,
    )


def applied(name: str, x: ValueFact, dtype: DType) -> ValueFact:
    """A function of one argument."""
    ends = x.interval
    finite = x.exact_finite
    match name:
        case "exp":
            found = intervals.monotone(_exp, ends, (0.0, INF))
            return stated(
                found,
                dtype,
                "an exponential is not negative",
                nan=x.nan,
                plus=True,
                exact_nonzero=finite,  # the exponential of a literal -inf is 0
                exact_finite=finite,
            )
        case "log":
            inside = max(ends[0], 0.0), max(ends[1], 0.0)
            return stated(
                intervals.monotone(_log, inside, EVERYTHING),
                dtype,
                "a logarithm",
                nan=x.nan or x.lower < 0.0,
                exact_finite=finite and x.exact_positive,
            )
        case "sqrt":
            low, high = max(ends[0], 0.0), max(ends[1], 0.0)
            exact = _square_root(low, intervals.down), _square_root(high, intervals.up)
            return stated(
                exact,
                dtype,
                "a root is not negative",
                nan=x.nan or x.lower < 0.0,
                plus=x.plus,
                exact_nonzero=x.exact_nonzero,
                exact_finite=finite and x.nonnegative,
            )
        case "abs":
            return stated(
                intervals.absolute(ends),
                dtype,
                "an absolute value is not negative",
                nan=x.nan,
                whole=x.whole,
                plus=True,
                exact_nonzero=x.exact_nonzero,
                exact_finite=finite,
            )
        case "erf" | "tanh":
            found = intervals.monotone(_MONOTONE[name], ends, (-1.0, 1.0))
            return stated(
                found,
                dtype,
                f"{name} lies between -1 and 1",
                nan=x.nan,
                plus=x.plus,
                exact_nonzero=x.exact_nonzero,
                exact_finite=finite,
            )
        case "sin" | "cos":
            nan = x.nan or intervals.infinite(ends)
            return stated(
                (-1.0, 1.0), dtype, f"{name} lies between -1 and 1", nan=nan, exact_finite=finite
            )
        case "floor" | "ceil" | "round":
            if not dtype.is_float:
                return x
            low, high = (float(_WHOLE[name](e)) if math.isfinite(e) else e for e in ends)
            return stated(
                (low, high), dtype, "a whole number", nan=x.nan, whole=True, exact_finite=finite
            )
    return UNKNOWN


def literal(value: float, dtype: DType, *, exactly: bool) -> ValueFact:
    """A number; ``exactly``: binary64 holds it without rounding."""
    ends = intervals.around(value, exactly=exactly)
    return stated(ends, dtype, "a number", whole=value == math.floor(value), plus=value >= 0.0)


def infinity(dtype: DType) -> ValueFact:
    """The literal ``inf``."""
    return stated((INF, INF), dtype, "infinity", plus=True, exact_finite=False)


def of_type(name: str, *, masked: bool) -> ValueFact:
    """Any value that an input of a dtype may have: finite, or ``-inf`` where ``masked``."""
    dtype = DTYPES[name]
    if dtype.kind == "bool":
        return ValueFact(0.0, 1.0, False, True, True, False, True, "a truth value")
    if dtype.is_integer:
        return whole_range(dtype, "any value of its type")
    largest = intervals.LARGEST[name]
    low = -INF if masked else -largest
    why = "an input" if masked else "a finite input"
    return ValueFact(low, largest, False, False, False, False, True, why)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return INF


def _log(value: float) -> float:
    return -INF if value == 0.0 else math.log(value) if math.isfinite(value) else value


def _square_root(value: float, outwards: Callable[[float], float]) -> float:
    root = math.sqrt(value)
    if math.isinf(root) or (root == int(root) and root < 2.0**26):
        return root
    return outwards(root)
