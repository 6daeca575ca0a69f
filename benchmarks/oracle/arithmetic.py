"""Arithmetic of LEIR on Python numbers: what Python raises for has a value, and narrow rounding."""

import math
import struct
from collections.abc import Callable
from operator import gt, lt
from typing import Any, Final

import numpy as np


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _sin(x: float) -> float:
    return math.sin(x) if math.isfinite(x) else math.nan


def _cos(x: float) -> float:
    return math.cos(x) if math.isfinite(x) else math.nan


def _divided(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power(a: float, b: float) -> float:
    if isinstance(a, int) and isinstance(b, int) and b >= 0:
        return int(a**b)
    if b == 2:  # squares are products
        return a * a
    try:
        return math.pow(a, b)
    except (OverflowError, ValueError):
        with np.errstate(all="ignore"):
            return float(np.power(np.float64(a), np.float64(b)))


def _floored(a: float, b: float) -> float:
    try:
        return a // b
    except ZeroDivisionError:
        return math.nan


def _modulo(a: float, b: float) -> float:
    try:
        return a % b
    except ZeroDivisionError:
        return math.nan


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    def rounded(x: float) -> float:
        if isinstance(x, int):
            return x
        return math.copysign(float(function(x)), x) if math.isfinite(x) else x

    return rounded


def _truncated(x: float) -> int:
    return int(x) if math.isfinite(x) else 0


#: Filled whenever ``max`` or ``min`` see NaN.
unordered: list[bool] = []


def _chooser(before: Callable[[float, float], bool]) -> Callable[[float, float], float]:
    """``max`` or ``min``, which notes NaN operands."""

    def choose(a: float, b: float) -> float:
        if before(a, b):
            return a
        if b != b or a != a:
            unordered.append(True)
        return b

    return choose


def _rounder(layout: str) -> Callable[[float], float]:
    """Rounding to a float type, by its letter in ``struct``."""
    packed = struct.Struct(layout)

    def rounded(x: float) -> float:
        try:
            return float(packed.unpack(packed.pack(x))[0])
        except OverflowError:
            return math.copysign(math.inf, x)

    return rounded


#: Rounded to binary32, and to binary16.
single: Final = _rounder("f")
half: Final = _rounder("e")

WORLD: Final[dict[str, Any]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "erf": math.erf,
    "tanh": math.tanh,
    "sin": _sin,
    "cos": _cos,
    "abs": abs,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    "dv": _divided,
    "pw": _power,
    "fl": _floored,
    "md": _modulo,
    "tr": _truncated,
    "r": single,
    "h": half,
    "inf": math.inf,
    "max": _chooser(gt),
    "min": _chooser(lt),
}
