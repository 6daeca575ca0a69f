"""loop_tiling: cut two neighbouring loops into tiles."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import Final

from steptp_dagster.leir.ast import Binary, Compare, Expr, Index, Int, Loop, Nest
from steptp_dagster.leir.dependence import can_interchange
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, all_nests, equations_in, fresh_indices, index_names
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import loop_of, loops_fact, trips
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import (
    exact_factors,
    guarded,
    guards_read_tensors,
    map_indices,
    nest_at,
    signed_with,
    tail_factors,
)

#: Most tile sizes per loop that divide its extent, and that do not.
MOST_EXACT: Final = 3
MOST_TAILS: Final = 1


class LoopTiling(Strategy):
    """Cut two neighbouring serial loops of n and m iterations into tiles of f times g.

    Two outer loops go over the tiles, two inner ones through each tile; these keep the names and
    starts. An index ``i`` becomes ``outer*f+i`` in every subscript, condition and value. Where a
    tile size does not divide its extent, the equations run under the guard that the sum stays
    below the old end. Loops that accumulate are tiled too, which gives blocked matrix products.

    The two loops must be exchangeable, since the tiles of the second loop come to stand outside
    the iterations of the first one.

        === example
        --- before
        # input A f32[2,4,6]
        # output D f32[2,4,6]
        B^{2}_{tx=0}L^{4}_{a=0}L^{6}_{c=0}[D^{f32,g}_{tx,a,c}=A^{f32,g}_{tx,a,c}*2;];
        --- site statement 1: first=a, height=2, second=c, width=2
        --- after
        B^{2}_{tx=0}L^{2}_{d=0}L^{3}_{f=0}L^{2}_{a=0}L^{2}_{c=0}[
          D^{f32,g}_{tx,d*2+a,f*2+c}=A^{f32,g}_{tx,d*2+a,f*2+c}*2;];
        --- numerics exact
    """

    name = "loop_tiling"
    level = "operator"
    version = "1"
    summary = "Cuts two neighbouring loops into tiles."
    preconditions = (
        "extent-without-tile",
        "dependence-reversed",
        "dependence-unknown",
        "guard-reads-tensor",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every two serial neighbours in a header with every pair of tile sizes."""
        sites: list[Site] = []
        refusals: dict[tuple[Path, str, str], Refusal] = {}
        for path, nest in all_nests(program.program):
            for first, second in pairwise(nest.loops):
                if first.kind != "L" or second.kind != "L":
                    continue
                for found in self._candidates(program, path, first, second):
                    if isinstance(found, Site):
                        sites.append(found)
                    else:
                        refusals.setdefault((path, first.index, found.reason), found)
        return Survey(tuple(sites), tuple(refusals.values()))

    def _candidates(
        self, program: SignedProgram, path: Path, first: Loop, second: Loop
    ) -> Iterator[Site | Refusal]:
        sizes = [_sizes(loop.extent) for loop in (first, second)]
        for loop, found in zip((first, second), sizes, strict=True):
            if not found:
                yield self._refuse(
                    path,
                    "extent-without-tile",
                    f"loop {loop.index} of extent {loop.extent} has no tile size",
                )
                return
        broken = _verdict(program, path, first, second)
        if broken is not None:
            yield self._refuse(path, *broken)
            return
        tails = not guards_read_tensors(nest_at(program.program, path))
        for height, width in product(*sizes):
            if not tails and (first.extent % height or second.extent % width):
                yield self._refuse(
                    path,
                    "guard-reads-tensor",
                    f"a guard inside loop {second.index} reads a tensor, which a tail guard would"
                    " not keep from being read past the end",
                )
                continue
            site = Site.of(
                self.name,
                path,
                first=first.index,
                second=second.index,
                height=height,
                width=width,
            )
            broken = fault(self.apply(program, site))
            yield site if broken is None else self._refuse(path, *broken)

    def _refuse(self, path: Path, reason: str, message: str) -> Refusal:
        return Refusal(self.name, path, reason, message)

    def keeps_instances(self, site: Site) -> bool:
        """True: tiles and places within them together take every pair of values once."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace the two loops by four, and their indices in the body."""
        path = site.path
        nest = nest_at(program.program, path)
        first, second = _cuts(program, site)
        place = [loop.index for loop in nest.loops].index(first.loop.index)
        loops = (
            *nest.loops[:place],
            first.outer,
            second.outer,
            first.inner,
            second.inner,
            *nest.loops[place + 2 :],
        )
        by = {cut.loop.index: cut.sum for cut in (first, second)}
        body = tuple(map_indices(statement, by) for statement in nest.body)
        for cut in (second, first):  # each guard goes in front of what is there
            if cut.tail:
                body = tuple(guarded(statement, cut.condition) for statement in body)
        return signed_with(program, path, Nest(loops, body))

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """All of them: whether a tail needs guards shows in the evidence."""
        if site.strategy != self.name:
            raise ValueError(f"a site of {site.strategy}, not of {self.name}")
        return self.preconditions

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The two loops, their tile sizes, and that they may be exchanged."""
        path = site.path
        cuts = _cuts(before, site)
        verdict = can_interchange(before, path, *(cut.loop.index for cut in cuts))
        exchange = before_fact(
            "interchange", path, *(cut.loop.index for cut in cuts), value=str(verdict)
        )
        extents = tuple(
            before_fact("loop_extent", path, cut.loop.index, value=cut.loop.extent) for cut in cuts
        )
        fits = tuple(
            pair("at_most", cut.size, cut.loop.extent - 1, value=cut.size < cut.loop.extent)
            for cut in cuts
        )
        covered = tuple(
            pair("divides", cut.loop.extent, cut.size, value=not cut.tail) for cut in cuts
        )
        guards = tuple(
            before_fact("guard_text", one.path, value=_guard(one.equation.guard))
            for one in equations_in(nest_at(before.program, path), path)
        )
        return Explanation(
            state=(
                loops_fact(before, path),
                *extents,
                *(
                    before_fact("loop_kind", path, cut.loop.index, value=cut.loop.kind)
                    for cut in cuts
                ),
            ),
            preconditions=(
                evidence("extent-without-tile", *extents, *fits),
                evidence("dependence-reversed", exchange),
                evidence("dependence-unknown", exchange),
                evidence("guard-reads-tensor", *covered, *guards),
            ),
            decision=tuple(
                after_fact("loop_extent", path, loop.index, value=loop.extent)
                for loop in (*(cut.outer for cut in cuts), *(cut.inner for cut in cuts))
            ),
            transition=transition(before, after),
            soundness_rule=(
                "order-kept-where-it-matters"
                if verdict == "exact"
                else "accumulation-in-another-order"
            ),
            soundness=(
                exchange,
                before_fact("trip_count", path, value=trips(before, path)),
                after_fact("trip_count", path, value=trips(after, path)),
            ),
            effect=effects(before, after),
        )


@dataclass(frozen=True, slots=True)
class _Cut:
    """A loop, its tile size, and the index of the loop over its tiles."""

    loop: Loop
    size: int
    index: str

    @property
    def tail(self) -> bool:
        return self.loop.extent % self.size != 0

    @property
    def outer(self) -> Loop:
        return Loop("L", self.index, -(-self.loop.extent // self.size))

    @property
    def inner(self) -> Loop:
        return Loop("L", self.loop.index, self.size, self.loop.start)

    @property
    def sum(self) -> Expr:
        tile = Binary("*", Index(self.index), Int(self.size))
        return Binary("+", tile, Index(self.loop.index))

    @property
    def condition(self) -> Expr:
        return Compare((self.sum, Int(self.loop.start + self.loop.extent)), ("<",))


def _cuts(program: SignedProgram, site: Site) -> tuple[_Cut, _Cut]:
    """What a site asks for."""
    used = index_names(program.program.nests[site.path[0]])
    outer, other = islice(fresh_indices(used), 2)
    first = loop_of(program, site.path, site.text("first"))
    second = loop_of(program, site.path, site.text("second"))
    return (
        _Cut(first, site.integer("height"), outer),
        _Cut(second, site.integer("width"), other),
    )


def _sizes(extent: int) -> tuple[int, ...]:
    """Tile sizes to offer: the smallest, a middle and the largest divisor, and the largest tail.

    The tail is the largest usual tile size that does not divide and is at most half the extent,
    so that there are at least two whole tiles, or the smallest one where there is none.
    """
    exact = exact_factors(extent)
    if len(exact) > MOST_EXACT:
        exact = (exact[0], exact[len(exact) // 2], exact[-1])
    tails = tail_factors(extent)
    half = [f for f in tails if 2 * f <= extent]
    return tuple(sorted({*exact, *((half or list(tails))[-MOST_TAILS:])}))


def _verdict(
    program: SignedProgram, path: Path, first: Loop, second: Loop
) -> tuple[str, str] | None:
    found = can_interchange(program, path, first.index, second.index)
    names = f"loops {first.index} and {second.index}"
    if found == "illegal":
        return (
            "dependence-reversed",
            f"tiles of {names} would let an element be read or written the wrong way round",
        )
    if found == "unknown":
        return "dependence-unknown", f"it cannot be decided whether {names} may be exchanged"
    return None


def _guard(guard: Expr | None) -> str:
    return "" if guard is None else expr_text(guard)
