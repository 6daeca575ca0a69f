"""normal_loop_summation_on_exp_to_prefix_summation_on_exp: running sums of exponentials."""

from collections.abc import Iterable

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.legality import Fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.row_evidence import (
    exchanged_facts,
    extent_fact,
    number,
    recurrence_facts,
    streamed,
    value_fact,
)
from steptp_dagster.strategies.softmax_evidence import rows_evidence
from steptp_dagster.strategies.softmax_rewrite import maximum_rounded, prefix_sum
from steptp_dagster.strategies.softmax_rows import Rows, find_sums
from steptp_dagster.strategies.streaming_strategy import StreamingStrategy


class NormalLoopSummationOnExpToPrefixSummationOnExp(StreamingStrategy[Rows]):
    """Turn the sum of ``exp(S-M)`` over a row into running sums beside the running maximum.

    ``R_{c}=R_{c-1}*exp(N_{c-1}-N_{c})+exp(S_{c}-N_{c})`` runs in the loop of the running maximum
    ``N``; behind the loop ``Z=R_{last}``. The maximum may be a running one already, read through
    a copy of its last step or directly; otherwise it becomes one, and ``M=N_{last}`` stands beside
    the copy of the sum if something else reads ``M``. What the sum adds up may be stored, as
    ``S-M`` or ``exp(S-M)``.

    Terms whose score is -inf count as 0, and the old sum does while the old maximum is -inf, so
    that rows may start with -inf. A row of nothing else has a sum of NaN, and so has a softmax or
    log-softmax of it; only where something else reads ``Z`` the copy has to say so.

        === example
        --- before
        # input S f32[2,4]
        # output Z f32[2]
        B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
        --- site statement 1.1: sum=2.1
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,A^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});
          C^{f32,g}_{tx,a}=if_then_else(a-1<0,0,if_then_else(A^{f32,g}_{tx,a-1}==-inf,0,
            C^{f32,g}_{tx,a-1}*exp(A^{f32,g}_{tx,a-1}-A^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,a}));];
        B^{2}_{tx=0}[
          Z^{f32,g}_{tx}=if_then_else(A^{f32,g}_{tx,3}==-inf,A^{f32,g}_{tx,3}-A^{f32,g}_{tx,3},
            C^{f32,g}_{tx,3});];
        --- numerics reassociated
    """

    name = "normal_loop_summation_on_exp_to_prefix_summation_on_exp"
    level = "math"
    version = "4"
    summary = "Turns a sum of exponentials relative to a maximum into running sums."
    preconditions = (
        "guarded-update",
        "not-floating",
        "several-reduction-loops",
        "rows-overlap",
        "reduction-loop-not-serial",
        "scores-differ",
        "loops-differ",
        "start-not-identity",
        "written-elsewhere",
        "sum-private-elsewhere",
        "scores-change",
        "read-too-early",
        "rounding-observed",
    )

    def candidates(self, program: SignedProgram) -> Iterable[Rows | Miss]:
        """Every sum with its maximum: pairs of plain passes first, then running maxima."""
        return find_sums(program)

    def sites_of(self, found: Rows) -> tuple[Site, ...]:
        """One site, at the maximum, that names the sum."""
        return (Site.of(self.name, found.max_path, sum=number(found.sum_path)),)

    def objection(self, program: SignedProgram, found: Rows, site: Site) -> Fault:
        """What stands against it: a maximum whose rounding something else sees, the checker."""
        message = maximum_rounded(program, found)
        if message is not None:
            return "rounding-observed", message
        return super().objection(program, found, site)

    def rewritten(self, program: SignedProgram, found: Rows, site: Site) -> SignedProgram:
        """Put the recurrence beside the running maximum and drop the sum's pass."""
        return prefix_sum(program, found)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show that maximum and sum go over the same scores, and that nothing interferes."""
        rows = self.found_at(before, site)
        return Explanation(
            state=(
                value_fact(before, rows.max_path),
                before_fact("update_op", rows.sum_path, value="+"),
                extent_fact(before, rows.max_path, rows.reduction.name),
            ),
            preconditions=rows_evidence(before, rows, self.preconditions),
            decision=exchanged_facts(before, after),
            transition=transition(before, after),
            soundness_rule="rescaled-shifted-sum" if rows.shifted else "rescaled-running-sum",
            soundness=(
                *recurrence_facts(after, streamed(before, after)),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )
