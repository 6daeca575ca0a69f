"""``compare`` for many runs at once: arrays with an axis of runs in front, a figure for each run.

Rows in which everything counts, nearly all, are done together; the others one by one by
``compare``. Either way gives the same bits.
"""

import numpy as np

from steptp_dagster.verify import compare
from steptp_dagster.verify.compare import EPSILON, Array


def flat(values: Array) -> Array:
    """The arrays of all runs as rows."""
    return values.reshape(len(values), -1)


def differences(reference: Array, other: Array, data_scales: Array) -> Array:
    """``compare.difference`` of each run."""
    r, q = flat(reference), flat(other)
    plain = np.isfinite(r).all(axis=1) & np.isfinite(q).all(axis=1)
    found = np.zeros(len(r))
    found[plain] = _largest(r[plain], q[plain], data_scales[plain])
    for row in np.flatnonzero(~plain):
        found[row] = compare.difference(r[row], q[row], float(data_scales[row]))
    return found


def errors(
    reference: Array, computed: Array, dtype: str, counted: Array, data_scales: Array
) -> Array:
    """``compare.error`` of each run."""
    r, q, counts = flat(reference), flat(computed), flat(counted)
    plain = counts.all(axis=1)
    found = np.zeros(len(r))
    largest = _largest(r[plain], q[plain].astype(np.float64), data_scales[plain])
    found[plain] = largest / EPSILON[dtype]
    for row in np.flatnonzero(~plain):
        scale = float(data_scales[row])
        found[row] = compare.error(r[row], q[row], dtype, counts[row], scale)
    return found


def same(left: Array, right: Array) -> tuple[Array, Array]:
    """``compare.same_values`` and ``compare.same_bits`` of each run."""
    a, b = flat(left), flat(right)
    if a.dtype.kind in "iub":
        equal = (a == b).all(axis=1)
        return equal, equal
    a, b = a.astype(np.float64), b.astype(np.float64)
    nan = np.isnan(a)
    values = ((a == b) | (nan & np.isnan(b))).all(axis=1)
    signs = ((np.signbit(a) == np.signbit(b)) | nan).all(axis=1)
    return values, values & signs


def count(where: Array) -> Array:
    """How many elements of each run."""
    return np.asarray(flat(where).sum(axis=1))


def _largest(r: Array, q: Array, data_scales: Array) -> Array:
    """The largest of ``|r-q| / (|r| + rms(r))`` in each row of finite arrays; 0 for none."""
    found = np.zeros(len(r))
    if r.size == 0:
        return found
    apart = np.abs(r - q)
    some = apart.any(axis=1)
    if not some.any():
        return found
    r, apart, scales = np.abs(r[some]), apart[some], data_scales[some]
    top = r.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # The root mean square of scaled values, so that squaring cannot overflow or underflow.
        spread = np.sqrt(np.mean(np.square(r / top[:, None]), axis=1))
        rms = np.where(top > 0.0, top * spread, scales)
        relative = np.where(apart > 0.0, apart / (r + rms[:, None]), 0.0)
    found[some] = relative.max(axis=1)
    return found
