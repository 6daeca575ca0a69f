"""expand_powsimp: powers, roots and exponentials are taken apart."""

from steptp_dagster.strategies.algebra.exponentials import (
    EXPONENTIAL_OF_DOUBLE,
    EXPONENTIAL_OF_NEGATIVE,
    EXPONENTIAL_OF_SUM,
)
from steptp_dagster.strategies.algebra.powers import (
    HALVE_POWER,
    PEEL_POWER,
    ROOT_AS_POWER,
    ROOT_FROM_POWER,
    ROOT_OF_PRODUCT,
    SQUARE_AS_PRODUCT,
    TWICE,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class ExpandPowSimp(AlgebraicStrategy):
    """Take powers apart: the inverse of powsimp.

    A square becomes a product, a higher power loses one factor or is halved, and the exponential of
    a sum becomes a product. That last one needs exponents that are all at most 0, or small. A score
    minus the maximum of its row is never taken apart: that shift is what keeps a softmax in range.

        === example
        --- before
        # input A f32[2]
        # input C f32[2]
        # output D f32[2]
        B^{2}_{tx=0}[D^{f32,g}_{tx}=exp(-A^{f32,g}_{tx}**2-abs(C^{f32,g}_{tx}));];
        --- site statement 1.1: rule=exponential-of-sum
        --- after
        B^{2}_{tx=0}[D^{f32,g}_{tx}=exp(-A^{f32,g}_{tx}**2)*exp(-abs(C^{f32,g}_{tx}));];
        --- numerics reassociated
    """

    name = "expand_powsimp"
    summary = "Takes powers, roots and exponentials apart."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "base-may-be-negative",
        "power-may-overflow",
        "base-may-be-zero",
        "undoes-shift",
        "exponents-of-unknown-size",
        "exponent-may-be-large",
    )
    rules = (
        SQUARE_AS_PRODUCT,
        TWICE,
        PEEL_POWER,
        HALVE_POWER,
        ROOT_OF_PRODUCT,
        ROOT_FROM_POWER,
        ROOT_AS_POWER,
        EXPONENTIAL_OF_SUM,
        EXPONENTIAL_OF_DOUBLE,
        EXPONENTIAL_OF_NEGATIVE,
    )
