"""flashattention_rolling_state: softmax and the weighted sum by it over thread-private state."""

from collections.abc import Iterable

from steptp_dagster.leir.limits import LOCAL_BYTES
from steptp_dagster.leir.printer import loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import loops_around
from steptp_dagster.strategies.attention import Attention, find_attention
from steptp_dagster.strategies.attention_evidence import AttentionStrategy, made_at
from steptp_dagster.strategies.attention_rewrite import rolling_state
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import evidence, pair
from steptp_dagster.strategies.facts import Evidence, Fact
from steptp_dagster.strategies.legality import Fault, fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.rewrite import writers_of
from steptp_dagster.strategies.row_evidence import local_bytes, newcomers


class FlashattentionRollingState(AttentionStrategy):
    """Compute ``O=O+W*X``, where the weights ``W`` are a softmax, over the state of one step.

    A step of the streaming recurrences reads the step before and no other, so maximum, sum of
    weights and one row of the weighted sum are all that a thread needs; each step overwrites them.
    They live in thread-private memory, one nest makes the whole result, and no array of weights
    or of steps is left. The factor by which both sums are rescaled and the weight are computed
    once per step.

    It accepts what ``flashattention_wo_tiling`` leaves, and all that this accepts. The state
    starts from -inf and 0; a factor is 0 while the old maximum is -inf, and a weight is 0 where
    the score is, so that rows may start with -inf.

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
        B^{2}_{tx=0}[
          A^{f32,l}=-inf;C^{f32,l}=0;L^{3}_{c=0}[D^{f32,l}_{c}=0;];
          L^{4}_{a=0}[
            E^{f32,l}=max(A^{f32,l},S^{f32,g}_{tx,a});
            F^{f32,l}=if_then_else(A^{f32,l}==-inf,0,exp(A^{f32,l}-E^{f32,l}));
            G^{f32,l}=if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-E^{f32,l}));
            C^{f32,l}=C^{f32,l}*F^{f32,l}+G^{f32,l};
            L^{3}_{c=0}[D^{f32,l}_{c}=D^{f32,l}_{c}*F^{f32,l}+G^{f32,l}*X^{f32,g}_{a,c};];
            A^{f32,l}=E^{f32,l};];
          L^{3}_{c=0}[O^{f32,g}_{tx,c}=D^{f32,l}_{c}/C^{f32,l};];];
        --- numerics reassociated
    """

    name = "flashattention_rolling_state"
    level = "math"
    version = "1"
    origin = "steptp"
    summary = "Computes a softmax and the weighted sum by it over state that each step overwrites."
    preconditions = (
        "not-alone",
        "start-not-identity",
        "reduction-loop-not-serial",
        "rows-differ",
        "scores-change",
        "state-not-private",
        "state-too-large",
    )

    def candidates(self, program: SignedProgram) -> Iterable[Attention | Miss]:
        """All weighted sums whose rows run one after another in a thread."""
        for found in find_attention(program):
            side = [] if isinstance(found, Miss) else [x for x in found.rows if x.kind in "PV"]
            if side:
                message = f"rows run side by side in loop {side[0].index} of kind {side[0].kind}"
                yield Miss(found.path, "state-not-private", message)
            else:
                yield found

    def objection(self, program: SignedProgram, found: Attention, site: Site) -> Fault:
        """The checker's objection; a state over the limits has a name of its own."""
        broken = fault(self.apply(program, site))
        if broken is not None and broken[0] == "result-over-limits":
            return "state-too-large", broken[1]
        return broken

    def rewritten(self, program: SignedProgram, found: Attention, site: Site) -> SignedProgram:
        """Put the nest in the place of the weighted sum, and drop what it makes."""
        return rolling_state(program, found)

    def size_facts(self, before: SignedProgram, after: SignedProgram) -> tuple[Fact, ...]:
        """What a thread keeps from step to step."""
        names = newcomers(before, after)
        nest = writers_of(after.program, names[0])[0][:1]
        return (after_fact("local_bytes", nest, value=local_bytes(after, names)),)

    def more_evidence(
        self, before: SignedProgram, after: SignedProgram, found: Attention
    ) -> tuple[Evidence, ...]:
        """The loops that rows run in, and what a thread keeps from step to step."""
        header = loops_text(loops_around(before.program, made_at(found)))
        names = newcomers(before, after)
        kept = local_bytes(after, names)
        maker = writers_of(after.program, names[0])[0]
        return (
            evidence("state-not-private", before_fact("header_text", made_at(found), value=header)),
            evidence(
                "state-too-large",
                after_fact("local_bytes", maker[:1], value=kept),
                pair("at_most", kept, LOCAL_BYTES, value=kept <= LOCAL_BYTES),
            ),
        )
