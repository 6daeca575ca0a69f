"""loop_binding: run a loop on a hardware axis."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from steptp_dagster.leir.ast import AXES, THREAD_AXES, Index, Loop, Nest
from steptp_dagster.leir.dependence import Answer, carried
from steptp_dagster.leir.limits import AXIS_LIMITS, THREADS_PER_BLOCK
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, equations_in
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import (
    around_and_in,
    axes_in,
    block_threads,
    carries,
    launch_loops,
    loop_of,
    loops_with_nests,
    reduces,
    rounding_reductions,
    thread_sets,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import map_indices, nest_at, signed_with

#: Kinds of loops that may be bound.
_BINDABLE: Final = ("L", "P")


class LoopBinding(Strategy):
    """Bind a serial or parallel loop to a hardware axis, so that threads or blocks share it.

    The index gets the axis in front of its letters (``a`` becomes ``tya``) in the header and in
    every use. Each axis that no loop around, beside or inside has is a site, if its limit and
    that of the thread block hold. A loop that carries a dependence is never bound; one that
    accumulates may go to a thread axis, where the threads of a block reduce together.

    All equations of a kernel stand under the same thread axes, so a loop around only some of them
    goes to block axes. No serial loop may become a launch of its own: a loop inside serial loops
    is bound only where these stand inside bound ones.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[4,3]
        # output D f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- site statement 1: axis=ty, loop=a
        --- after
        B^{2}_{tx=0}B^{3}_{tya=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,tya}=D^{f32,g}_{tx,tya}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,tya};];
        --- numerics exact
    """

    name = "loop_binding"
    level = "operator"
    version = "1"
    summary = "Binds a loop to a block or thread axis."
    preconditions = (
        "runs-once",
        "dependence-carried",
        "dependence-unknown",
        "launches-multiplied",
        "axis-taken",
        "threads-differ",
        "axis-limit-exceeded",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every loop with every axis, in text order; refusals per loop and reason."""
        sites: list[Site] = []
        refusals: dict[tuple[Path, str, str], Refusal] = {}
        for path, _, loop in loops_with_nests(program):
            if loop.kind not in _BINDABLE:
                continue
            for found in self._candidates(program, path, loop):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.setdefault((path, loop.index, found.reason), found)
        return Survey(tuple(sites), tuple(refusals.values()))

    def _candidates(
        self, program: SignedProgram, path: Path, loop: Loop
    ) -> Iterator[Site | Refusal]:
        broken = _loop_fault(program, path, loop)
        if broken is not None:
            yield Refusal(self.name, path, *broken)
            return
        used = axes_in(around_and_in(program, path[:1]))
        # axes of one sort differ in their limits and in who else runs on them, nothing else
        known: dict[tuple[bool, bool], tuple[str, str] | None] = {}
        for axis in AXES:
            site = Site.of(self.name, path, loop=loop.index, axis=axis)
            broken = _axis_fault(program, path, loop, axis)
            if broken is None:
                sort = (axis in THREAD_AXES, axis in used)
                if sort not in known or sort[1]:
                    known[sort] = fault(self.apply(program, site))
                broken = known[sort]
            yield site if broken is None else Refusal(self.name, path, *broken)

    def keeps_instances(self, site: Site) -> bool:
        """True: the loop runs over the same values."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Change the kind of the loop and rename its index in header and body."""
        nest = nest_at(program.program, site.path)
        index, name = site.text("loop"), _bound_name(site)
        loops = tuple(
            replace(loop, kind="B", index=name) if loop.index == index else loop
            for loop in nest.loops
        )
        body = tuple(map_indices(s, {index: Index(name)}) for s in nest.body)
        return signed_with(program, site.path, Nest(loops, body))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """What the loop carries, which axes are free, how large the launch becomes."""
        path, axis = site.path, site.text("axis")
        loop = loop_of(before, path, site.text("loop"))
        name = _bound_name(site)
        extent = before_fact("loop_extent", path, loop.index, value=loop.extent)
        depends = before_fact("depends", path, loop.index, value=carries(before, path, loop.index))
        end, limit = loop.start + loop.extent, AXIS_LIMITS[axis]
        room = [pair("at_most", end, limit, value=end <= limit)]
        threads = block_threads(after, path)
        if axis in THREAD_AXES:
            room = [
                after_fact("block_threads", path, value=threads),
                pair("at_most", threads, THREADS_PER_BLOCK, value=threads <= THREADS_PER_BLOCK),
                *room,
            ]
        known = {
            "runs-once": (extent,),
            "dependence-carried": (depends,),
            "dependence-unknown": (depends,),
            "launches-multiplied": (
                before_fact("launch_loops", path, value=launch_loops(before, path)),
                after_fact("launch_loops", path, value=launch_loops(after, path)),
            ),
            "axis-taken": (
                before_fact("axes_in_use", path, value=axes_in(around_and_in(before, path))),
            ),
            "threads-differ": (after_fact("thread_axes", path, value=thread_sets(after, path)),),
            "axis-limit-exceeded": tuple(room),
        }
        return Explanation(
            state=(
                extent,
                before_fact("loop_kind", path, loop.index, value=loop.kind),
            ),
            preconditions=tuple(evidence(p, *known[p]) for p in self.preconditions),
            decision=(after_fact("loop_kind", path, name, value="B"),),
            transition=transition(before, after),
            soundness_rule=_rule(before, path, loop),
            soundness=(depends,),
            effect=effects(before, after),
        )


def _bound_name(site: Site) -> str:
    """The axis with the letters of the loop behind it."""
    return site.text("axis") + site.text("loop")


def _rule(program: SignedProgram, path: Path, loop: Loop) -> str:
    if rounding_reductions(program, path, loop.index):
        return "accumulation-in-another-order"
    if reduces(program, path, loop.index):
        return "order-kept-where-it-matters"
    return "independent-iterations"


def _loop_fault(program: SignedProgram, path: Path, loop: Loop) -> tuple[str, str] | None:
    """What no axis could mend, as reason and message."""
    if loop.extent == 1:
        return "runs-once", f"loop {loop.index} runs once"
    found = carried(program, path, loop.index)
    if found.answer is Answer.DEPENDENCE:
        return (
            "dependence-carried",
            f"iterations of loop {loop.index} write what others read or write",
        )
    if found.answer is Answer.UNKNOWN or found.reduction is Answer.UNKNOWN:
        return (
            "dependence-unknown",
            f"it cannot be decided whether iterations of loop {loop.index} are independent",
        )
    return None


def _axis_fault(
    program: SignedProgram, path: Path, loop: Loop, axis: str
) -> tuple[str, str] | None:
    """What forbids one axis, as reason and message."""
    if axis in axes_in(around_and_in(program, path)):
        return "axis-taken", f"a loop around, beside or inside loop {loop.index} runs on {axis}"
    if loop.start + loop.extent > AXIS_LIMITS[axis]:
        return (
            "axis-limit-exceeded",
            f"loop {loop.index} runs up to {loop.start + loop.extent}, and {axis} is at most"
            f" {AXIS_LIMITS[axis]}",
        )
    if axis not in THREAD_AXES and reduces(program, path, loop.index):
        return "dependence-carried", f"loop {loop.index} accumulates, which blocks cannot share"
    if _serial_launches(program, path, loop):
        return (
            "launches-multiplied",
            f"loop {loop.index} stands inside serial loops, each iteration of which would become"
            " a launch",
        )
    if axis in THREAD_AXES and _threads_differ(program, path):
        return (
            "threads-differ",
            f"loop {loop.index} is around some equations of its kernel only, and all of them"
            " run on the same thread axes",
        )
    return None


def _serial_launches(program: SignedProgram, path: Path, loop: Loop) -> bool:
    """Whether binding the loop would turn serial loops around it into launches."""
    site = Site.of("loop_binding", path, loop=loop.index, axis="tx")
    launches = launch_loops(LoopBinding().apply(program, site), path)
    return not set(launches) <= set(launch_loops(program, path))


def _threads_differ(program: SignedProgram, path: Path) -> bool:
    """Whether the kernel has equations outside the nest."""
    top = path[:1]
    return any(
        located.path[: len(path)] != path
        for located in equations_in(nest_at(program.program, top), top)
    )
