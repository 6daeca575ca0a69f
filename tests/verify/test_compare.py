"""Distances between arrays."""

import numpy as np
import pytest

from steptp_dagster.verify.compare import difference, error, fits, same_bits, same_values

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("reference", "other", "wanted"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([3.0, 4.0], [3.0, 4.0 + 1e-6], 1e-6 / (4 + np.sqrt(12.5))),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 0.0], [0.0, 1e-300], INF),
        ([NAN, 1.0], [5.0, 1.0], 0.0),
        ([INF, 1.0], [INF, 1.0], 0.0),
        ([INF, 1.0], [-INF, 1.0], INF),
        ([INF, 1.0], [1e308, 1.0], INF),
        ([1.0, 1.0], [NAN, 1.0], INF),
        ([1.0, 1.0], [INF, 1.0], INF),
        ([NAN, NAN], [1.0, 2.0], 0.0),
        ([1e300, 1e-300], [1e300, 1e-300], 0.0),
        ([1e200, 0.0], [1e200, 1e188], 1e-12 / np.sqrt(0.5)),
    ],
)
def test_difference(reference: list[float], other: list[float], wanted: float) -> None:
    assert difference(np.array(reference), np.array(other)) == pytest.approx(wanted, rel=1e-6)


def test_a_reference_of_zeros_takes_the_scale_of_the_data() -> None:
    zeros = np.zeros(3)
    assert difference(zeros, np.array([0.0, 1e-16, 0.0]), 2.0) == pytest.approx(5e-17)
    assert difference(zeros, np.array([0.0, -0.01, 0.0]), 2.0) == pytest.approx(0.005)
    everything = np.ones(3, bool)
    assert error(zeros, np.array([0.0, 2.0**-9, 0.0]), "f16", everything, 1.0) == 2.0


def test_error_is_in_epsilons_of_the_outputs_dtype() -> None:
    reference = np.array([1.0, 1.0])
    computed = np.array([1.0, 1.0 + 2.0**-10], np.float16)
    everything = np.array([True, True])
    assert error(reference, computed, "f16", everything) == pytest.approx(0.5)
    assert error(reference, computed, "f32", everything) == pytest.approx(0.5 * 2**13)
    assert error(reference, computed, "f16", np.array([True, False])) == 0.0


def test_what_fits_a_dtype() -> None:
    values = np.array([65504.0, 65505.0, INF, NAN, -65504.0])
    assert fits(values, "f16").tolist() == [True, False, False, False, True]
    assert fits(values, "f32").tolist() == [True, True, False, False, True]


def test_equal_values_and_equal_bits() -> None:
    plus, minus = np.array([0.0, NAN], np.float32), np.array([-0.0, NAN], np.float32)
    assert same_values(plus, minus)
    assert not same_bits(plus, minus)
    assert same_bits(plus, plus.copy())
    assert not same_values(plus, np.array([0.0, 1.0], np.float32))
    assert same_bits(np.array([1, 2]), np.array([1, 2]))
    assert not same_values(np.array([1, 2]), np.array([1, 3]))
