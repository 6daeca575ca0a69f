"""factorization: a sum of products with a common factor becomes a product."""

from steptp_dagster.strategies.algebra.choices import OUT_OF_BRANCHES, OUT_OF_EXTREMUM
from steptp_dagster.strategies.algebra.loop_sums import OUT_OF_SUM
from steptp_dagster.strategies.algebra.products import (
    COMMON_FACTOR,
    DIFFERENCE_OF_SQUARES,
    SQUARE_OF_DIFFERENCE,
    SQUARE_OF_SUM,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class Factorization(AlgebraicStrategy):
    """Write a sum as a product.

    A factor that all terms share goes in front of the sum of what is left of them; the terms keep
    their order and association. Three terms that make up a square become the square, and a
    difference of two squares becomes a product. Digits cancel no more than before: factors are
    added before they are multiplied, not after. A factor of both branches of a choice goes in
    front of it, bit for bit; so does a positive one of the larger or smaller of two values. And a
    factor that a loop does not change leaves the sum over that loop, for a nest behind it.

        === example
        --- before
        # input A f32[2,3]
        # input C f32[3]
        # input D f32[3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}*C^{f32,g}_{a}+A^{f32,g}_{tx,a}*D^{f32,g}_{a};];
        --- site statement 1.1: choice=A^{f32,g}_{tx,a}, rule=common-factor
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}*(C^{f32,g}_{a}+D^{f32,g}_{a});];
        --- numerics reassociated
    """

    name = "factorization"
    summary = "Writes a sum as a product: by a common factor, a square or a difference of squares."
    preconditions = (
        "types-differ",
        "factor-may-not-be-positive",
        "factor-may-be-infinite",
        "value-may-overflow",
        "result-decides",
    )
    rules = (
        COMMON_FACTOR,
        SQUARE_OF_SUM,
        SQUARE_OF_DIFFERENCE,
        DIFFERENCE_OF_SQUARES,
        OUT_OF_BRANCHES,
        OUT_OF_EXTREMUM,
    )
    loop_law = OUT_OF_SUM
