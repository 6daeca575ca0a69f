"""expand_collect: a product in a sum is multiplied out."""

from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.algebra.sums import DISTRIBUTE_TERM


class ExpandCollect(AlgebraicStrategy):
    """Multiply the coefficient of a term of a sum out.

    The inverse of ``collect``. The products stand where the term stood, so the rest of the sum is
    added in the order of before.

        === example
        --- before
        # input A f32[3] in -4.0..4.0
        # input C f32[3] in 0.0..2.0
        # input F f32[3] in 0.0..2.0
        # input D f32[3]
        # output E f32[3]
        B^{3}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*(C^{f32,g}_{tx}+F^{f32,g}_{tx})+D^{f32,g}_{tx};];
        --- site statement 1.1: at=1, rule=distribute-term
        --- after
        B^{3}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*C^{f32,g}_{tx}+A^{f32,g}_{tx}*F^{f32,g}_{tx}+D^{f32,g}_{tx};];
        --- numerics reassociated
    """

    name = "expand_collect"
    summary = "Multiplies the coefficient of a term of a sum out."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "digits-may-cancel",
        "factor-may-be-infinite",
    )
    rules = (DISTRIBUTE_TERM,)
