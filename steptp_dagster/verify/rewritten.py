"""Whether an expression is another one written differently: ``x**0.5`` for ``sqrt(x)``.

Both are evaluated in binary64 with random numbers in place of every element and index that they
read, of both signs and of many sizes. Names count: what reads another tensor is another function.
Numbers are the same where their digits are, however small they are.
"""

import math
import zlib
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Expr,
    Index,
    Inf,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.verify.infinities import reads

Numbers = NDArray[np.float64]
#: Draws, and how many of them must give numbers.
_DRAWS: Final = 64
_FEWEST: Final = 8
#: Sizes of the numbers, as powers of two.
_SIZES: Final = 16.0
#: Relative; of what reads nothing, and so is worked out once, all digits count.
_TOLERANCE: Final = 1e-11
_LAST_DIGITS: Final = 1e-15


def is_rewritten(new: Expr, old: Expr) -> bool:
    """Whether two expressions agree wherever the old one has a number; False with too few."""
    with np.errstate(all="ignore"):
        a, b = _evaluated(old), _evaluated(new)
        usable = np.isfinite(a)
        if int(usable.sum()) < _FEWEST:
            return False
        read = reads(old) or reads(new)
        allowed = (_TOLERANCE if read else _LAST_DIGITS) * np.abs(a)
        return bool(np.all((np.abs(a - b) <= allowed)[usable]))


def _drawn(text: str) -> Numbers:
    """The numbers in the place of what is read; every other one is positive."""
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(text.encode())))
    sizes = 2.0 ** rng.uniform(-_SIZES, _SIZES, _DRAWS)
    signs = np.where(rng.random(_DRAWS) < 0.5, -1.0, 1.0)
    return np.where(np.arange(_DRAWS) % 2 == 0, sizes, sizes * signs)


def _evaluated(expr: Expr) -> Numbers:
    match expr:
        case Int() | Real():
            return np.full(_DRAWS, float(expr.value))
        case Inf():
            return np.full(_DRAWS, math.inf)
        case Access():
            return _drawn(expr_text(expr))
        case Index():
            return np.floor(np.abs(_drawn(expr.name)))
        case Unary():
            return -_evaluated(expr.operand)
        case Compare():
            values = [_evaluated(operand) for operand in expr.operands]
            found = np.full(_DRAWS, True)
            for a, op, b in zip(values, expr.ops, values[1:], strict=False):
                found &= _COMPARE[op](a, b)
            return found.astype(np.float64)
        case Binary():
            return _BINARY[expr.op](_evaluated(expr.left), _evaluated(expr.right))
        case Call(function="if_then_else", arguments=(condition, yes, no)):
            return np.where(_evaluated(condition) != 0, _evaluated(yes), _evaluated(no))
        case Call():
            return _CALLS[expr.function](*map(_evaluated, expr.arguments))


def _erf(x: Numbers) -> Numbers:
    return np.array([math.erf(float(v)) if math.isfinite(v) else np.nan for v in x])


_COMPARE: Final[Mapping[str, Callable[[Numbers, Numbers], NDArray[np.bool_]]]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_BINARY: Final[Mapping[str, Callable[[Numbers, Numbers], Numbers]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
    "&": lambda a, b: np.where((a != 0) & (b != 0), 1.0, 0.0),
    "|": lambda a, b: np.where((a != 0) | (b != 0), 1.0, 0.0),
}
_CALLS: Final[Mapping[str, Callable[..., Numbers]]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "erf": _erf,
    "max": np.maximum,
    "min": np.minimum,
}
