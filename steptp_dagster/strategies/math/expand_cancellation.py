"""expand_cancellation: a fraction is expanded by a factor."""

from steptp_dagster.strategies.algebra.fractions import EXPAND_FRACTION
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class ExpandCancellation(AlgebraicStrategy):
    """Multiply numerator and denominator of a fraction by a value that it contains.

    That is how a root leaves a denominator, and how a fraction inside another one is cleared. The
    factor must stay away from zero and infinity, and is one that is computed already.

        === example
        --- before
        # input A f32[5]
        # input C f32[5] in 0.0..9.0
        # output E f32[5]
        B^{5}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}/sqrt(C^{f32,g}_{tx}+1);];
        --- site statement 1.1: choice=sqrt(C^{f32,g}_{tx}+1), rule=expand-fraction
        --- after
        B^{5}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*sqrt(C^{f32,g}_{tx}+1)/(sqrt(C^{f32,g}_{tx}+1)*sqrt(C^{f32,g}_{tx}+1));];
        --- numerics reassociated
    """

    name = "expand_cancellation"
    summary = "Multiplies numerator and denominator of a fraction by one of its own values."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "factor-of-unknown-size",
    )
    rules = (EXPAND_FRACTION,)
