"""flashattention_wo_tiling: softmax and the weighted sum by it in one loop over the row."""

from collections.abc import Iterable

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.attention import Attention, find_attention
from steptp_dagster.strategies.attention_evidence import AttentionStrategy
from steptp_dagster.strategies.attention_rewrite import keeps_types, one_pass
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.misses import Miss


class FlashattentionWoTiling(AttentionStrategy):
    """Compute ``O=O+W*X``, where the weights ``W`` are a softmax, in one loop over each row.

    Running maximum, running sum of weights and running weighted sum are made side by side, so a
    score is read once and no weight is stored; behind the loop ``O=G_{last}/R_{last}`` divides
    once per element. Whenever the maximum grows, both sums are rescaled to it. Every step is kept
    in an array; ``flashattention_rolling_state`` keeps the present one only.

    The softmax may be a naive one or any form that ``normal_loop_max_to_prefix_max``,
    ``normal_loop_summation_on_exp_to_prefix_summation_on_exp`` and ``online_softmax`` leave, the
    weighted sum a plain one or what ``normal_matmul_to_prefix_matmul_based_on_online_softmax``
    makes of it, all written out or followed through plain assignments. What nothing else reads
    goes; running values that move into the loop keep their names. Terms whose score is -inf count
    as 0, so that rows may start with -inf.

        === example
        --- before
        # input S f32[2,4]
        # input X f32[4,3]
        # output O f32[2,3]
        B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};];
        B^{2}_{tx=0}L^{3}_{c=0}L^{4}_{a=0}[
          O^{f32,g}_{tx,c}=O^{f32,g}_{tx,c}+W^{f32,g}_{tx,a}*X^{f32,g}_{a,c};];
        --- site statement 4.1
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,A^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});
          C^{f32,g}_{tx,a}=if_then_else(a-1<0,0,if_then_else(A^{f32,g}_{tx,a-1}==-inf,0,
            C^{f32,g}_{tx,a-1}*exp(A^{f32,g}_{tx,a-1}-A^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,a}));
          L^{3}_{c=0}[
            D^{f32,g}_{tx,c,a}=if_then_else(a-1<0,0,D^{f32,g}_{tx,c,a-1}
              *if_then_else(A^{f32,g}_{tx,a-1}==-inf,0,exp(A^{f32,g}_{tx,a-1}-A^{f32,g}_{tx,a})))
              +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,a}))
              *X^{f32,g}_{a,c};];];
        B^{2}_{tx=0}L^{3}_{c=0}[O^{f32,g}_{tx,c}=D^{f32,g}_{tx,c,3}/C^{f32,g}_{tx,3};];
        --- numerics reassociated
    """

    name = "flashattention_wo_tiling"
    level = "math"
    version = "2"
    summary = "Computes a softmax and the weighted sum by it in one loop, without storing weights."
    preconditions = (
        "not-alone",
        "start-not-identity",
        "reduction-loop-not-serial",
        "rows-differ",
        "scores-change",
    )

    def candidates(self, program: SignedProgram) -> Iterable[Attention | Miss]:
        """All weighted sums but those that run in the loop of the maximum already."""
        for found in find_attention(program):
            if isinstance(found, Miss) or not found.fused:
                yield found

    def rewritten(self, program: SignedProgram, found: Attention, site: Site) -> SignedProgram:
        """Put the loop and the quotient in the place of the weighted sum, drop what it makes."""
        return one_pass(program, found)

    def rule(self, program: SignedProgram, found: Attention) -> str:
        """Running values that are there already only move together."""
        if found.running and found.streamed and keeps_types(program, found):
            return "made-together"
        return super().rule(program, found)
