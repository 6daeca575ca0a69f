"""cache_read_write: keep what a nest uses again and again in local or shared memory."""

from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import BLOCK_AXES, THREAD_AXES, Expr, Loop
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, indices_in
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.cache_evidence import explain_read, explain_write
from steptp_dagster.strategies.cache_points import (
    NO_LOOP,
    Point,
    point_at,
    points,
    reads_below,
    region,
)
from steptp_dagster.strategies.cache_rewrite import (
    NoExpression,
    identity_of,
    read_cache,
    write_cache,
)
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.legality import fault

_ALWAYS: Final = (
    "not-global",
    "inside-parallel-loop",
    "threads-misplaced",
    "no-reuse",
    "cache-too-large",
)
_READ: Final = ("written-in-nest", "no-common-region")
_WRITE: Final = (
    "not-alone",
    "reduction-outside",
    "rows-overlap",
    "guarded-by-reduction",
    "no-identity",
)
_LOCAL_PLACE: Final = "a cache in local memory has to stand in a loop and below all that are bound"
_SHARED_PLACE: Final = (
    "a cache in shared memory stands above the loops bound to threads and below those to blocks"
)


class CacheReadWrite(Strategy):
    """Copy a region of a global tensor into ``l`` or ``s``, or accumulate in ``l``; in one nest.

    * ``direction=read`` copies the box of a tensor that is read below a point of a nest and reads
      the copy there, in local coordinates. With ``scope=l`` the point lies below all bound loops
      and every thread copies for itself; with ``scope=s`` it lies above all thread loops and the
      threads of the block copy together, in sibling loops on the same axes. Where the box may
      leave the tensor, the copy is guarded.
    * ``direction=write`` turns an update into an accumulation in thread-private memory, stored
      once at the end. The reduction loops lie below the point, all bound loops above it.

    ``under`` names the loop right above the point (``-``: before the loops of the nest). A cache
    has the dtype of its tensor, so all values stay bit for bit. Only what pays is offered: a copy
    is read more often than it is made, an accumulator is updated more than once.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[4,3]
        # output D f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- site statement 1: direction=write, scope=l, tensor=D, under=a
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[
          E^{f32,l}=0;
          L^{4}_{c=0}[E^{f32,l}=E^{f32,l}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
          D^{f32,g}_{tx,a}=E^{f32,l};];
        --- numerics exact
    """

    name = "cache_read_write"
    level = "memory"
    version = "1"
    summary = "Copies a reused region into local or shared memory, or accumulates in local memory."
    preconditions = (*_ALWAYS, *_READ, *_WRITE)

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """Those of every cache, and those of its direction."""
        own = _READ if site.text("direction") == "read" else _WRITE
        return tuple(p for p in super().preconditions_at(site) if p in (*_ALWAYS, *own))

    def survey(self, program: SignedProgram) -> Survey:
        """Every point with every tensor and scope; refusals once per nest, reason and words."""
        sites: list[Site] = []
        refusals: dict[Refusal, None] = {}
        for point in points(program.program):
            for found in (*self._reads(program, point), *self._writes(program, point)):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.setdefault(found)
        return Survey(tuple(sites), tuple(refusals))

    def _reads(self, program: SignedProgram, point: Point) -> Iterator[Site | Refusal]:
        uses = Analysis.of(program).accesses.under(point.path)
        for tensor in dict.fromkeys(
            use.tensor
            for use in uses
            if not use.write and use.tensor != use.statement.equation.target.name
        ):
            for scope in ("l", "s"):
                objection = _misplaced(point, scope) or read_objection(program, point, tensor)
                site = Site.of(
                    self.name,
                    point.path,
                    direction="read",
                    scope=scope,
                    tensor=tensor,
                    under=point.under,
                )
                yield self._offered(program, site, objection)

    def _writes(self, program: SignedProgram, point: Point) -> Iterator[Site | Refusal]:
        if not point.depth:
            return  # before all loops an accumulator would serve one visit only
        update = update_below(program, point)
        if update is None:
            for tensor in shared_updates(program, point):
                message = f"other equations run beside the update of {tensor}"
                yield Refusal(self.name, point.path, "not-alone", message)
            return
        tensor = Analysis.of(program).accesses.statement_at[update].equation.target.name
        objection = write_objection(program, point, update)
        site = Site.of(
            self.name,
            point.path,
            direction="write",
            scope="l",
            tensor=tensor,
            under=point.under,
        )
        yield self._offered(program, site, objection)

    def _offered(
        self, program: SignedProgram, site: Site, objection: tuple[str, str] | None
    ) -> Site | Refusal:
        """The site, unless something speaks against it or its result would not be legal."""
        if objection is None:
            try:
                objection = _as_reason(site, fault(self.apply(program, site)))
            except NoExpression as error:
                objection = "no-common-region", f"a subscript cannot be written: {error}"
        return site if objection is None else Refusal(self.name, site.path, *objection)

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Insert the cache at the site's point."""
        point = point_at(program.program, site.path, site.text("under"))
        if site.text("direction") == "read":
            tensor = site.text("tensor")
            found = region(program, point, tensor)
            if isinstance(found, str):
                raise ValueError(f"no such site in this program: {found}")
            return read_cache(program, point, found.uses[0].access, site.text("scope"), found)
        update = update_below(program, point)
        if update is None:
            raise ValueError(f"no such site in this program: {site.describe()}")
        return write_cache(program, point, update, _start(program, update))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show reuse, room and threads, and that the tensor is not touched meanwhile."""
        point = point_at(before.program, site.path, site.text("under"))
        if site.text("direction") == "read":
            return explain_read(before, after, point, site)
        update = update_below(before, point)
        if update is None:
            raise ValueError(f"no such site in this program: {site.describe()}")
        return explain_write(before, after, point, update)


def _as_reason(site: Site, found: tuple[str, str] | None) -> tuple[str, str] | None:
    """A fault of the result by the precondition that it breaks.

    Over the limits means that the cache has no room; before all loops of a nest, any other fault
    that the block loop made for the cache does not fit around the nest.
    """
    if found is None:
        return None
    if found[0] == "result-over-limits":
        return "cache-too-large", found[1]
    if len(site.path) == 1 and site.text("under") == NO_LOOP:
        return "threads-misplaced", f"no block loop fits around the nest: {found[1]}"
    return found


def _misplaced(point: Point, scope: str) -> tuple[str, str] | None:
    """Whether the point lies where caches of this scope cannot be, judged by the loops' axes."""
    below = {loop.axis for loop in point.loops_below() if loop.axis is not None}
    above = {loop.axis for loop in point.above if loop.axis is not None}
    if scope == "l":
        return None if point.above and not below else ("threads-misplaced", _LOCAL_PLACE)
    fits = bool(below) and below <= set(THREAD_AXES) and above <= set(BLOCK_AXES)
    return None if fits else ("threads-misplaced", _SHARED_PLACE)


