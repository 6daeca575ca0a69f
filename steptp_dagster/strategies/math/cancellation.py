"""cancellation: equal factors of a fraction, opposite terms of a sum, and units go."""

from steptp_dagster.strategies.algebra.fractions import (
    CANCEL_EXPONENTIALS,
    CANCEL_FACTOR,
    CANCEL_TERM,
    UNIT,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class Cancellation(AlgebraicStrategy):
    """Remove a factor and an equal divisor, a term and its negative, or a factor one.

    The exponentials of a small value and of its negative are a factor one as well. What goes must
    be a number for all data, and a factor not zero: zero divided by zero is no number, and would
    become one. A term must not be so large that the sum had lost its digits.

        === example
        --- before
        # input A f32[5]
        # input C f32[5]
        # output E f32[5]
        B^{5}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*(2+erf(C^{f32,g}_{tx}))/(2+erf(C^{f32,g}_{tx}));];
        --- site statement 1.1: choice=2+erf(C^{f32,g}_{tx}), rule=cancel-factor
        --- after
        B^{5}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx};];
        --- numerics reassociated
    """

    name = "cancellation"
    summary = "Removes equal factors of a fraction, opposite terms of a sum, and factors one."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "factor-may-vanish",
        "factor-may-be-infinite",
        "term-may-be-infinite",
        "digits-may-be-lost",
        "exponents-of-unknown-size",
    )
    rules = (CANCEL_FACTOR, CANCEL_TERM, CANCEL_EXPONENTIALS, UNIT)
