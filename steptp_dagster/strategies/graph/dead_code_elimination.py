"""dead_code_elimination: drop every equation that no output depends on."""

from steptp_dagster.leir.liveness import dead_equations
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import replace_at
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import equation_at, readers_of


class DeadCodeElimination(Strategy):
    """Remove all dead equations at once, and the nests that become empty.

    An equation is alive if it writes an output, or an element that a living equation may read in
    its value, guard, a condition or a subscript. So an intermediate that only feeds itself is
    dead, and so is the part of a tensor that nobody reads, while an index table is alive.

        === example
        --- before
        # input A f32[2]
        # output E f32[2]
        B^{2}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];
        B^{2}_{tx=0}[F^{f32,g}_{tx}=D^{f32,g}_{tx}+1;];
        B^{2}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}+1;];
        --- site statement 1.1: equations=2
        --- after
        B^{2}_{tx=0}[E^{f32,g}_{tx}=A^{f32,g}_{tx}+1;];
        --- numerics exact
    """

    name = "dead_code_elimination"
    level = "graph"
    version = "1"
    summary = "Removes every equation that no output depends on."
    preconditions = ("nothing-dead",)

    def survey(self, program: SignedProgram) -> Survey:
        """One site that removes all dead code; at the first dead equation."""
        dead = dead_equations(program)
        if not dead:
            words = "every equation has an effect on an output"
            return Survey((), (Refusal(self.name, (0,), "nothing-dead", words),))
        site = Site.of(self.name, dead[0], equations=len(dead))
        broken = fault(self.apply(program, site))
        if broken is not None:
            return Survey((), (Refusal(self.name, dead[0], *broken),))
        return Survey((site,), ())

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Remove the dead equations, last first, so that paths stay."""
        if site.strategy != self.name:
            raise ValueError(f"a site of {site.strategy}, not of {self.name}")
        result = program.program
        for path in reversed(dead_equations(program)):
            result = replace_at(result, path)
        return SignedProgram(result, program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """What is dead, who reads it, and that nothing dead is left."""
        dead = dead_equations(before)
        targets = tuple(
            dict.fromkeys(equation_at(before.program, path).target.name for path in dead)
        )
        seen = tuple(
            fact
            for name in targets
            for fact in (
                before_fact("role_of", name, value="intermediate"),
                before_fact("readers_of", name, value=readers_of(before.program, name)),
            )
        )
        return Explanation(
            state=seen,
            preconditions=(Evidence("nothing-dead", (before_fact("dead_equations", value=dead),)),),
            decision=(pair("cost_change", "equations", value=-site.integer("equations")),),
            transition=transition(before, after),
            soundness_rule="no-effect",
            soundness=(after_fact("dead_equations", value=()),),
            effect=effects(before, after),
        )
