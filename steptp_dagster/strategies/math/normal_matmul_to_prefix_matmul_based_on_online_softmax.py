"""normal_matmul_to_prefix_matmul_based_on_online_softmax: a running sum of weighted rows."""

from collections.abc import Iterable

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.attention import Attention, find_attention
from steptp_dagster.strategies.attention_evidence import AttentionStrategy
from steptp_dagster.strategies.attention_rewrite import prefix_sum_of_products
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import evidence
from steptp_dagster.strategies.facts import Evidence
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.row_evidence import value_fact


class NormalMatmulToPrefixMatmulBasedOnOnlineSoftmax(AttentionStrategy):
    """Turn ``O=O+W*X``, where the weights ``W`` are an online softmax, into a running sum.

    ``G_{c}=G_{c-1}*exp(N_{c-1}-N_{c})+exp(S_{c}-N_{c})*X_{c}`` needs nothing but the running
    maximum ``N``: the weights are relative to the maximum so far, and are brought to the new one
    all at once. The quotient ``O=G_{last}/R_{last}`` by the running sum ``R`` normalises once per
    element; a row of nothing but -inf is 0/0 there, as it was before. The weights go unless
    something else reads them.

    It is the step between ``online_softmax``, which leaves the weighted sum as it was, and
    ``flashattention_wo_tiling``, which puts all three recurrences into one loop.

        === example
        --- before
        # input S f32[2,4]
        # input X f32[4,3]
        # output O f32[2,3]
        B^{2}_{tx=0}L^{4}_{a=0}[
          N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});
          R^{f32,g}_{tx,a}=if_then_else(a-1<0,0,if_then_else(N^{f32,g}_{tx,a-1}==-inf,0,
            R^{f32,g}_{tx,a-1}*exp(N^{f32,g}_{tx,a-1}-N^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,a}));];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,3})/R^{f32,g}_{tx,3};];
        B^{2}_{tx=0}L^{3}_{c=0}L^{4}_{a=0}[
          O^{f32,g}_{tx,c}=O^{f32,g}_{tx,c}+W^{f32,g}_{tx,a}*X^{f32,g}_{a,c};];
        --- site statement 3.1
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          N^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,N^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});
          R^{f32,g}_{tx,a}=if_then_else(a-1<0,0,if_then_else(N^{f32,g}_{tx,a-1}==-inf,0,
            R^{f32,g}_{tx,a-1}*exp(N^{f32,g}_{tx,a-1}-N^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,a}));];
        B^{2}_{tx=0}L^{3}_{c=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,c,a}=if_then_else(a-1<0,0,A^{f32,g}_{tx,c,a-1}
            *if_then_else(N^{f32,g}_{tx,a-1}==-inf,0,exp(N^{f32,g}_{tx,a-1}-N^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-N^{f32,g}_{tx,a}))
            *X^{f32,g}_{a,c};];
        B^{2}_{tx=0}L^{3}_{c=0}[O^{f32,g}_{tx,c}=A^{f32,g}_{tx,c,3}/R^{f32,g}_{tx,3};];
        --- numerics reassociated
    """

    name = "normal_matmul_to_prefix_matmul_based_on_online_softmax"
    level = "math"
    version = "1"
    origin = "steptp"
    summary = "Turns a sum weighted by an online softmax into running sums and one division."
    preconditions = (
        "not-alone",
        "start-not-identity",
        "reduction-loop-not-serial",
        "rows-differ",
        "scores-change",
        "softmax-not-online",
    )

    def candidates(self, program: SignedProgram) -> Iterable[Attention | Miss]:
        """Plain weighted sums; the running ones have taken this step."""
        for found in find_attention(program):
            if isinstance(found, Miss):
                yield found
            elif not found.running and not found.streamed:
                message = f"{found.maximum.name} and {found.total.name} are made in two passes"
                yield Miss(found.path, "softmax-not-online", message)
            elif not found.streamed:
                yield found

    def rewritten(self, program: SignedProgram, found: Attention, site: Site) -> SignedProgram:
        """Put the recurrence in the place of the weighted sum, and the quotient behind it."""
        return prefix_sum_of_products(program, found)

    def more_evidence(
        self, before: SignedProgram, after: SignedProgram, found: Attention
    ) -> tuple[Evidence, ...]:
        """The recurrence of the maximum, beside which the sum runs."""
        return (evidence("softmax-not-online", value_fact(before, found.maker)),)
