"""loop_reversal: a strategy of one's own, as a plug-in (see docs/plug-ins.md)."""

from steptp_dagster.leir.ast import Binary, Index, Int, Loop, Nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, map_statement, substitute
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import carries, loop_of, loops_with_nests
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import nest_at, signed_with


class LoopReversal(Strategy):
    """Run the iterations of a serial loop from the last to the first.

    The loop carries nothing, so the order of its iterations does not matter.

        === example
        --- before
        # input A f32[2,4]
        # output D f32[2,4]
        B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a});];
        --- site statement 1: loop=a
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,3-a}=exp(A^{f32,g}_{tx,3-a});];
        --- numerics exact
    """

    name = "loop_reversal"
    level = "operator"
    version = "1"
    summary = "Runs the iterations of a serial loop from the last to the first."
    preconditions = ("runs-once", "dependence-carried")

    def survey(self, program: SignedProgram) -> Survey:
        """Every serial loop, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for path, _, loop in loops_with_nests(program):
            if loop.kind != "L":
                continue
            site = Site.of(self.name, path, loop=loop.index)
            broken = _fault(program, path, loop) or fault(self.apply(program, site))
            if broken is None:
                sites.append(site)
            else:
                refusals.append(Refusal(self.name, path, *broken))
        return Survey(tuple(sites), tuple(refusals))

    def keeps_instances(self, site: Site) -> bool:
        """True: the same iterations run, in another order."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the index counted from the end wherever the index stands."""
        index = site.text("loop")
        last = loop_of(program, site.path, index).extent - 1
        reversed_ = {index: Binary("-", Int(last), Index(index))}
        nest = nest_at(program.program, site.path)
        body = tuple(map_statement(s, lambda e: substitute(e, reversed_)) for s in nest.body)
        return signed_with(program, site.path, Nest(nest.loops, body))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The loop, and that it carries nothing."""
        path, index = site.path, site.text("loop")
        extent = before_fact("loop_extent", path, index, value=loop_of(before, path, index).extent)
        depends = before_fact("depends", path, index, value=carries(before, path, index))
        return Explanation(
            state=(extent, before_fact("loop_kind", path, index, value="L")),
            preconditions=(
                evidence("runs-once", extent),
                evidence("dependence-carried", depends),
            ),
            decision=(extent,),
            transition=transition(before, after),
            soundness_rule="independent-iterations",
            soundness=(depends,),
            effect=effects(before, after),
        )


def _fault(program: SignedProgram, path: Path, loop: Loop) -> tuple[str, str] | None:
    """What keeps the loop as it is, as reason and message."""
    if loop.extent == 1:
        return "runs-once", f"loop {loop.index} runs once"
    if carries(program, path, loop.index) != "none":
        return "dependence-carried", f"iterations of loop {loop.index} touch common elements"
    return None
