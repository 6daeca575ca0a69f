"""normal_loop_summation_on_exp_to_prefix_summation_on_exp: running sums of exponentials."""

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, loops_around
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.prefix_rewrite import prefix_sum
from steptp_dagster.strategies.prefix_rows import find_sums
from steptp_dagster.strategies.rewrite import new_tensor_names
from steptp_dagster.strategies.row_evidence import (
    dtype_fact,
    extent_fact,
    guard_fact,
    kind_fact,
    new_tensor_facts,
    number,
    readers_fact,
    recurrence_facts,
    reduction_fact,
    start_facts,
    target_fact,
    trips_fact,
    value_fact,
    writers_fact,
)
from steptp_dagster.strategies.softmax_rows import Rows


class NormalLoopSummationOnExpToPrefixSummationOnExp(Strategy):
    """Turn the sum of ``exp(S-M)`` over a row into running sums beside the running maximum.

    ``R_{c}=R_{c-1}*exp(N_{c-1}-N_{c})+exp(S_{c}-N_{c})`` runs in the loop of the running maximum
    ``N``; behind the loop ``Z=R_{last}``. The maximum may be a running one already, read through
    a copy of its last step or directly; otherwise it becomes one, and ``M=N_{last}`` stands beside
    the copy of the sum if something else reads ``M``. Terms whose score is -inf count as 0, and
    the old sum does while the old maximum is -inf, so that rows may start with -inf.

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
        B^{2}_{tx=0}[Z^{f32,g}_{tx}=C^{f32,g}_{tx,3};];
        --- numerics reassociated
    """

    name = "normal_loop_summation_on_exp_to_prefix_summation_on_exp"
    level = "math"
    version = "1"
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
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every sum with its maximum: pairs of plain passes first, then running maxima."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for found in find_sums(program):
            if isinstance(found, Miss):
                refusals.append(Refusal(self.name, found.path, found.reason, found.message))
                continue
            site = Site.of(self.name, found.max_path, sum=number(found.sum_path))
            broken = fault(self.apply(program, site))
            if broken is None:
                sites.append(site)
            else:
                refusals.append(Refusal(self.name, found.max_path, *broken))
        return Survey(tuple(sites), tuple(refusals))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the recurrence beside the running maximum and drop the sum's pass."""
        return SignedProgram(prefix_sum(program, _rows(program, site)), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show that maximum and sum go over the same scores, and that nothing interferes."""
        rows = _rows(before, site)
        names = new_tensor_names(before, 1 if rows.prefix else 2)
        return Explanation(
            state=(
                value_fact(before, rows.max_path),
                before_fact("update_op", rows.sum_path, value="+"),
                extent_fact(before, rows.max_path, rows.reduction.name),
            ),
            preconditions=_preconditions(before, rows),
            decision=new_tensor_facts(after, names),
            transition=transition(before, after),
            soundness_rule="rescaled-running-sum",
            soundness=(
                *recurrence_facts(after, names),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _rows(program: SignedProgram, site: Site) -> Rows:
    for found in find_sums(program):
        place = (site.path, site.text("sum"))
        if isinstance(found, Rows) and (found.max_path, number(found.sum_path)) == place:
            return found
    raise ValueError(f"no such site in this program: {site.describe()}")


def _preconditions(program: SignedProgram, rows: Rows) -> tuple[Evidence, ...]:
    first, second = rows.max_path, rows.sum_path
    m, z, loop = rows.maximum.name, rows.total.name, rows.reduction.name
    other = next(old for old, new in rows.renaming if new == loop)
    updates = (second,) if rows.prefix else (first, second)
    scores = tuple(dict.fromkeys(access.name for access in accesses_in(rows.score)))
    private = () if rows.total.scope == "g" else (writers_fact(program, z),)
    around = loops_around(program.program, second)
    return (
        evidence("guarded-update", guard_fact(program, first), guard_fact(program, second)),
        evidence("not-floating", dtype_fact(program, m), dtype_fact(program, z)),
        evidence("several-reduction-loops", *(reduction_fact(program, p) for p in updates)),
        evidence("rows-overlap", target_fact(program, first), target_fact(program, second)),
        evidence(
            "reduction-loop-not-serial",
            kind_fact(program, first, loop),
            kind_fact(program, second, other),
        ),
        evidence("scores-differ", value_fact(program, first), value_fact(program, second)),
        evidence(
            "loops-differ",
            trips_fact(program, first),
            before_fact("loops_around", second, value=tuple(x.index for x in around)),
            trips_fact(program, second),
        ),
        evidence("start-not-identity", *start_facts(program, updates, rows.inits)),
        evidence("written-elsewhere", writers_fact(program, m), writers_fact(program, z)),
        evidence(
            "sum-private-elsewhere",
            before_fact("scope_of", z, value=rows.total.scope),
            *private,
        ),
        evidence("scores-change", *(writers_fact(program, s) for s in scores or (m,))),
        evidence("read-too-early", readers_fact(program, m), readers_fact(program, z)),
    )
