"""How far two arrays are apart, in the senses that the verdict needs.

``R`` is always a binary64 result of the original, the reference. Differences are *normalised*: by
``|R| + rms(R)`` element by element, so that neither elements near zero nor large ones decide alone.
"""

from typing import Any, Final

import numpy as np

from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.lowering.storage import NUMPY

Array = np.ndarray[Any, np.dtype[Any]]

#: Distance from 1 to the next number, by LEIR float dtype.
EPSILON: Final[dict[str, float]] = {
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f32": 2.0**-23,
    "f64": 2.0**-52,
}
#: Largest finite number, by LEIR float dtype.
LARGEST: Final[dict[str, float]] = {
    "f16": 65504.0,
    "bf16": (2.0 - 2.0**-7) * 2.0**127,
    "f32": (2.0 - 2.0**-23) * 2.0**127,
    "f64": (2.0 - 2.0**-52) * 2.0**1023,
}


def difference(reference: Array, other: Array, data_scale: float = 0.0) -> float:
    """The largest normalised difference of two binary64 arrays.

    Elements where the reference is NaN do not count; infinities must be equal; an element that is
    not finite where the reference is finite makes the result infinite. A reference that is zero
    throughout has no scale of its own: ``data_scale`` takes its place.
    """
    counted = ~np.isnan(reference)
    r, q = reference[counted], other[counted]
    infinite = np.isinf(r)
    if np.any(r[infinite] != q[infinite]):
        return float("inf")
    r, q = r[~infinite], q[~infinite]
    if not np.all(np.isfinite(q)):
        return float("inf")
    return _largest(r, q, data_scale)


def error(
    reference: Array, computed: Array, dtype: str, counted: Array, data_scale: float = 0.0
) -> float:
    """The largest normalised error of working-precision results, in units of ``dtype``'s epsilon.

    ``counted`` selects the elements; all of them are finite in both arrays. ``data_scale`` as in
    ``difference``.
    """
    largest = _largest(reference[counted], computed.astype(np.float64)[counted], data_scale)
    return largest / EPSILON[dtype]


def fits(reference: Array, dtype: str) -> Array:
    """Where the reference is finite and within the range of ``dtype``."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(reference) <= LARGEST[dtype])


def same_values(left: Array, right: Array) -> bool:
    """Whether all values are equal; zeros of either sign are, and NaN is equal to NaN."""
    if left.dtype.kind in "iub":
        return bool(np.array_equal(left, right))
    a, b = left.astype(np.float64), right.astype(np.float64)
    return bool(np.array_equal(a, b, equal_nan=True))


def same_bits(left: Array, right: Array) -> bool:
    """Whether all values are equal and all zeros have equal signs; NaNs are not told apart."""
    if not same_values(left, right):
        return False
    if left.dtype.kind in "iub":
        return True
    a, b = left.astype(np.float64), right.astype(np.float64)
    number = ~np.isnan(a)
    return bool(np.array_equal(np.signbit(a[number]), np.signbit(b[number])))


def as_working(values: Array, dtype: str) -> Array:
    """Binary64 values rounded to a LEIR dtype."""
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(NUMPY[dtype])


def is_float(dtype: str) -> bool:
    """Whether a LEIR dtype is a float."""
    return DTYPES[dtype].is_float


def _largest(r: Array, q: Array, data_scale: float) -> float:
    """The largest of ``|r-q| / (|r| + rms(r))`` over finite arrays; 0 for none."""
    if r.size == 0:
        return 0.0
    apart = np.abs(r - q)
    if not np.any(apart):
        return 0.0
    # The root mean square of scaled values, so that squaring cannot overflow or underflow.
    top = float(np.max(np.abs(r)))
    rms = top * float(np.sqrt(np.mean(np.square(r / top)))) if top > 0.0 else data_scale
    scale = np.abs(r) + rms
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.max(np.where(apart > 0.0, apart / scale, 0.0)))
