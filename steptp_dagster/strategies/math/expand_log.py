"""expand_log: logarithms of products, quotients and powers are split."""

from steptp_dagster.strategies.algebra.logarithms import (
    LOG_OF_INVERSE,
    LOG_OF_ODD_POWER,
    LOG_OF_POWER,
    LOG_OF_PRODUCT,
    LOG_OF_QUOTIENT,
    LOG_OF_ROOT,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class ExpandLog(AlgebraicStrategy):
    """Split a logarithm.

    Both parts of a product or quotient must be known not to be negative: of two negative ones the
    product has a logarithm and they have none. Their logarithms must not cancel, as those of two
    nearly equal values in a quotient do; they do not where they have one sign, are small, or come
    from different data. So the logarithm of a softmax is split: its numerator is at most 1, its
    denominator at least 1.

        === example
        --- before
        # input A f32[2] in 0.5..4.0
        # input C f32[2] in 0.5..4.0
        # output D f32[2]
        B^{2}_{tx=0}[D^{f32,g}_{tx}=log(A^{f32,g}_{tx}*C^{f32,g}_{tx});];
        --- site statement 1.1: rule=log-of-product
        --- after
        B^{2}_{tx=0}[D^{f32,g}_{tx}=log(A^{f32,g}_{tx})+log(C^{f32,g}_{tx});];
        --- numerics reassociated
    """

    name = "expand_log"
    summary = "Splits logarithms of products, quotients and powers."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "base-may-be-negative",
        "logarithms-may-cancel",
    )
    rules = (
        LOG_OF_PRODUCT,
        LOG_OF_QUOTIENT,
        LOG_OF_INVERSE,
        LOG_OF_POWER,
        LOG_OF_ODD_POWER,
        LOG_OF_ROOT,
    )
