"""together: a sum or product with fractions becomes one fraction."""

from steptp_dagster.strategies.algebra.fractions import (
    COMMON_DENOMINATOR,
    COMPLEMENT,
    FRACTION_OF_FRACTIONS,
    ONTO_DENOMINATOR,
    PRODUCT_OF_FRACTION,
    TWO_DENOMINATORS,
)
from steptp_dagster.strategies.algebra.partial_fractions import (
    FROM_PARTIAL_DIFFERENCE,
    FROM_PARTIAL_FRACTIONS,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class Together(AlgebraicStrategy):
    """Bring fractions onto one denominator.

    Where a denominator becomes a factor, it must stay away from zero and infinity: a product with
    it would overflow where the quotient did not, or lose its digits. Fractions with one numerator,
    whose denominators have a constant sum or difference, get that as the new numerator.

        === example
        --- before
        # input A f32[5]
        # input C f32[5]
        # input D f32[5]
        # output E f32[5]
        B^{5}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}/(1+exp(-abs(D^{f32,g}_{tx})))+C^{f32,g}_{tx};];
        --- site statement 1.1: rule=onto-denominator
        --- after
        B^{5}_{tx=0}[E^{f32,g}_{tx}=(A^{f32,g}_{tx}+C^{f32,g}_{tx}*(1+exp(-abs(D^{f32,g}_{tx}))))/(1+exp(-abs(D^{f32,g}_{tx})));];
        --- numerics reassociated
    """

    name = "together"
    summary = "Brings the fractions of a sum or product onto one denominator."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "factor-of-unknown-size",
        "term-may-be-negative",
        "factor-may-be-infinite",
        "fractions-nearly-equal",
        "numerator-may-be-infinite",
        "digits-may-cancel",
    )
    rules = (
        COMMON_DENOMINATOR,
        ONTO_DENOMINATOR,
        TWO_DENOMINATORS,
        PRODUCT_OF_FRACTION,
        FRACTION_OF_FRACTIONS,
        COMPLEMENT,
        FROM_PARTIAL_FRACTIONS,
        FROM_PARTIAL_DIFFERENCE,
    )
