"""loop_unrolling: write the iterations of a short loop out."""

from typing import Final

from steptp_dagster.leir.ast import Loop
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, equations_in
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import (
    bound_inside,
    launch_loops,
    loop_of,
    loops_with_nests,
    trips,
    with_loop,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import nest_at, signed_with

#: Most iterations of an unrolled loop, and most equations that unrolled loops make of a kernel.
MOST_ITERATIONS: Final = 64
MOST_EQUATIONS: Final = 256


class LoopUnrolling(Strategy):
    """Mark a serial loop as unrolled: its iterations are written out one after the other.

    The order stays, so any serial loop will do, reductions included; what limits it is the size
    of the code. An unrolled loop has at most 64 iterations, and all unrolled loops of a kernel
    together make at most 256 equations of it. Loops around bound ones launch kernels and are not
    unrolled.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[4,3]
        # output D f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- site statement 1: loop=c
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}U^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- numerics exact
    """

    name = "loop_unrolling"
    level = "operator"
    version = "1"
    summary = "Marks a short serial loop as unrolled."
    preconditions = ("runs-once", "bound-inside", "too-many-iterations", "too-many-equations")

    def survey(self, program: SignedProgram) -> Survey:
        """Every serial loop, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for path, _, loop in loops_with_nests(program):
            if loop.kind != "L":
                continue
            site = Site.of(self.name, path, loop=loop.index)
            broken = self._fault(program, site, loop) or fault(self.apply(program, site))
            if broken is None:
                sites.append(site)
            else:
                refusals.append(Refusal(self.name, path, *broken))
        return Survey(tuple(sites), tuple(refusals))

    def _fault(self, program: SignedProgram, site: Site, loop: Loop) -> tuple[str, str] | None:
        name = f"loop {loop.index}"
        if loop.extent == 1:
            return "runs-once", f"{name} runs once"
        if bound_inside(program, site.path, loop.index):
            return "bound-inside", f"{name} stands around bound loops, so it launches kernels"
        if loop.extent > MOST_ITERATIONS:
            return (
                "too-many-iterations",
                f"{name} has {loop.extent} iterations, more than {MOST_ITERATIONS}",
            )
        size = _written_out(self.apply(program, site), site.path[:1])
        if size > MOST_EQUATIONS:
            return (
                "too-many-equations",
                f"unrolling {name} would make {size} equations of the kernel, more than"
                f" {MOST_EQUATIONS}",
            )
        return None

    def keeps_instances(self, site: Site) -> bool:
        """True: only the kind of the loop changes."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Change the kind of the loop."""
        nest = nest_at(program.program, site.path)
        return signed_with(program, site.path, with_loop(nest, site.text("loop"), kind="U"))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The loop, and how much code it becomes."""
        path, index = site.path, site.text("loop")
        loop, top = loop_of(before, path, index), path[:1]
        extent = before_fact("loop_extent", path, index, value=loop.extent)
        size = _written_out(after, top)
        equations = after_fact("unrolled_equations", top, value=size)
        known = {
            "runs-once": (extent,),
            "bound-inside": (after_fact("launch_loops", path, value=launch_loops(after, path)),),
            "too-many-iterations": (
                extent,
                pair("at_most", loop.extent, MOST_ITERATIONS, value=loop.extent <= MOST_ITERATIONS),
            ),
            "too-many-equations": (
                equations,
                pair("at_most", size, MOST_EQUATIONS, value=size <= MOST_EQUATIONS),
            ),
        }
        return Explanation(
            state=(extent, before_fact("loop_kind", path, index, value=loop.kind)),
            preconditions=tuple(evidence(p, *known[p]) for p in self.preconditions),
            decision=(after_fact("loop_kind", path, index, value="U"), equations),
            transition=transition(before, after),
            soundness_rule="same-iterations-in-order",
            soundness=(
                before_fact("trip_count", path, value=trips(before, path)),
                after_fact("trip_count", path, value=trips(after, path)),
            ),
            effect=effects(before, after),
        )


def _written_out(program: SignedProgram, top: Path) -> int:
    """How many equations the unrolled loops make of a top-level nest."""
    total = 0
    for located in equations_in(nest_at(program.program, top), top):
        copies = 1
        for loop in located.loops:
            copies *= loop.extent if loop.kind == "U" else 1
        total += copies
    return total
