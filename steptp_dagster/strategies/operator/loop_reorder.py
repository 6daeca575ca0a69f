"""loop_reorder: exchange two loops of a nest."""

from collections.abc import Iterator
from itertools import combinations

from steptp_dagster.leir.ast import THREAD_AXES, Loop
from steptp_dagster.leir.dependence import can_interchange
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, all_nests, loops_around
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import (
    Band,
    band_at,
    in_one_header,
    launch_loops,
    loops_inside,
    private_tensors,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import nest_at, signed_with


class LoopReorder(Strategy):
    """Exchange two loops that stand in one header, or in headers with nothing between them.

    Every pair of loops is tried, neighbours or not; what stands between them stays where it is.
    Dependences decide: no pair of instances that touch one element may come to run the other way
    round, except operands of an accumulation.

    A serial loop never comes to stand around all bound loops, which would make another kernel
    launch of each of its iterations; inside a block loop it may stand around thread loops, as the
    loop over the tiles of a reduction does. A bound loop may move out, unless something private to
    a thread or block then lives across the iterations of the loop that moves in. Exchanging two
    bound loops, or a loop that runs once, would change nothing but the text.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[4,3]
        # output D f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- site statement 1: first=a, second=c
        --- after
        B^{2}_{tx=0}L^{4}_{c=0}L^{3}_{a=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- numerics exact
    """

    name = "loop_reorder"
    level = "operator"
    version = "2"
    summary = "Exchanges two loops of a nest."
    preconditions = (
        "order-immaterial",
        "launches-multiplied",
        "private-state",
        "vector-not-innermost",
        "dependence-reversed",
        "dependence-unknown",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every pair of loops with nothing between their headers, in text order."""
        sites: list[Site] = []
        refusals: dict[tuple[Path, str], Refusal] = {}
        for path, nest in all_nests(program.program):
            band = band_at(program, path)
            for found in self._pairs(program, path, band, len(nest.loops)):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.setdefault((path, found.reason), found)
        return Survey(tuple(sites), tuple(refusals.values()))

    def _pairs(
        self, program: SignedProgram, path: Path, band: Band, own: int
    ) -> Iterator[Site | Refusal]:
        flat = None
        for i, j in combinations(range(len(band.loops)), 2):
            if i >= own:
                return
            first, second = band.loops[i], band.loops[j]
            broken = _structural(program, path, band, i, j)
            if broken is None:
                flat = flat or in_one_header(program, path)
                broken = _verdict(flat, path, first, second)
            site = Site.of(self.name, path, first=first.index, second=second.index)
            if broken is None:
                broken = fault(self.apply(program, site))
            yield site if broken is None else Refusal(self.name, path, *broken)

    def keeps_instances(self, site: Site) -> bool:
        """True: the loops run over the same values in another order."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Exchange the two loops; headers keep their lengths."""
        band = band_at(program, site.path)
        i, j = _places(band, site)
        loops = list(band.loops)
        loops[i], loops[j] = loops[j], loops[i]
        return signed_with(program, site.path, band.nest(tuple(loops)))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The two loops, what hardware and memory ask of them, and the verdict on dependences."""
        path = site.path
        band = band_at(before, path)
        first, second = (band.loops[k] for k in _places(band, site))
        inner = path + (0,) * _depth(band, site)
        verdict = can_interchange(in_one_header(before, path), path, first.index, second.index)
        extents = tuple(
            before_fact("loop_extent", where, loop.index, value=loop.extent)
            for where, loop in ((path, first), (inner, second))
        )
        kinds = tuple(
            before_fact("loop_kind", where, loop.index, value=loop.kind)
            for where, loop in ((path, first), (inner, second))
        )
        exchange = before_fact("interchange", path, first.index, second.index, value=str(verdict))
        launches = after_fact("launch_loops", path, value=launch_loops(after, path))
        new = loops_inside(nest_at(after.program, path), second.index)
        return Explanation(
            state=(*extents, *kinds),
            preconditions=(
                evidence("order-immaterial", *extents, *kinds),
                evidence(
                    "launches-multiplied",
                    before_fact("launch_loops", path, value=launch_loops(before, path)),
                    launches,
                ),
                evidence(
                    "private-state",
                    before_fact("private_tensors", path, value=private_tensors(before, path)),
                    launches,
                ),
                evidence("vector-not-innermost", *kinds),
                evidence("dependence-reversed", exchange),
                evidence("dependence-unknown", exchange),
            ),
            decision=(
                after_fact(
                    "loops_inside",
                    path,
                    second.index,
                    value=tuple(loop.index for loop in new),
                ),
            ),
            transition=transition(before, after),
            soundness_rule=(
                "order-kept-where-it-matters"
                if verdict == "exact"
                else "accumulation-in-another-order"
            ),
            soundness=(exchange,),
            effect=effects(before, after),
        )


def _places(band: Band, site: Site) -> tuple[int, int]:
    indices = [loop.index for loop in band.loops]
    return indices.index(site.text("first")), indices.index(site.text("second"))


def _depth(band: Band, site: Site) -> int:
    """How many headers below the first one the second loop stands."""
    place, depth = _places(band, site)[1], 0
    for size in band.sizes:
        if place < size:
            break
        place -= size
        depth += 1
    return depth


def _structural(
    program: SignedProgram, path: Path, band: Band, i: int, j: int
) -> tuple[str, str] | None:
    """What kinds and extents of the loops forbid, as reason and message."""
    first, second = band.loops[i], band.loops[j]
    names = f"loops {first.index} and {second.index}"
    bound = [loop.axis is not None for loop in band.loops[i : j + 1]]
    if 1 in (first.extent, second.extent):
        return "order-immaterial", f"one of {names} runs once, so their order means nothing"
    if bound[0] and bound[-1]:
        return "order-immaterial", f"{names} are both bound, so the hardware orders them"
    inside = _inside_a_kernel(program, path, band, i, j)
    if any(bound[:-1]) and not bound[-1] and not inside:
        return (
            "launches-multiplied",
            f"loop {second.index} would stand around a bound loop and launch it again and again",
        )
    if second.kind == "V" or first.kind == "V":
        return "vector-not-innermost", f"one of {names} is vectorised and would not stay innermost"
    if any(bound) and not inside and (private := private_tensors(program, path)):
        return (
            "private-state",
            f"{private[0]} is private to a thread or block of each launch, and exchanging {names}"
            " changes what a launch is",
        )
    return None


def _inside_a_kernel(program: SignedProgram, path: Path, band: Band, i: int, j: int) -> bool:
    """Whether the launches stay: the bound loops that move are threads', with one outside them."""
    outside = (*loops_around(program.program, path), *band.loops[:i])
    moving = [loop.axis for loop in band.loops[i : j + 1] if loop.axis is not None]
    return all(axis in THREAD_AXES for axis in moving) and any(loop.axis for loop in outside)


def _verdict(flat: SignedProgram, path: Path, first: Loop, second: Loop) -> tuple[str, str] | None:
    found = can_interchange(flat, path, first.index, second.index)
    names = f"loops {first.index} and {second.index}"
    if found == "illegal":
        return (
            "dependence-reversed",
            f"exchanging {names} would let an element be read or written the wrong way round",
        )
    if found == "unknown":
        return "dependence-unknown", f"it cannot be decided whether {names} may be exchanged"
    return None
