"""What is known about the value of an expression: bounds, sign, and which claims hold where.

A program is evaluated in three ways: in real arithmetic (what its mathematics means), in binary64
and in working precision (what a machine does). They disagree where it matters for algebra:
``exp(x)`` is positive, but the machine's ``exp(-200)`` is 0 in f32; ``x*x`` is finite, but in
f32 it overflows. A ``ValueFact`` therefore says of each claim in which evaluations it holds.
"""

from typing import NamedTuple

from steptp_dagster.strategies.intervals import Interval, contains, infinite


class ValueFact(NamedTuple):
    """Facts that hold for every value that an expression takes; a tuple, since many are made.

    * ``lower`` and ``upper`` bound every value that is not NaN, in all evaluations: real
      arithmetic, binary64 and working precision.
    * ``nan``: whether NaN may come out in binary64 or working precision.
    * ``whole``: every finite value is a whole number.
    * ``plus``: no evaluation gives a negative number or the zero ``-0.0``.
    * ``exact_nonzero``: in real arithmetic on finite inputs the value is never 0. An ``exp`` is
      one; ``nonzero`` says the same of all evaluations, where ``exp`` may underflow.
    * ``exact_finite``: in real arithmetic on finite inputs the value is a number: no division
      by zero, no logarithm of zero. ``finite`` also rules out overflow, infinities and NaN in
      binary64 and working precision.
    * ``why``: the rule behind the bounds, in a few words.
    """

    lower: float
    upper: float
    nan: bool
    whole: bool
    plus: bool
    exact_nonzero: bool
    exact_finite: bool
    why: str

    @property
    def interval(self) -> Interval:
        """Both bounds."""
        return self.lower, self.upper

    @property
    def nonzero(self) -> bool:
        """Never 0, in any evaluation."""
        return not contains(self.interval, 0.0)

    @property
    def finite(self) -> bool:
        """A number in every evaluation: never an infinity, never NaN."""
        return not self.nan and not infinite(self.interval)

    @property
    def nonnegative(self) -> bool:
        """At least 0, in every evaluation."""
        return self.lower >= 0.0

    @property
    def nonpositive(self) -> bool:
        """At most 0, in every evaluation."""
        return self.upper <= 0.0

    @property
    def positive(self) -> bool:
        """Above 0, in every evaluation."""
        return self.lower > 0.0

    @property
    def exact_positive(self) -> bool:
        """Above 0 in real arithmetic on finite inputs; a machine may underflow to 0."""
        return self.lower >= 0.0 and (self.exact_nonzero or self.lower > 0.0)

    @property
    def magnitude(self) -> float:
        """The largest absolute value, possibly infinite."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def least_magnitude(self) -> float:
        """The smallest absolute value."""
        return 0.0 if not self.nonzero else min(abs(self.lower), abs(self.upper))
