"""operator_fusion: let two adjacent nests share their leading loops."""

from collections.abc import Iterator
from math import prod
from typing import Final

from steptp_dagster.leir.analysis import Analysis, per_program
from steptp_dagster.leir.ast import Loop, Nest, Program
from steptp_dagster.leir.dependence import Answer, can_fuse, carried
from steptp_dagster.leir.printer import loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import Path, loops_around
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.joining import (
    adjacent,
    common_depth,
    flow,
    follower,
    header_words,
    in_local_memory,
    in_registers,
    joined,
    private_intermediates,
    read,
    thread_axes,
    written,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.ownership import private
from steptp_dagster.strategies.rewrite import (
    nest_at,
    read_texts,
    readers_of,
    write_texts,
    writers_of,
)

#: What becomes of the intermediates that only the fused nest uses.
HANDLINGS: Final = ("g", "l", "register")


#: Kinds of loops whose iterations run at the same time.
PARALLEL: Final = ("P", "V", "B")


class OperatorFusion(Strategy):
    """Merge two adjacent nests over their first ``depth`` loops, which agree up to names.

    The second nest takes the index names of the first; loops below the shared ones stay nested.
    Nests may stand at the top level or inside another nest. Legal where no instance of the
    second nest would run before an instance of the first that it conflicts with (``can_fuse``),
    and where both sides use the same thread axes.

    ``intermediate`` says what becomes of the tensors that the first nest writes, the second
    reads and nothing else uses: ``g`` leaves them in global memory, ``l`` moves them to local
    memory with their subscripts, ``register`` also drops the dimensions that the shared loops
    index, so that one element per iteration is left.

        === example
        --- before
        # input A f32[2,3]
        # input C f32[3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{3}_{c=0}[E^{f32,g}_{tx,c}=D^{f32,g}_{tx,c}*C^{f32,g}_{c};];
        --- site statement 1: depth=2, intermediate=l
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[
          D^{f32,l}_{tx,a}=exp(A^{f32,g}_{tx,a});
          E^{f32,g}_{tx,a}=D^{f32,l}_{tx,a}*C^{f32,g}_{a};];
        --- numerics exact
    """

    name = "operator_fusion"
    level = "graph"
    version = "2"
    summary = "Merges two adjacent nests over the leading loops that they have in common."
    preconditions = (
        "not-adjacent",
        "headers-differ",
        "thread-axes-differ",
        "dependence-reversed",
        "parallel-loop-carries",
        "intermediate-used-elsewhere",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every pair of adjacent nests with every shared depth, deepest first."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for path, first, second in adjacent(program.program):
            for found in self._candidates(program, path, first, second):
                if isinstance(found, Site):
                    sites.append(found)
                elif all((r.path, r.reason) != (path, found.reason) for r in refusals):
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _candidates(
        self, program: SignedProgram, path: Path, first: Nest, second: Nest
    ) -> Iterator[Site | Refusal]:
        deepest = common_depth(first.loops, second.loops)
        if not deepest:
            yield Refusal(
                self.name,
                path,
                "headers-differ",
                "the outer loops differ: "
                f"{header_words(first.loops[0])} and {header_words(second.loops[0])}",
            )
            return
        if thread_axes(first) != thread_axes(second):
            yield Refusal(
                self.name,
                path,
                "thread-axes-differ",
                f"the first nest runs on {_axes(first)}, the second on {_axes(second)}",
            )
            return
        flowing = private_intermediates(program, path)
        passed = [name for name in flow(first, second) if name in read(second)]
        if passed and not flowing:
            yield Refusal(
                self.name,
                path,
                "intermediate-used-elsewhere",
                f"none of {', '.join(passed)} can leave global memory: each is a known variable,"
                " used by other nests too or made by several threads together",
            )
        for depth in range(deepest, 0, -1):
            answer = can_fuse(program, path, follower(path), depth)
            if answer is not Answer.NONE:
                verb = "depends" if answer is Answer.DEPENDENCE else "may depend"
                yield Refusal(
                    self.name,
                    path,
                    "dependence-reversed",
                    f"with {_loops(depth)} an instance of the second nest {verb} on a later one"
                    " of the first",
                )
                continue
            carrying = _carrying(program, path, depth)
            if carrying:
                yield Refusal(
                    self.name,
                    path,
                    "parallel-loop-carries",
                    f"with {_loops(depth)} iterations of {carrying[0]} would exchange values",
                )
                continue
            kernel = Analysis.of(_joined(program, path, depth)).accesses.part(path[0])
            for handling in HANDLINGS if flowing else HANDLINGS[:1]:
                site = Site.of(self.name, path, depth=depth, intermediate=handling)
                after = _rewritten(program, site)
                if after is None:
                    continue
                if handling != "g" and not all(
                    private(kernel.by_tensor[name], "l") for name in flowing
                ):
                    yield Refusal(
                        self.name,
                        path,
                        "intermediate-used-elsewhere",
                        f"elements of {', '.join(flowing)} do not belong to one thread each",
                    )
                    continue
                broken = fault(after)
                yield site if broken is None else Refusal(self.name, path, *broken)

    def keeps_instances(self, site: Site) -> bool:
        """True unless dimensions of an intermediate are dropped."""
        return site.text("intermediate") != "register"

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Rename the second nest's loops, join the bodies, then move private intermediates."""
        after = _rewritten(program, site)
        if after is None:
            raise ValueError(f"no site of this program: {site.describe()}")
        return after

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """The one about intermediates only where they move."""
        return self.preconditions if site.text("intermediate") != "g" else self.preconditions[:-1]

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The shared loops, what flows between the nests, and what moves where."""
        path, second = site.path, follower(site.path)
        first_nest, second_nest = (nest_at(before.program, p) for p in (path, second))
        depth = site.integer("depth")
        deepest = common_depth(first_nest.loops, second_nest.loops)
        shared = flow(first_nest, second_nest)
        after_loops = nest_at(after.program, path).loops
        header: list[Fact] = []
        for one, other in zip(first_nest.loops[:depth], second_nest.loops[:depth], strict=True):
            for where, loop in ((path, one), (second, other)):
                header.append(before_fact("loop_extent", where, loop.index, value=loop.extent))
                header.append(before_fact("loop_kind", where, loop.index, value=loop.kind))
                header.append(before_fact("loop_start", where, loop.index, value=loop.start))
        moved = private_intermediates(before, path) if site.text("intermediate") != "g" else ()
        flows = [
            fact
            for tensor in shared
            for fact in (
                before_fact("write_texts", path, tensor, value=write_texts(first_nest, tensor)),
                before_fact("read_texts", second, tensor, value=read_texts(second_nest, tensor)),
            )
        ]
        known = {
            "not-adjacent": (
                before_fact("statements", path[:-1], value=_siblings(before.program, path)),
            ),
            "headers-differ": tuple(header),
            "thread-axes-differ": (
                before_fact("loops_around", path, value=_loop_names(before.program, path)),
                before_fact("loops_around", second, value=_loop_names(before.program, second)),
            ),
            "dependence-reversed": (
                before_fact("writes", path, value=written(first_nest)),
                before_fact("writes", second, value=written(second_nest)),
                *flows,
            ),
            "parallel-loop-carries": tuple(
                fact
                for loop in after_loops
                for fact in (
                    before_fact("loop_kind", path, loop.index, value=loop.kind),
                    *_carries_nothing(after, path, loop),
                )
            ),
            "intermediate-used-elsewhere": tuple(
                fact for tensor in moved for fact in _privacy(before, tensor)
            ),
        }
        return Explanation(
            state=(
                before_fact("writes", path, value=written(first_nest)),
                before_fact("reads", second, value=read(second_nest)),
            ),
            preconditions=tuple(
                Evidence(name, known[name]) for name in self.preconditions_at(site)
            ),
            decision=(
                pair("at_most", depth, deepest, value=True),
                after_fact("loops_text", path, value=loops_text(after_loops)),
                *(after_fact("scope_of", tensor, value="l") for tensor in moved),
            ),
            transition=transition(before, after),
            soundness_rule="fusion-keeps-order",
            soundness=tuple(
                before_fact("trip_count", where, value=_trips(before.program, where))
                for where in (path, second)
            ),
            effect=effects(before, after),
        )


def _rewritten(program: SignedProgram, site: Site) -> SignedProgram | None:
    """The result at a site; None where no register can stand in for an intermediate."""
    fused = _joined(program, site.path, site.integer("depth"))
    names = private_intermediates(program, site.path)
    match site.text("intermediate"):
        case "l":
            return SignedProgram(in_local_memory(fused.program, names), program.signature)
        case "register":
            moved = in_registers(fused.program, site.path, names, _starts(program, names))
            return None if moved is None else SignedProgram(moved, program.signature)
    return fused


@per_program
def _joined(program: SignedProgram, path: Path, depth: int) -> SignedProgram:
    """The two nests joined, their intermediates where they were."""
    return SignedProgram(joined(program.program, path, depth), program.signature)


def _starts(program: SignedProgram, names: tuple[str, ...]) -> dict[str, str]:
    """The tensors among ``names`` that an update starts implicitly, with its operation."""
    updates = classify(program)
    return {
        name: update.op
        for name in names
        for path in writers_of(program.program, name)
        if (update := updates[path]).init == "identity" and update.op is not None
    }


def _privacy(program: SignedProgram, tensor: str) -> tuple[Fact, ...]:
    """That a tensor is no known variable, and where it is used."""
    return (
        before_fact("role_of", tensor, value="intermediate"),
        before_fact("writers_of", tensor, value=writers_of(program.program, tensor)),
        before_fact("readers_of", tensor, value=readers_of(program.program, tensor)),
    )


def _loop_names(program: Program, path: Path) -> tuple[str, ...]:
    loops = loops_around(program, path) + nest_at(program, path).loops
    return tuple(loop.index for loop in loops)


def _trips(program: Program, path: Path) -> int:
    return prod(loop.extent for loop in loops_around(program, path) + nest_at(program, path).loops)


def _siblings(program: Program, path: Path) -> int:
    above = path[:-1]
    return len(nest_at(program, above).body) if above else len(program.nests)


def _carrying(program: SignedProgram, path: Path, depth: int) -> tuple[str, ...]:
    """Shared parallel loops whose iterations would conflict in the joined nest."""
    fused = _joined(program, path, depth)
    return tuple(
        loop.index
        for loop in nest_at(fused.program, path).loops
        if loop.kind in PARALLEL and carried(fused, path, loop.index).answer is not Answer.NONE
    )


def _carries_nothing(after: SignedProgram, path: Path, loop: Loop) -> tuple[Fact, ...]:
    """For a parallel loop: that no iteration touches what another writes, reductions aside."""
    if loop.kind not in PARALLEL:
        return ()
    found = carried(after, path, loop.index)
    value = "none" if found.reduction is Answer.NONE else "reduction"
    return (after_fact("depends", path, loop.index, value=value),)


def _loops(depth: int) -> str:
    return "one shared loop" if depth == 1 else f"{depth} shared loops"


def _axes(nest: Nest) -> str:
    """The thread axes of a nest in words."""
    return " and ".join(thread_axes(nest)) or "no thread axis"
