"""Figures of many runs at once are those of the runs one by one, bit for bit."""

import numpy as np
import pytest

from steptp_dagster.verify import compare, rows
from steptp_dagster.verify.compare import Array

SHAPES = [(), (1,), (7,), (3, 5), (129,), (40, 30), (5000,)]


def pairs(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """References and others of 12 runs, some with zeros, infinities, NaN; and data scales."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    sizes = np.exp(rng.uniform(-30, 30, (12, *(1 for _ in shape))))
    reference = rng.standard_normal((12, *shape)) * sizes
    other = reference * (1.0 + 1e-15 * rng.standard_normal((12, *shape)))
    reference[0], other[1] = 0.0, reference[1]
    reference[2].reshape(-1)[:1] = other[2].reshape(-1)[:1] = np.inf
    reference[3].reshape(-1)[-1:] = np.nan
    other[4].reshape(-1)[:1] = np.nan
    other[5].reshape(-1)[:1] = -np.inf
    reference[6] = -0.0
    other[6] = 0.0
    return reference, other, rng.uniform(0.5, 2.0, 12)


@pytest.mark.parametrize("shape", SHAPES)
def test_differences(shape: tuple[int, ...]) -> None:
    reference, other, scales = pairs(shape)
    found = rows.differences(reference, other, scales)
    each = zip(reference, other, scales, strict=True)
    assert found.tolist() == [
        compare.difference(np.asarray(r), np.asarray(q), float(s)) for r, q, s in each
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_errors(shape: tuple[int, ...], dtype: str) -> None:
    reference, other, scales = pairs(shape)
    computed = compare.as_working(other, dtype)
    finite = np.isfinite(computed.astype(np.float64))
    counted = compare.fits(reference, dtype) & finite
    found = rows.errors(reference, computed, dtype, counted, scales)
    assert found.tolist() == [
        compare.error(
            np.asarray(reference[i]),
            np.asarray(computed[i]),
            dtype,
            np.asarray(counted[i]),
            float(scales[i]),
        )
        for i in range(12)
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_same(shape: tuple[int, ...]) -> None:
    left, right, _ = pairs(shape)
    values, bits = rows.same(left, right)
    each = [(np.asarray(a), np.asarray(b)) for a, b in zip(left, right, strict=True)]
    assert values.tolist() == [compare.same_values(a, b) for a, b in each]
    assert bits.tolist() == [compare.same_bits(a, b) for a, b in each]
    assert values[6]
    assert not bits[6]
    whole = np.arange(12 * max(1, left[0].size)).reshape(12, -1)
    assert rows.same(whole, whole)[0].all()
    assert rows.same(whole, whole + (whole == 0))[1].tolist() == [False] + [True] * 11


def test_a_row_of_nothing_is_no_difference() -> None:
    nothing = np.zeros((3, 0))
    assert rows.differences(nothing, nothing, np.ones(3)).tolist() == [0.0] * 3
