"""collect: the terms of a sum that share a factor are gathered."""

from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.algebra.sums import COLLECT, COLLECT_NEIGHBOURS


class Collect(AlgebraicStrategy):
    """Gather the terms of a sum that share a factor; the others stay terms.

    Every factor that some terms have, but not all, is offered. Terms that stand next to each other
    are gathered where they are. Where another term stands between them, the sum is added in
    another order, so its terms must not cancel.

        === example
        --- before
        # input A f32[3] in -4.0..4.0
        # input C f32[3]
        # input D f32[3]
        # input F f32[3]
        # output E f32[3]
        B^{3}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*C^{f32,g}_{tx}+D^{f32,g}_{tx}+A^{f32,g}_{tx}*F^{f32,g}_{tx};];
        --- site statement 1.1: choice=A^{f32,g}_{tx}, rule=collect-terms
        --- after
        B^{3}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}*(C^{f32,g}_{tx}+F^{f32,g}_{tx})+D^{f32,g}_{tx};];
        --- numerics reassociated
    """

    name = "collect"
    summary = "Gathers the terms of a sum that share a factor."
    preconditions = ("types-differ", "value-may-overflow", "result-decides", "digits-may-cancel")
    rules = (COLLECT, COLLECT_NEIGHBOURS)
