"""logsimp: logarithms are combined."""

from steptp_dagster.strategies.algebra.logarithms import (
    EXPONENTIAL_OF_LOG,
    HALF_OF_LOG,
    LOG_OF_EXPONENTIAL,
    MULTIPLE_OF_LOG,
    NEGATIVE_LOG,
    SUM_OF_LOGS,
)
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy


class LogSimp(AlgebraicStrategy):
    """Combine logarithms: the inverse of expand_log.

    The product or quotient that comes under one logarithm must neither overflow nor vanish, so its
    parts must be numbers of moderate size. A logarithm and an exponential cancel where the
    exponential does not overflow.

        === example
        --- before
        # input A f32[2] in 0.5..4.0
        # input C f32[2] in 0.5..4.0
        # output D f32[2]
        B^{2}_{tx=0}[D^{f32,g}_{tx}=log(A^{f32,g}_{tx})-log(C^{f32,g}_{tx});];
        --- site statement 1.1: rule=sum-of-logs
        --- after
        B^{2}_{tx=0}[D^{f32,g}_{tx}=log(A^{f32,g}_{tx}/C^{f32,g}_{tx});];
        --- numerics reassociated
    """

    name = "logsimp"
    summary = "Combines logarithms into one, and cancels them with exponentials."
    preconditions = (
        "types-differ",
        "value-may-overflow",
        "result-decides",
        "factor-of-unknown-size",
        "exponent-may-be-large",
        "digits-may-be-lost",
        "base-may-be-negative",
    )
    rules = (
        SUM_OF_LOGS,
        MULTIPLE_OF_LOG,
        HALF_OF_LOG,
        NEGATIVE_LOG,
        LOG_OF_EXPONENTIAL,
        EXPONENTIAL_OF_LOG,
    )