def read_objection(program: SignedProgram, point: Point, tensor: str) -> tuple[str, str] | None:
    """Why a region of the tensor cannot be cached at the point: reason and words, or None."""
    uses = reads_below(program, point, tensor)
    if any(use.access.scope != "g" for use in uses):
        return "not-global", f"{tensor} is not in global memory"
    side_by_side = _parallel(point.above)
    if side_by_side is not None:
        return "inside-parallel-loop", side_by_side
    writes = Analysis.of(program).accesses.writes.get(tensor, [])
    if any(use.statement.path[0] == point.path[0] for use in writes):
        return "written-in-nest", f"{tensor} is written in the nest that reads it"
    found = region(program, point, tensor)
    if isinstance(found, str):
        return "no-common-region", found
    if found.reads <= found.elements:
        place = "before all loops" if point.under == NO_LOOP else f"under {point.under}"
        return (
            "no-reuse",
            f"the copy of {tensor} {place} would hold {found.elements} elements and be read"
            f" {found.reads} times",
        )
    return None


def _equations_below(program: SignedProgram, point: Point) -> list[Path]:
    count = len(point.path)
    statements = Analysis.of(program).accesses.statements
    return [s.path for s in statements if s.path[:count] == point.path]


def update_below(program: SignedProgram, point: Point) -> Path | None:
    """The path of the update that alone stands below a point, or None."""
    below = _equations_below(program, point)
    return below[0] if len(below) == 1 and reduction_of(program, below[0]) else None


def shared_updates(program: SignedProgram, point: Point) -> tuple[str, ...]:
    """Global tensors updated below a point, their reductions with it, beside other equations."""
    below = _equations_below(program, point)
    above = {loop.index for loop in point.above}
    found = []
    for path in below if len(below) > 1 else ():
        reduction = reduction_of(program, path)
        target = Analysis.of(program).accesses.statement_at[path].equation.target
        if reduction and not reduction & above and target.scope == "g":
            found.append(target.name)
    return tuple(dict.fromkeys(found))


def reduction_of(program: SignedProgram, path: Path) -> frozenset[str]:
    """The loops of more than one iteration over which a pure update accumulates."""
    analysis = Analysis.of(program)
    if analysis.updates[path].kind != "update":
        return frozenset()
    wide = {ref.name for ref in analysis.accesses.statement_at[path].chain if ref.loop.extent > 1}
    return frozenset(analysis.updates[path].reduction_loops) & wide


def write_objection(program: SignedProgram, point: Point, path: Path) -> tuple[str, str] | None:
    """Why the update cannot accumulate in local memory at the point, or None."""
    analysis = Analysis.of(program)
    statement, update = analysis.accesses.statement_at[path], analysis.updates[path]
    target = statement.equation.target
    if target.scope != "g":
        return "not-global", f"{target.name} is not in global memory"
    side_by_side = _parallel(point.above)
    if side_by_side is not None:
        return "inside-parallel-loop", side_by_side
    if any(loop.axis is not None for loop in point.loops_below()):
        return "threads-misplaced", f"loops below {point.under} are bound to threads"
    below = statement.chain[len(point.above) :]
    inner = {ref.name for ref in below}
    if not reduction_of(program, path) <= inner:
        return "reduction-outside", f"{target.name} is also accumulated outside {point.under}"
    wide = {ref.name for ref in statement.chain if ref.loop.extent > 1}
    if set(update.repeating_loops) & wide != reduction_of(program, path):
        return "rows-overlap", f"several rows share an element of {target.name}"
    guard = statement.equation.guard
    if guard is not None and indices_in(guard) & set(update.reduction_loops):
        return "guarded-by-reduction", "the guard depends on a reduction loop"
    if update.init == "identity" and _start(program, path) is None:
        return "no-identity", f"no literal starts {update.op} in {target.dtype}"
    return None


def _start(program: SignedProgram, path: Path) -> Expr | None:
    """The literal from which the accumulator starts; None where it is loaded or there is none."""
    analysis = Analysis.of(program)
    update = analysis.updates[path]
    if update.init != "identity" or update.op is None:
        return None
    dtype = DTYPES[analysis.accesses.statement_at[path].equation.target.dtype]
    return identity_of(update.op, dtype.is_float)


def _parallel(loops: tuple[Loop, ...]) -> str | None:
    for loop in loops:
        if loop.kind in ("P", "V"):
            return f"iterations of loop {loop.index} of kind {loop.kind} would share the cache"
    return None
