"""loop_parallelization: let the iterations of a loop run in any order, or at once."""

from steptp_dagster.leir.ast import Loop
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import (
    around_and_in,
    bound_inside,
    carries,
    launch_loops,
    loop_of,
    loops_with_nests,
    with_loop,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import nest_at, signed_with


class LoopParallelization(Strategy):
    """Make a serial loop a parallel one.

    The loop carries nothing, accumulations included: no iteration writes what another reads or
    writes, in all statements below it. One parallel loop stands on a path at most, and none
    around bound loops, whose launches come one after the other.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[4,3]
        # output D f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- site statement 1: loop=a
        --- after
        B^{2}_{tx=0}P^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- numerics exact
    """

    name = "loop_parallelization"
    level = "operator"
    version = "1"
    summary = "Makes a serial loop a parallel one."
    preconditions = (
        "runs-once",
        "bound-inside",
        "parallel-nested",
        "reduction-carried",
        "dependence-carried",
        "dependence-unknown",
    )

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
        """True: only the kind of the loop changes."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Change the kind of the loop."""
        nest = nest_at(program.program, site.path)
        return signed_with(program, site.path, with_loop(nest, site.text("loop"), kind="P"))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The loop, the loops around it, and that it carries nothing."""
        path, index = site.path, site.text("loop")
        loop = loop_of(before, path, index)
        extent = before_fact("loop_extent", path, index, value=loop.extent)
        depends = before_fact("depends", path, index, value=carries(before, path, index))
        launches = after_fact("launch_loops", path, value=launch_loops(after, path))
        parallel = after_fact(
            "parallel_loops",
            path,
            value=tuple(x.index for x in around_and_in(after, path) if x.kind == "P"),
        )
        known = {
            "runs-once": (extent,),
            "bound-inside": (launches,),
            "parallel-nested": (parallel,),
            "reduction-carried": (depends,),
            "dependence-carried": (depends,),
            "dependence-unknown": (depends,),
        }
        return Explanation(
            state=(extent, before_fact("loop_kind", path, index, value=loop.kind)),
            preconditions=tuple(evidence(p, *known[p]) for p in self.preconditions),
            decision=(after_fact("loop_kind", path, index, value="P"),),
            transition=transition(before, after),
            soundness_rule="independent-iterations",
            soundness=(depends,),
            effect=effects(before, after),
        )


def _fault(program: SignedProgram, path: Path, loop: Loop) -> tuple[str, str] | None:
    """What keeps the loop serial, as reason and message."""
    name = f"loop {loop.index}"
    if loop.extent == 1:
        return "runs-once", f"{name} runs once"
    if bound_inside(program, path, loop.index):
        return "bound-inside", f"{name} stands around bound loops, so it launches kernels in turn"
    others = [x for x in around_and_in(program, path) if x.kind == "P"]
    if others:
        return "parallel-nested", f"loop {others[0].index} around or in the nest is parallel"
    match carries(program, path, loop.index):
        case "none":
            return None
        case "reduction":
            return "reduction-carried", f"iterations of {name} accumulate in the same elements"
        case "dependence":
            return "dependence-carried", f"iterations of {name} write what others read or write"
    return (
        "dependence-unknown",
        f"it cannot be decided whether iterations of {name} are independent",
    )
