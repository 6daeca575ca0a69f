"""apart: a fraction becomes a sum of fractions."""

from steptp_dagster.strategies.algebra.fractions import PROPER_FRACTION, SPLIT_FRACTION
from steptp_dagster.strategies.algebra.partial_fractions import (
    PARTIAL_DIFFERENCE,
    PARTIAL_FRACTIONS,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class Apart(AlgebraicStrategy):
    """Split a fraction by the terms of its numerator or the factors of its denominator.

    The terms of the numerator must not cancel: their quotients would keep the rounding errors
    that the sum of them had not yet. The whole part of a fraction may be taken out. A denominator
    that is a product of two values is split where their sum or difference is a constant
    (``p*(1-p)``, ``(x+1)*(x+2)``).

        === example
        --- before
        # input A f32[5]
        # input C f32[5]
        # input D f32[5]
        # output E f32[5]
        B^{5}_{tx=0}[E^{f32,g}_{tx}=(abs(A^{f32,g}_{tx})+C^{f32,g}_{tx}**2)/D^{f32,g}_{tx};];
        --- site statement 1.1: rule=split-fraction
        --- after
        B^{5}_{tx=0}[E^{f32,g}_{tx}=abs(A^{f32,g}_{tx})/D^{f32,g}_{tx}+C^{f32,g}_{tx}**2/D^{f32,g}_{tx};];
        --- numerics reassociated
    """

    name = "apart"
    summary = "Splits a fraction into a sum of fractions."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "digits-may-cancel",
        "term-may-be-negative",
        "term-may-be-larger",
        "factor-may-be-infinite",
        "fractions-nearly-equal",
        "numerator-may-be-infinite",
        "factor-of-unknown-size",
    )
    rules = (SPLIT_FRACTION, PROPER_FRACTION, PARTIAL_FRACTIONS, PARTIAL_DIFFERENCE)
