"""Interval arithmetic for value facts, rounded outwards.

An interval ``(low, high)`` holds every value of an expression that is not NaN; its ends may be
infinite. Each operation gives an interval that holds its result in real arithmetic, and
``rounded`` widens one by the rounding to a type. Rounding is monotone, so an interval that went
through ``rounded`` at every node holds the result in real arithmetic, in binary64 and in working
precision at once.
"""

import math
import struct
from array import array
from collections.abc import Callable
from itertools import product
from typing import Final

Interval = tuple[float, float]

INF: Final = math.inf
EVERYTHING: Final[Interval] = (-INF, INF)
#: A library function of binary64 is off by less than this many units in the last place.
_LIBRARY_ULPS: Final = 2
#: Half a unit in the last place of 1, by float type: the relative error of one rounding.
ROUNDOFF: Final = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
#: Half the distance between subnormal numbers: the absolute error of one rounding near zero.
UNDERFLOW: Final = {"f16": 2.0**-25, "bf16": 2.0**-134, "f32": 2.0**-150, "f64": 0.0}
#: Largest finite number, by float type.
LARGEST: Final = {
    "f16": 65504.0,
    "bf16": (2.0 - 2.0**-7) * 2.0**127,
    "f32": (2.0 - 2.0**-23) * 2.0**127,
    "f64": (2.0 - 2.0**-52) * 2.0**1023,
}
_LEAST_NORMAL: Final = 2.0**-1022
_single = array("f", [0.0])


def to_type(value: float, dtype: str) -> float:
    """The value rounded to a float type, half to even; overflow gives an infinity."""
    if dtype == "f64" or value == 0.0 or math.isinf(value):
        return value
    if dtype == "f16":
        try:
            return float(struct.unpack("<e", struct.pack("<e", value))[0])
        except OverflowError:
            return math.copysign(INF, value)
    _single[0] = value
    narrow = _single[0]
    if dtype == "f32" or math.isinf(narrow):
        return narrow
    bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
    bits += 0x7FFF + (bits >> 16 & 1)
    rounded = struct.pack("<I", bits & 0xFFFF0000)
    return float(struct.unpack("<f", rounded)[0])


def rounded(x: Interval, dtype: str) -> Interval:
    """The hull of the interval and what it becomes when its values are rounded to ``dtype``."""
    if dtype == "f64":
        return x
    low, high = x
    if dtype == "f32":
        _single[0] = low
        below = _single[0]
        _single[0] = high
        above = _single[0]
    else:
        below, above = to_type(low, dtype), to_type(high, dtype)
    return (below if below < low else low), (above if above > high else high)


def down(value: float, ulps: int = 1) -> float:
    """The next smaller number."""
    for _ in range(ulps):
        value = math.nextafter(value, -INF)
    return value


def up(value: float, ulps: int = 1) -> float:
    """The next larger number."""
    for _ in range(ulps):
        value = math.nextafter(value, INF)
    return value


def hull(x: Interval, y: Interval) -> Interval:
    """The smallest interval that holds both."""
    return min(x[0], y[0]), max(x[1], y[1])


def around(value: float, *, exactly: bool = True) -> Interval:
    """The interval of one number; ``exactly``: no rounding went into it."""
    return (value, value) if exactly else (down(value), up(value))


def contains(x: Interval, value: float) -> bool:
    """Whether the interval holds the value."""
    return x[0] <= value <= x[1]


def infinite(x: Interval) -> bool:
    """Whether the interval reaches an infinity."""
    return x[0] == -INF or x[1] == INF


def negative(x: Interval) -> Interval:
    """``-x``."""
    return -x[1], -x[0]


def add(x: Interval, y: Interval) -> Interval:
    """``x+y``."""
    return _sum(x[0], y[0], down, -INF), _sum(x[1], y[1], up, INF)


def subtract(x: Interval, y: Interval) -> Interval:
    """``x-y``."""
    return add(x, negative(y))


def multiply(x: Interval, y: Interval) -> Interval:
    """``x*y``; zero times infinity is NaN and counts for nothing."""
    ends = [(a, b, a * b if a and b else 0.0) for a in x for b in y]
    values = [end[2] for end in ends]
    low, high = min(values), max(values)
    # rounding outwards keeps order, so that only the outermost ends can become the bounds
    return (
        min([_product(a, b, down) for a, b, value in ends if not value > low]),
        max([_product(a, b, up) for a, b, value in ends if not value < high]),
    )


def square(x: Interval) -> Interval:
    """``x*x`` of one and the same value."""
    low, high = absolute(x)
    return max(0.0, _product(low, low, down)), _product(high, high, up)


