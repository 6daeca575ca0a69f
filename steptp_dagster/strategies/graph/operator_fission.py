"""operator_fission: divide a nest between two of its statements."""

from collections.abc import Iterator
from math import prod

from steptp_dagster.leir.ast import Program
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import Path, all_nests, equations, loops_around
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.dividing import crossing, parted, reversed_tensors, spreadable
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.joining import flow, follower, read, written
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import accesses_to, nest_at, read_texts, write_texts


class OperatorFission(Strategy):
    """Make two nests of one: the statements before a cut, then those behind it.

    Every nest with several statements, at any level, is offered with every cut. Legal where no
    statement behind the cut feeds one before it in a later iteration. An intermediate that
    iterations overwrite is *spread*: it gets the indices of the nest as leading subscripts, so
    that each iteration has its own element. At the top level, tensors in local or shared memory
    that cross the cut go back to global memory.

        === example
        --- before
        # input A f32[2,3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[
          D^{f32,l}_{tx,a}=exp(A^{f32,g}_{tx,a});
          E^{f32,g}_{tx,a}=D^{f32,l}_{tx,a}*2;];
        --- site statement 1: cut=1, intermediates=kept
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}*2;];
        --- numerics exact
    """

    name = "operator_fission"
    level = "graph"
    version = "1"
    summary = "Divides a nest between two of its statements into two nests."
    preconditions = ("dependence-reversed", "start-changes")

    def survey(self, program: SignedProgram) -> Survey:
        """Every cut of every nest, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for path, nest in all_nests(program.program):
            for cut in range(1, len(nest.body)):
                found = self._consider(program, path, cut)
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _consider(self, program: SignedProgram, path: Path, cut: int) -> Site | Refusal:
        """The site with the fewest changes to intermediates, or why there is none."""
        depth = len(nest_at(program.program, path).loops)
        kept = _divided(program, path, cut, ())
        bad = reversed_tensors(kept, path, depth)
        stuck = tuple(name for name in bad if not spreadable(program, path, name))
        if stuck:
            message = (
                f"cut before statement {cut + 1}: a later iteration of the first part conflicts"
                f" with an earlier one of the second over {', '.join(stuck)}"
            )
            return Refusal(self.name, path, "dependence-reversed", message)
        problem: tuple[str, str] | None = None
        for handling in ("kept", "spread"):
            if handling == "kept" and bad:
                continue
            after = _result(program, path, cut, handling)
            if after is None or (handling == "spread" and reversed_tensors(after, path, depth)):
                continue
            changed = _start_problem(program, after, path, cut)
            broken = ("start-changes", changed) if changed else fault(after)
            if broken is None:
                return Site.of(self.name, path, cut=cut, intermediates=handling)
            problem = problem or broken
        reason, message = problem or ("dependence-reversed", "an intermediate cannot be spread")
        return Refusal(self.name, path, reason, f"cut before statement {cut + 1}: {message}")

    def keeps_instances(self, site: Site) -> bool:
        """True unless an intermediate gets new dimensions."""
        return site.text("intermediates") == "kept"

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Divide the nest; intermediates as the site says."""
        after = _result(program, site.path, site.integer("cut"), site.text("intermediates"))
        if after is None:
            raise ValueError(f"no site of this program: {site.describe()}")
        return after

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """What crosses the cut, where it is stored afterwards, and how updates start."""
        path, cut = site.path, site.integer("cut")
        second = follower(path)
        parts = nest_at(after.program, path), nest_at(after.program, second)
        crosses = crossing(before.program, path, cut)
        flows = tuple(
            fact
            for name in flow(*parts)
            for fact in (
                after_fact("write_texts", path, name, value=write_texts(parts[0], name)),
                after_fact("read_texts", second, name, value=read_texts(parts[1], name)),
            )
        )
        known = {
            "dependence-reversed": (
                after_fact("writes", path, value=written(parts[0])),
                after_fact("writes", second, value=written(parts[1])),
                after_fact("reads", second, value=read(parts[1])),
                *flows,
            ),
            "start-changes": tuple(_starts(before, after, path, cut)),
        }
        return Explanation(
            state=(
                before_fact("statements", path, value=len(nest_at(before.program, path).body)),
                before_fact("writes", path, value=written(nest_at(before.program, path))),
            ),
            preconditions=tuple(Evidence(name, known[name]) for name in self.preconditions),
            decision=(
                after_fact("statements", path, value=cut),
                after_fact("statements", second, value=len(parts[1].body)),
                *(
                    fact("scope_of", name, value=_scope(program.program, name))
                    for name in crosses
                    for fact, program in ((before_fact, before), (after_fact, after))
                ),
            ),
            transition=transition(before, after),
            soundness_rule="distribution-keeps-order",
            soundness=tuple(
                after_fact("trip_count", where, value=_trips(after.program, where))
                for where in (path, second)
            ),
            effect=effects(before, after),
        )


def _divided(
    program: SignedProgram, path: Path, cut: int, spread: tuple[str, ...]
) -> SignedProgram:
    return SignedProgram(parted(program.program, path, cut, spread), program.signature)


def _result(program: SignedProgram, path: Path, cut: int, handling: str) -> SignedProgram | None:
    """The divided program; None where there is nothing to spread."""
    kept = _divided(program, path, cut, ())
    if handling == "kept":
        return kept
    depth = len(nest_at(program.program, path).loops)
    bad = set(reversed_tensors(kept, path, depth))
    private = {
        name
        for name in crossing(program.program, path, cut)
        if len(path) == 1 and _scope(program.program, name) != "g"
    }
    spread = tuple(
        name
        for name in crossing(program.program, path, cut)
        if name in bad | private and spreadable(program, path, name)
    )
    return _divided(program, path, cut, spread) if spread else None


def _moved(path: Path, cut: int, old: Path) -> Path:
    """Where a statement of the divided nest stands afterwards."""
    n = len(path)
    if old[n] < cut:
        return old
    return (*follower(path), old[n] - cut, *old[n + 1 :])


def _start_problem(before: SignedProgram, after: SignedProgram, path: Path, cut: int) -> str | None:
    """In words: an update of the nest that would start in another way or place."""
    old, new = classify(before), classify(after)
    for one in equations(before.program):
        if one.path[: len(path)] != path:
            continue
        first, second = old[one.path], new[_moved(path, cut, one.path)]
        if (first.kind, first.init) != (second.kind, second.init) or (
            first.init == "identity" and first.repeating_loops != second.repeating_loops
        ):
            return f"{one.equation.target.name} would not start where it did"
    return None


def _starts(before: SignedProgram, after: SignedProgram, path: Path, cut: int) -> Iterator[Fact]:
    old = classify(before)
    new = classify(after)
    for one in equations(before.program):
        if one.path[: len(path)] == path:
            where = _moved(path, cut, one.path)
            yield before_fact("update_init", one.path, value=old[one.path].init or "")
            yield after_fact("update_init", where, value=new[where].init or "")


def _scope(program: Program, name: str) -> str:
    return next(access.scope for _, _, access in accesses_to(program, name))


def _trips(program: Program, path: Path) -> int:
    return prod(loop.extent for loop in loops_around(program, path) + nest_at(program, path).loops)
