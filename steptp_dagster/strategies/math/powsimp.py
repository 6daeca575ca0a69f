"""powsimp: powers, roots and exponentials are combined."""

from steptp_dagster.strategies.algebra.exponentials import (
    INVERSE_EXPONENTIAL,
    POWER_OF_EXPONENTIAL,
    PRODUCT_OF_EXPONENTIALS,
    QUOTIENT_OF_EXPONENTIALS,
    RECIPROCAL_EXPONENTIAL,
)
from steptp_dagster.strategies.algebra.powers import (
    DOUBLE,
    EQUAL_BASES,
    EQUAL_BASES_APART,
    INVERSE_ROOT,
    POWER_OF_HALF,
    POWER_OF_POWER,
    PRODUCT_OF_ROOTS,
    ROOT_OF_SQUARE,
    SQUARE,
    SQUARED_ROOT,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class PowSimp(AlgebraicStrategy):
    """Combine powers into one.

    Equal factors become a power, powers of one base add their exponents, and products of roots
    or exponentials become one root or exponential. A base under a root must be known not to be
    negative; exponentials are joined where their exponents are all at most 0, or small, so that
    none of them overflows while another is tiny.

        === example
        --- before
        # input A f32[2]
        # input C f32[2]
        # output D f32[2]
        B^{2}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*A^{f32,g}_{tx}*C^{f32,g}_{tx};];
        --- site statement 1.1: at=1, rule=square
        --- after
        B^{2}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}**2*C^{f32,g}_{tx};];
        --- numerics exact
    """

    name = "powsimp"
    summary = "Combines powers of one base, roots, and exponentials."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "factor-of-unknown-size",
        "base-may-be-negative",
        "base-may-be-zero",
        "exponents-of-unknown-size",
        "exponent-may-be-large",
    )
    rules = (
        SQUARE,
        DOUBLE,
        EQUAL_BASES,
        EQUAL_BASES_APART,
        POWER_OF_POWER,
        SQUARED_ROOT,
        ROOT_OF_SQUARE,
        PRODUCT_OF_ROOTS,
        INVERSE_ROOT,
        POWER_OF_HALF,
        PRODUCT_OF_EXPONENTIALS,
        QUOTIENT_OF_EXPONENTIALS,
        INVERSE_EXPONENTIAL,
        RECIPROCAL_EXPONENTIAL,
        POWER_OF_EXPONENTIAL,
    )