def divide(x: Interval, y: Interval, *, plus: bool = False) -> Interval:
    """``x/y``; ``plus``: a zero in ``y`` is not ``-0.0``, so dividing by it keeps the sign."""
    if y[0] > 0.0 or y[1] < 0.0:
        ends = [(a, b) for a in x for b in y]
        return (
            min([_quotient(a, b, down) for a, b in ends]),
            max([_quotient(a, b, up) for a, b in ends]),
        )
    if not plus or y[0] < 0.0:
        return EVERYTHING
    low = _quotient(x[0], y[1], down) if x[0] > 0.0 else 0.0 if x[0] == 0.0 else -INF
    high = _quotient(x[1], y[1], up) if x[1] < 0.0 else 0.0 if x[1] == 0.0 else INF
    return min(low, high), max(low, high)


def absolute(x: Interval) -> Interval:
    """``abs(x)``."""
    if x[0] >= 0.0:
        return x
    return negative(x) if x[1] <= 0.0 else (0.0, max(-x[0], x[1]))


def monotone(function: Callable[[float], float], x: Interval, within: Interval) -> Interval:
    """An increasing library function, whose values lie ``within``."""
    low, high = function(x[0]), function(x[1])
    return (
        max(within[0], _library(low, x[0], down)),
        min(within[1], _library(high, x[1], up)),
    )


def power(x: Interval, n: Interval) -> Interval:
    """``x**n`` of a base that is not negative."""
    base = max(x[0], 0.0), max(x[1], 0.0)
    ends = [_power(b, e) for b, e in product(base, n)]
    return max(0.0, down(min(ends), _LIBRARY_ULPS)), up(max(ends), _LIBRARY_ULPS)


def whole_power(x: Interval, n: int) -> Interval:
    """``x**n`` for a whole number ``n`` that is not negative."""
    if n == 0:
        return 1.0, 1.0
    if n == 1:
        return x
    if n == 2:
        return square(x)
    if n % 2 == 0 or x[0] >= 0.0:
        low, high = absolute(x)
        return max(0.0, _whole(low, n, down)), _whole(high, n, up)
    return _whole(x[0], n, down), _whole(x[1], n, up)


def _sum(a: float, b: float, outwards: Callable[[float], float], undefined: float) -> float:
    total = a + b
    if total != total:
        return undefined
    if math.isinf(total):
        return total if math.isinf(a) or math.isinf(b) else outwards(total)
    part = total - a
    exact = (a - (total - part)) + (b - part) == 0.0  # Knuth's two-sum
    return total if exact else outwards(total)


def _product(a: float, b: float, outwards: Callable[[float], float]) -> float:
    if a == 0.0 or b == 0.0:
        return 0.0
    result = a * b
    if math.isinf(a) or math.isinf(b) or _unit(a) or _unit(b) or _small_integers(a, b):
        return result
    scaled = abs(math.frexp(a)[0]) == 0.5 or abs(math.frexp(b)[0]) == 0.5
    if scaled and _LEAST_NORMAL <= abs(result) < INF:
        return result  # by a power of two
    return outwards(result)


def _quotient(a: float, b: float, outwards: Callable[[float], float]) -> float:
    if a == 0.0 or (math.isinf(b) and not math.isinf(a)):
        return 0.0
    if b == 0.0:
        return math.copysign(INF, a)
    if math.isinf(b):
        return math.copysign(INF, a) * math.copysign(1.0, b) if outwards is up else 0.0
    result = a / b
    if math.isinf(a) or _unit(b) or a in (b, -b):
        return result
    return outwards(result)


def _unit(value: float) -> bool:
    return value in (1.0, -1.0)


def _small_integers(a: float, b: float) -> bool:
    """Whether the product is exact as one of integers of at most 26 bits."""
    return abs(a) < 2.0**26 and abs(b) < 2.0**26 and a == int(a) and b == int(b)


def _library(value: float, argument: float, outwards: Callable[[float, int], float]) -> float:
    if math.isinf(argument) or argument == 0.0:
        return value
    return outwards(value, _LIBRARY_ULPS)


def _power(base: float, exponent: float) -> float:
    if base == 1.0 or exponent == 0.0:
        return 1.0
    if base == 0.0:
        return 0.0 if exponent > 0.0 else INF
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return INF


def _whole(base: float, n: int, outwards: Callable[[float, int], float]) -> float:
    if base in (0.0, 1.0) or math.isinf(base) or (base == -1.0):
        return base if n % 2 else abs(base)
    try:
        value = math.pow(base, n)
    except OverflowError:
        value = INF if base > 0.0 or n % 2 == 0 else -INF
    return outwards(value, _LIBRARY_ULPS)
