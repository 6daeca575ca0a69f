"""online_softmax: maximum and sum of exponentials of a row in one pass instead of two."""

from collections.abc import Iterable
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.inlining import rounds_when_stored
from steptp_dagster.strategies.legality import Fault, fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.rewrite import equation_at
from steptp_dagster.strategies.row_evidence import (
    exchanged_facts,
    extent_fact,
    number,
    recurrence_facts,
    streamed,
    value_fact,
)
from steptp_dagster.strategies.softmax_evidence import rows_evidence
from steptp_dagster.strategies.softmax_rewrite import (
    early_step,
    history,
    maximum_rounded,
    not_private,
    rolling,
    rounding_observed,
)
from steptp_dagster.strategies.softmax_rows import Rows, find
from steptp_dagster.strategies.streaming_strategy import StreamingStrategy

FORMS: Final = ("history", "rolling")
_OF_FORM: Final = {
    "history": (),
    "rolling": ("state-not-private", "earlier-step-read"),
}


class OnlineSoftmax(StreamingStrategy[Rows]):
    """Stream the maximum and the sum of exponentials of each row in one pass.

    A row's maximum ``M``, its sum ``Z`` of ``exp(S-M)`` and their use in a softmax, log-softmax
    or logsumexp are matched by the roles of the indices, so names and order of loops do not
    matter, nor what stands between the three, as long as it leaves the scores ``S`` alone;
    ``S-M`` and ``exp(S-M)`` may be stored. Maximum and sum may be running ones already, as
    ``normal_loop_max_to_prefix_max`` and
    ``normal_loop_summation_on_exp_to_prefix_summation_on_exp`` leave them.

    * ``form=history`` keeps the running values of every step in arrays ``N`` and ``R``. Reads of
      ``M`` and ``Z`` become reads of the last step; an output among them is copied out.
    * ``form=rolling`` keeps them in thread-private state, which each step overwrites; ``M`` and
      ``Z`` are written once, after the pass.

    A guard that picks whole rows, the same in maximum and sum, guards the pass as well.

    Both skip terms whose score is -inf, so that rows may start with -inf. A softmax of nothing
    else is NaN, as before; where something else reads ``Z``, it is made NaN for such rows. ``N``
    and ``R`` have the evaluation type of ``M`` and ``Z``: f32 where those are f16.

        === example
        --- before
        # input S f32[2,4]
        # output W f32[2,4]
        B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{4}_{a=0}[Z^{f32,g}_{tx}=Z^{f32,g}_{tx}+exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx});];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-M^{f32,g}_{tx})/Z^{f32,g}_{tx};];
        --- site statement 1.1: form=history, sum=2.1
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,A^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});
          C^{f32,g}_{tx,a}=if_then_else(a-1<0,0,if_then_else(A^{f32,g}_{tx,a-1}==-inf,0,
            C^{f32,g}_{tx,a-1}*exp(A^{f32,g}_{tx,a-1}-A^{f32,g}_{tx,a})))
            +if_then_else(S^{f32,g}_{tx,a}==-inf,0,exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,a}));];
        B^{2}_{tx=0}L^{4}_{a=0}[
          W^{f32,g}_{tx,a}=exp(S^{f32,g}_{tx,a}-A^{f32,g}_{tx,3})/C^{f32,g}_{tx,3};];
        --- numerics reassociated
    """

    name = "online_softmax"
    level = "math"
    version = "4"
    summary = "Computes maximum and sum of exponentials of softmax rows in one streaming pass."
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
        "no-normalisation",
        "rounding-observed",
        "state-not-private",
        "earlier-step-read",
    )

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """All preconditions but those of the other form."""
        other = {name for form in FORMS if form != site.text("form") for name in _OF_FORM[form]}
        return tuple(name for name in super().preconditions_at(site) if name not in other)

    def candidates(self, program: SignedProgram) -> Iterable[Rows | Miss]:
        """Every pair that something normalises by."""
        return find(program)

    def sites_of(self, found: Rows) -> tuple[Site, ...]:
        """One site for each form; running values without copies have the first one already."""
        done = found.streamed and not found.copies
        return tuple(
            Site.of(self.name, found.max_path, form=form, sum=number(found.sum_path))
            for form in FORMS
            if not (done and form == "history")
        )

    def objection(self, program: SignedProgram, found: Rows, site: Site) -> Fault:
        """What stands against this form: private state, rounding that shows, the checker."""
        if site.text("form") == "rolling":
            message, reason = not_private(program.program, found), "state-not-private"
            if message is None:
                message, reason = early_step(program, found), "earlier-step-read"
            if message is None:
                message, reason = maximum_rounded(program, found), "rounding-observed"
        else:
            message, reason = rounding_observed(program, found), "rounding-observed"
        if message is not None:
            return reason, message
        result = self.apply(program, site)
        if result == program:
            return "no-normalisation", "what normalises reads the last steps already"
        return fault(result)

    def rewritten(self, program: SignedProgram, found: Rows, site: Site) -> SignedProgram:
        """Put the streaming pass in the place of the maximum and drop the sum's pass."""
        build = rolling if site.text("form") == "rolling" else history
        return build(program, found)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show the roles of the three parts, that nothing interferes, and the recurrence."""
        rows = self.found_at(before, site)
        return Explanation(
            state=(
                value_fact(before, rows.max_path),
                value_fact(before, rows.sum_path),
                extent_fact(before, rows.max_path, rows.reduction.name),
            ),
            preconditions=rows_evidence(before, rows, self.preconditions_at(site)),
            decision=exchanged_facts(before, after),
            transition=transition(before, after),
            soundness_rule=_rule(before, rows, site),
            soundness=(
                *recurrence_facts(after, streamed(before, after)),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _rule(program: SignedProgram, rows: Rows, site: Site) -> str:
    """Two passes become one by rescaling; one pass is only read or kept in another way."""
    if not rows.streamed:
        return "rescaled-shifted-sum" if rows.shifted else "rescaled-running-sum"
    if site.text("form") == "rolling":
        return "present-step"
    copies = (equation_at(program.program, copy.path) for copy in rows.copies)
    rounds = any(rounds_when_stored(copy) for copy in copies)
    return "substitution-without-rounding" if rounds else "substitution"
