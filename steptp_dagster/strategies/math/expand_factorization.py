"""expand_factorization: a product with a sum becomes a sum of products."""

from steptp_dagster.strategies.algebra.choices import INTO_BRANCHES, INTO_EXTREMUM
from steptp_dagster.strategies.algebra.loop_sums import INTO_SUM
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.algebra.sums import DISTRIBUTE, EXPAND_SQUARE


class ExpandFactorization(AlgebraicStrategy):
    """Multiply a factor into a sum, or a square of a sum out.

    Products that are terms of a larger sum are left to ``expand_collect``. Where the terms may
    cancel, as in ``(x-mean)**2``, their products lose the digits that the sum of them had kept;
    so they must have one sign, or come from data that has nothing to do with each other. A factor
    goes into both branches of a choice, bit for bit, and a positive one into ``max`` and ``min``.
    And what scales a sum in the next nest goes into its terms.

        === example
        --- before
        # input A f32[2,3]
        # input C f32[3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=C^{f32,g}_{a}*(A^{f32,g}_{tx,a}**2+0.5);];
        --- site statement 1.1: rule=distribute
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=C^{f32,g}_{a}*A^{f32,g}_{tx,a}**2+C^{f32,g}_{a}*0.5;];
        --- numerics reassociated
    """

    name = "expand_factorization"
    summary = "Multiplies a factor into a sum, or the square of a sum out."
    preconditions = (
        "types-differ",
        "factor-may-not-be-positive",
        "digits-may-cancel",
        "factor-may-be-infinite",
        "value-may-overflow",
        "result-decides",
    )
    rules = (DISTRIBUTE, EXPAND_SQUARE, INTO_BRANCHES, INTO_EXTREMUM)
    loop_law = INTO_SUM
