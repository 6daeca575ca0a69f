"""normal_loop_max_to_prefix_max: keep the running maximum of every step of a row."""

from collections.abc import Iterable

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.passes import Pass
from steptp_dagster.strategies.prefix_rows import find_passes, prefix_maximum
from steptp_dagster.strategies.rewrite import new_tensor_names
from steptp_dagster.strategies.row_evidence import (
    dtype_fact,
    extent_fact,
    guard_fact,
    kind_fact,
    new_tensor_facts,
    readers_fact,
    recurrence_facts,
    reduction_fact,
    start_facts,
    target_fact,
    value_fact,
    writers_fact,
)
from steptp_dagster.strategies.streaming_strategy import StreamingStrategy


class NormalLoopMaxToPrefixMax(StreamingStrategy[Pass]):
    """Turn the maximum of a row into an array of running maxima and a copy of its last element.

    ``M=max(M,S)`` over a serial loop ``c`` becomes ``N_{c}=max(N_{c-1},S)``, where the first step
    has -inf in the place of the step before, and ``M=N_{last}`` behind the loop. ``N`` has the
    subscripts of ``M`` and the step as its last one, and the evaluation type of ``M``.

        === example
        --- before
        # input S f32[2,4]
        # output M f32[2]
        B^{2}_{tx=0}L^{4}_{a=0}[M^{f32,g}_{tx}=max(M^{f32,g}_{tx},S^{f32,g}_{tx,a});];
        --- site statement 1.1
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,a}=max(if_then_else(a-1<0,-inf,A^{f32,g}_{tx,a-1}),S^{f32,g}_{tx,a});];
        B^{2}_{tx=0}[M^{f32,g}_{tx}=A^{f32,g}_{tx,3};];
        --- numerics exact
    """

    name = "normal_loop_max_to_prefix_max"
    level = "math"
    version = "1"
    summary = "Turns the maximum of a row into running maxima and a copy of the last one."
    preconditions = (
        "guarded-update",
        "not-floating",
        "several-reduction-loops",
        "rows-overlap",
        "reduction-loop-not-serial",
        "scores-differ",
        "row-of-one",
        "start-not-identity",
        "written-elsewhere",
        "read-too-early",
    )

    def candidates(self, program: SignedProgram) -> Iterable[Pass | Miss]:
        """Every maximum over rows."""
        return find_passes(program, ("max",))

    def sites_of(self, found: Pass) -> tuple[Site, ...]:
        """One site, at the maximum."""
        return (Site.of(self.name, found.path),)

    def rewritten(self, program: SignedProgram, found: Pass, site: Site) -> SignedProgram:
        """Write the recurrence in the place of the maximum, and the copy behind its loop."""
        return prefix_maximum(program, found)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show that the maximum is one over whole rows in order, and who reads it."""
        rows = self.found_at(before, site)
        path, m, loop = rows.path, rows.target.name, rows.reduction.name
        names = new_tensor_names(before, 1)
        extent = extent_fact(before, path, loop)
        return Explanation(
            state=(before_fact("update_op", path, value="max"), extent),
            preconditions=(
                evidence("guarded-update", guard_fact(before, path)),
                evidence("not-floating", dtype_fact(before, m)),
                evidence("several-reduction-loops", reduction_fact(before, path)),
                evidence("rows-overlap", target_fact(before, path)),
                evidence("reduction-loop-not-serial", kind_fact(before, path, loop)),
                evidence("scores-differ", value_fact(before, path)),
                evidence("row-of-one", extent),
                evidence("start-not-identity", *start_facts(before, (path,), rows.inits)),
                evidence("written-elsewhere", writers_fact(before, m)),
                evidence("read-too-early", readers_fact(before, m)),
            ),
            decision=new_tensor_facts(after, names),
            transition=transition(before, after),
            soundness_rule="running-maximum",
            soundness=(
                *recurrence_facts(after, names),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )
