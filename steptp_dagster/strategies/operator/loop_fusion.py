"""loop_fusion: collapse two neighbouring loops of a header into one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import THREAD_AXES, Kind, Loop, Nest
from steptp_dagster.leir.limits import AXIS_LIMITS
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, all_nests, equations_in, nests_in
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.collapsing import Collapse, guard_end, without_guard_end
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import (
    carries,
    loop_of,
    loops_fact,
    private_tensors,
    reduces,
    rounding_reductions,
    trips,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import nest_at, signed_with

#: Kind of the one loop by the kinds of the outer and the inner one, bound loops left out.
_KINDS: Final[dict[tuple[Kind, Kind], Kind]] = {
    ("L", "L"): "L",
    ("U", "U"): "U",
    ("P", "L"): "P",
}


class LoopFusion(Strategy):
    """Make one loop of n*m iterations of an outer loop of n and an inner one of m.

    The new index stands for ``outer*m+inner`` where this sum occurs, also with a common factor;
    elsewhere the outer index becomes ``index//m`` and the inner one ``index%m``. So a loop that
    was split comes back, and a head and its channel become one dimension.

    Iterations at the end in which no guard lets anything run, as a split leaves them, are left
    out together with that guard.

    Two serial loops stay serial and two unrolled ones unrolled. A parallel loop takes in a serial
    one that carries nothing. Two bound loops become one on either of their axes, if its limit
    allows, no other loop of the kernel runs on them, and nothing in shared memory would belong to
    another set of threads.

        === example
        --- before
        # input A f32[2,6]
        # input C f32[6]
        # output D f32[2,6]
        B^{2}_{tx=0}L^{2}_{c=0}L^{3}_{a=0}[
          D^{f32,g}_{tx,c*3+a}=A^{f32,g}_{tx,c*3+a}+C^{f32,g}_{c*3+a};];
        --- site statement 1: as=L, inner=a, outer=c
        --- after
        B^{2}_{tx=0}L^{6}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}+C^{f32,g}_{a};];
        --- numerics exact
    """

    name = "loop_fusion"
    level = "operator"
    version = "1"
    summary = "Collapses two neighbouring loops into one."
    preconditions = (
        "runs-once",
        "kinds-differ",
        "start-not-zero",
        "iterations-dependent",
        "axis-shared",
        "axis-limit-exceeded",
        "shared-memory",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every two neighbours in a header, in text order."""
        sites: list[Site] = []
        refusals: dict[tuple[Path, str, str], Refusal] = {}
        for path, nest in all_nests(program.program):
            for outer, inner in pairwise(nest.loops):
                for found in self._candidates(program, path, outer, inner):
                    if isinstance(found, Site):
                        sites.append(found)
                    else:
                        refusals.setdefault((path, inner.index, found.reason), found)
        return Survey(tuple(sites), tuple(refusals.values()))

    def _candidates(
        self, program: SignedProgram, path: Path, outer: Loop, inner: Loop
    ) -> Iterator[Site | Refusal]:
        broken = _fault(program, path, outer, inner)
        if broken is not None:
            yield Refusal(self.name, path, *broken)
            return
        for form in _forms(outer, inner):
            site = Site.of(self.name, path, outer=outer.index, inner=inner.index, **{"as": form})
            new = _plan(program, site)[2]
            broken = _limit_fault(new) or fault(self.apply(program, site))
            yield site if broken is None else Refusal(self.name, path, *broken)

    def keeps_instances(self, site: Site) -> bool:
        """True: the one index takes every pair of values once."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace the two loops in the header and their indices in the body."""
        nest = nest_at(program.program, site.path)
        outer, inner, new = _plan(program, site)
        place = [loop.index for loop in nest.loops].index(outer.index)
        rest = _rest(nest, outer, inner, new)
        if new.extent < outer.extent * inner.extent:
            rest = replace(rest, body=tuple(without_guard_end(s) for s in rest.body))
        loops = (*nest.loops[:place], new, *nest.loops[place + 2 :])
        return signed_with(program, site.path, replace(nest, loops=loops, body=rest.body))

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """Those about axes for bound loops only."""
        count = len(self.preconditions) if site.text("as")[0] in "bt" else 4
        return self.preconditions[:count]

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The two loops, that they are neighbours, and what the one loop becomes."""
        path = site.path
        outer, inner, new = _plan(before, site)
        total = outer.extent * inner.extent
        cut = new.extent < total
        extents = tuple(
            before_fact("loop_extent", path, loop.index, value=loop.extent)
            for loop in (outer, inner)
        )
        kinds = tuple(
            before_fact("loop_kind", path, loop.index, value=loop.kind) for loop in (outer, inner)
        )
        depends = tuple(
            before_fact("depends", path, loop.index, value=carries(before, path, loop.index))
            for loop in (outer, inner)
        )
        guards = tuple(
            before_fact("guard_text", one.path, value=expr_text(one.equation.guard))
            for one in equations_in(nest_at(before.program, path), path)
            if one.equation.guard is not None
        )
        product = pair("product", outer.extent, inner.extent, value=total)
        known = {
            "runs-once": extents,
            "kinds-differ": kinds,
            "start-not-zero": (before_fact("loop_start", path, outer.index, value=outer.start),),
            "iterations-dependent": (after_fact("loop_kind", path, new.index, value=new.kind),),
            "axis-shared": (loops_fact(before, path),),
            "axis-limit-exceeded": (after_fact("loop_extent", path, new.index, value=new.extent),),
            "shared-memory": (
                before_fact("private_tensors", path, value=private_tensors(before, path)),
            ),
        }
        if new.kind != "L":
            known["iterations-dependent"] += depends
        if new.axis is not None:
            end, limit = new.start + new.extent, AXIS_LIMITS[new.axis]
            known["axis-limit-exceeded"] += (pair("at_most", end, limit, value=end <= limit),)
        return Explanation(
            state=(loops_fact(before, path), *extents, *kinds),
            preconditions=tuple(evidence(p, *known[p]) for p in self.preconditions_at(site)),
            decision=(
                after_fact("loop_extent", path, new.index, value=new.extent),
                after_fact("loop_kind", path, new.index, value=new.kind),
            ),
            transition=transition(before, after),
            soundness_rule=_rule(before, path, outer, inner, cut=cut),
            soundness=(
                product,
                *(guards if cut else ()),
                before_fact("trip_count", path, value=trips(before, path)),
                after_fact("trip_count", path, value=trips(after, path)),
            ),
            effect=effects(before, after),
        )


def _plan(program: SignedProgram, site: Site) -> tuple[Loop, Loop, Loop]:
    """The outer, the inner and the new loop."""
    outer = loop_of(program, site.path, site.text("outer"))
    inner = loop_of(program, site.path, site.text("inner"))
    total, form = outer.extent * inner.extent, site.text("as")
    if form[0] in "bt":
        index = inner.index if inner.axis == form else outer.index
        new = Loop("B", index, total, inner.start)
    else:
        new = replace(inner, kind=_KINDS[outer.kind, inner.kind], extent=total)
    end = guard_end(_rest(nest_at(program.program, site.path), outer, inner, new), new.index)
    if end is not None and new.start < end < new.start + total:
        new = replace(new, extent=end - new.start)
    return outer, inner, new


def _rest(nest: Nest, outer: Loop, inner: Loop, new: Loop) -> Nest:
    """The nest with its old header and its body in terms of the new index."""
    collapse = Collapse(outer.index, inner.index, inner.extent, inner.start, new.index)
    return replace(nest, body=tuple(collapse.in_statement(s) for s in nest.body))


def _forms(outer: Loop, inner: Loop) -> tuple[str, ...]:
    """What the one loop can be: a kind, or an axis for bound loops."""
    if outer.axis is not None and inner.axis is not None:
        return tuple(sorted((outer.axis, inner.axis)))
    return (_KINDS[outer.kind, inner.kind],)


def _fault(program: SignedProgram, path: Path, outer: Loop, inner: Loop) -> tuple[str, str] | None:
    """What forbids to collapse two neighbours, as reason and message."""
    names = f"loops {outer.index} and {inner.index}"
    bound = [loop.axis is not None for loop in (outer, inner)]
    if 1 in (outer.extent, inner.extent):
        return "runs-once", f"one of {names} runs once"
    if not all(bound) and (outer.kind, inner.kind) not in _KINDS:
        return "kinds-differ", f"{names} run in different ways"
    if outer.start:
        return "start-not-zero", f"loop {outer.index} starts at {outer.start}"
    if outer.kind == "P" and carries(program, path, inner.index) != "none":
        return "iterations-dependent", f"iterations of loop {inner.index} are not independent"
    if not all(bound):
        return None
    top = nest_at(program.program, path[:1])
    axes = [loop.axis for _, nest in nests_in(top) for loop in nest.loops]
    if any(axes.count(loop.axis) > 1 for loop in (outer, inner)):
        return "axis-shared", f"another loop of the kernel runs on an axis of {names}"
    shared = [name for name in private_tensors(program, path[:1]) if _scope(program, name) == "s"]
    if shared:
        return "shared-memory", f"{shared[0]} is shared by the threads of a block as it is now"
    return None


def _scope(program: SignedProgram, name: str) -> str:
    return Analysis.of(program).accesses.by_tensor[name][0].access.scope


def _limit_fault(new: Loop) -> tuple[str, str] | None:
    """Whether a bound loop is longer than its axis, as reason and message."""
    if new.axis is None:
        return None
    end, limit = new.start + new.extent, AXIS_LIMITS[new.axis]
    if end > limit:
        return "axis-limit-exceeded", f"{new.axis} would reach {end}, and it is at most {limit}"
    return None


def _rule(program: SignedProgram, path: Path, outer: Loop, inner: Loop, *, cut: bool) -> str:
    bound = [loop for loop in (outer, inner) if loop.axis in THREAD_AXES]
    if any(rounding_reductions(program, path, loop.index) for loop in bound):
        return "accumulation-in-another-order"
    if any(reduces(program, path, loop.index) for loop in bound):
        return "order-kept-where-it-matters"
    if cut:
        return "guarded-iterations-dropped"
    return "same-iterations-in-order" if outer.axis is None else "independent-iterations"
