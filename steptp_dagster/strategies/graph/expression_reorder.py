"""expression_reorder: exchange two adjacent statements that do not depend on each other."""

from collections.abc import Iterator

from steptp_dagster.leir.ast import Program, Statement
from steptp_dagster.leir.dependence import Answer, can_move
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, all_nests, at, equations_in, replace_at
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation
from steptp_dagster.strategies.joining import follower
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import reads_of


class ExpressionReorder(Strategy):
    """Swap two neighbours, top-level nests or statements of one body.

    Legal where neither writes an element that the other reads or writes, subscripts and guards
    counted, so that reads, overwrites and implicit starts all see what they saw before. Two
    nests that touch one tensor at different elements may change places.

        === example
        --- before
        # input A f32[2]
        # input C f32[3]
        # output D f32[2]
        # output E f32[3]
        B^{2}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];
        B^{3}_{tx=0}[E^{f32,g}_{tx}=C^{f32,g}_{tx}+1;];
        --- site statement 1
        --- after
        B^{3}_{tx=0}[E^{f32,g}_{tx}=C^{f32,g}_{tx}+1;];
        B^{2}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*2;];
        --- numerics exact
    """

    name = "expression_reorder"
    level = "graph"
    version = "1"
    summary = "Exchanges two adjacent statements that do not depend on each other."
    preconditions = ("order-matters",)

    def survey(self, program: SignedProgram) -> Survey:
        """Every pair of neighbours, in text order of the first."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for path, first, second in _neighbours(program.program):
            if first == second:
                continue  # nothing would change
            found = self._consider(program, path)
            if isinstance(found, Site):
                sites.append(found)
            else:
                refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _consider(self, program: SignedProgram, path: Path) -> Site | Refusal:
        answer = can_move(program, path, follower(path))
        if answer is not Answer.NONE:
            certain = "conflict" if answer is Answer.DEPENDENCE else "may conflict"
            shared = ", ".join(_shared(program.program, path))
            return Refusal(self.name, path, "order-matters", f"the two {certain} over {shared}")
        site = Site.of(self.name, path)
        broken = fault(self.apply(program, site))
        return site if broken is None else Refusal(self.name, path, *broken)

    def keeps_instances(self, site: Site) -> bool:
        """True: statements only change places."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Exchange the statement with the next one."""
        return SignedProgram(_swapped(program.program, site.path), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """What each of the two touches, and that they do not conflict."""
        first, second = site.path, follower(site.path)
        touched = tuple(
            fact
            for path in (first, second)
            for fact in (
                before_fact("writes", path, value=_written(before.program, path)),
                before_fact("reads", path, value=_read(before.program, path)),
            )
        )
        return Explanation(
            state=touched,
            preconditions=(
                Evidence(
                    "order-matters",
                    (before_fact("conflict", first, second, value="none"),),
                ),
            ),
            decision=(
                pair("same_text", first, second, value=True),
                pair("same_text", second, first, value=True),
            ),
            transition=transition(before, after),
            soundness_rule="independent-statements",
            soundness=(before_fact("conflict", first, second, value="none"),),
            effect=effects(before, after),
        )


def _neighbours(program: Program) -> Iterator[tuple[Path, Statement, Statement]]:
    """Adjacent statements with the first one's path, in text order."""
    bodies: list[tuple[Path, tuple[Statement, ...]]] = [((), program.nests)]
    bodies += [(path, nest.body) for path, nest in all_nests(program)]
    found = [
        ((*path, i), body[i], body[i + 1]) for path, body in bodies for i in range(len(body) - 1)
    ]
    yield from sorted(found, key=lambda entry: entry[0])


def _swapped(program: Program, path: Path) -> Program:
    first, second = at(program, path), at(program, follower(path))
    return replace_at(replace_at(program, follower(path), first), path, second)


def _written(program: Program, path: Path) -> tuple[str, ...]:
    found = equations_in(at(program, path))
    return tuple(dict.fromkeys(one.equation.target.name for one in found))


def _read(program: Program, path: Path) -> tuple[str, ...]:
    found = equations_in(at(program, path))
    return tuple(dict.fromkeys(a.name for one in found for a in reads_of(one.equation)))


def _shared(program: Program, path: Path) -> tuple[str, ...]:
    """Tensors that one of the two writes and the other touches."""
    second = follower(path)
    mine, yours = _written(program, path), _written(program, second)
    touched = {*_read(program, path), *mine}
    also = {*_read(program, second), *yours}
    return tuple(dict.fromkeys(n for n in (*mine, *yours) if n in touched and n in also))
