"""loop_split: strip-mine one loop into an outer and an inner one."""

from collections.abc import Iterator

from steptp_dagster.leir.ast import (
    Compare,
    Equation,
    Index,
    Int,
    Loop,
    Nest,
    Statement,
)
from steptp_dagster.leir.printer import expr_text, loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    all_nests,
    equations_in,
    expressions,
    loops_around,
    nests_in,
)
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
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
from steptp_dagster.strategies.splitting import Split, forms, split_at


class LoopSplit(Strategy):
    """Split a loop of extent n into an outer loop and an inner loop of ``factor`` iterations.

    The index ``i`` becomes ``outer*factor+i`` in every subscript, condition and value; the inner
    loop keeps the name and the start of the loop, the outer one gets a fresh name. Where the
    factor does not divide n (``tail=guard``), the equations run under the guard that the sum
    stays below the old end.

    Kinds: ``L`` gives L, L; ``U`` gives L, U; ``V`` gives L, V (never with a tail); ``P`` gives
    P, L. A loop bound to a thread axis becomes a block and a thread loop (``outer=bx, inner=tx``)
    or a thread loop with a serial loop inside the bound ones (``outer=tx, inner=L``); one bound
    to a block axis becomes a block and a thread loop, or a block loop with a serial one inside.
    So no serial loop comes to stand around a bound one.

    Factors: all proper divisors (eight spread over them where there are more), and tile sizes
    2, 3, 4, 8, 16, ... below n that do not divide it.

        === example
        --- before
        # input A f32[2,6]
        # input C f32[6]
        # output D f32[2,6]
        B^{2}_{tx=0}L^{6}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}+C^{f32,g}_{a};];
        --- site statement 1: factor=3, inner=L, loop=a, outer=L, tail=exact
        --- after
        B^{2}_{tx=0}L^{2}_{c=0}L^{3}_{a=0}[
          D^{f32,g}_{tx,c*3+a}=A^{f32,g}_{tx,c*3+a}+C^{f32,g}_{c*3+a};];
        --- numerics exact
    """

    name = "loop_split"
    level = "operator"
    version = "1"
    summary = "Strip-mines one loop into an outer and an inner loop."
    preconditions = (
        "extent-without-factor",
        "tail-uncovered",
        "index-name-taken",
        "guard-reads-tensor",
        "axis-taken",
        "axis-shared",
        "bound-reduction",
        "private-state",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every loop with every factor, in text order; refusals per loop and reason."""
        sites: list[Site] = []
        refusals: dict[tuple[Path, str, str], Refusal] = {}
        for path, nest in all_nests(program.program):
            for loop in nest.loops:
                for found in self._candidates(program, path, nest, loop):
                    if isinstance(found, Site):
                        sites.append(found)
                    else:
                        refusals.setdefault((path, loop.index, found.reason), found)
        return Survey(tuple(sites), tuple(refusals.values()))

    def _candidates(
        self, program: SignedProgram, path: Path, nest: Nest, loop: Loop
    ) -> Iterator[Site | Refusal]:
        factors = [(f, "exact") for f in exact_factors(loop.extent)]
        if loop.kind != "V":
            factors += [(f, "guard") for f in tail_factors(loop.extent)]
        elif tail_factors(loop.extent):
            yield self._refuse(
                path, "tail-uncovered", f"the lanes of loop {loop.index} cannot be guarded apart"
            )
        if not factors:
            yield self._refuse(
                path,
                "extent-without-factor",
                f"loop {loop.index} of extent {loop.extent} has no factor between 1 and its extent",
            )
            return
        if guards_read_tensors(nest) and any(tail == "guard" for _, tail in factors):
            yield self._refuse(
                path,
                "guard-reads-tensor",
                f"a guard inside loop {loop.index} reads a tensor, which a tail guard would not"
                " keep from being read past the end",
            )
            factors = [(f, tail) for f, tail in factors if tail == "exact"]
        for outer, inner in forms(loop):
            refusal = self._form_refusal(program, path, nest, loop, outer, inner)
            if refusal is not None:
                yield refusal
                continue
            for factor, tail in factors:
                site = Site.of(
                    self.name,
                    path,
                    loop=loop.index,
                    factor=factor,
                    tail=tail,
                    outer=outer,
                    inner=inner,
                )
                broken = fault(self.apply(program, site))
                yield site if broken is None else self._refuse(path, *broken)

    def _form_refusal(
        self, program: SignedProgram, path: Path, nest: Nest, loop: Loop, outer: str, inner: str
    ) -> Refusal | None:
        if loop.axis is None:
            return None
        for axis in (a for a in (outer, inner) if a not in (loop.axis, "L")):
            if axis in _axes_with(program, path):
                return self._refuse(
                    path, "axis-taken", f"axis {axis} is already in use around or inside the nest"
                )
        if inner != "L" and _loops_on(program, path, loop.axis) > 1:
            return self._refuse(
                path, "axis-shared", f"another loop of the kernel runs on the same {loop.axis}"
            )
        reductions = _reductions_over(program, path, loop.index)
        if reductions and outer != loop.axis:
            return self._refuse(
                path,
                "bound-reduction",
                f"loop {loop.index} is a reduction loop, which blocks cannot share",
            )
        if inner == "L":
            for name in _private_tensors(nest, loop.index):
                return self._refuse(
                    path,
                    "private-state",
                    f"{name} is private to a thread or block and not told apart by {loop.index},"
                    " so the iterations that one thread would run in turn would share it",
                )
        return None

    def _refuse(self, path: Path, reason: str, message: str) -> Refusal:
        return Refusal(self.name, path, reason, message)

    def keeps_instances(self, site: Site) -> bool:
        """True: the two indices together take every value of the old one once."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace the loop in the header and its index in the body."""
        nest = nest_at(program.program, site.path)
        plan = split_at(program, site)
        sum_ = plan.index
        body: tuple[Statement, ...] = tuple(
            map_indices(statement, {plan.loop.index: sum_}) for statement in nest.body
        )
        if plan.tail:
            condition = Compare((sum_, Int(plan.loop.start + plan.loop.extent)), ("<",))
            body = tuple(guarded(statement, condition) for statement in body)
        return signed_with(program, site.path, Nest(plan.header(nest.loops), body))

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """Those about guards with a tail only, those about axes for bound loops only."""
        return _shown(site)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The loop, the numbers that make up its extent, and what bound loops need besides."""
        plan = split_at(before, site)
        path, n, f, parts = site.path, plan.loop.extent, plan.factor, plan.outer.extent
        known = _evidence(before, site, plan)
        order = (
            pair("product", parts, f, value=parts * f),
            before_fact("trip_count", path, value=_trips(before, path)),
            after_fact("trip_count", path, value=_trips(after, path)),
        )
        reductions = _reductions_over(before, path, plan.loop.index) if plan.loop.axis else ()
        rule = _rule(reductions)
        return Explanation(
            state=(
                before_fact("loop_extent", path, plan.loop.index, value=n),
                before_fact("loop_kind", path, plan.loop.index, value=plan.loop.kind),
                before_fact("loop_start", path, plan.loop.index, value=plan.loop.start),
            ),
            preconditions=tuple(Evidence(name, known[name].facts) for name in _shown(site)),
            decision=(
                after_fact("loop_extent", path, plan.outer.index, value=parts),
                after_fact("loop_kind", path, plan.outer.index, value=plan.outer.kind),
                after_fact("loop_extent", path, plan.inner.index, value=f),
                after_fact("loop_kind", path, plan.inner.index, value=plan.inner.kind),
            ),
            transition=transition(before, after),
            soundness_rule=rule,
            soundness=order,
            effect=effects(before, after),
        )


def _shown(site: Site) -> tuple[str, ...]:
    names = ["extent-without-factor", "tail-uncovered", "index-name-taken"]
    if site.text("tail") == "guard":
        names.append("guard-reads-tensor")
    if site.text("outer")[0] in "bt":
        names.append("axis-taken")
        names += ["bound-reduction", "private-state"]
        if site.text("inner") != "L":
            names[-2:] = ["axis-shared", "bound-reduction"]
    return tuple(names)


def _evidence(before: SignedProgram, site: Site, plan: Split) -> dict[str, Evidence]:
    path, n, f = site.path, plan.loop.extent, plan.factor
    around = tuple(loop.index for loop in loops_around(before.program, path))
    own = tuple(loop.index for loop in nest_at(before.program, path).loops)
    names = before_fact("loops_around", path, value=around + own)
    covered = [pair("divides", n, f, value=n % f == 0)]
    if plan.tail:
        covered.append(pair("remainder", n, f, value=n % f))
    guards = [
        before_fact("guard_text", located.path, value=_guard_text(located.equation))
        for located in equations_in(nest_at(before.program, path), path)
    ]
    updates = [
        before_fact("reduction_loops", where, value=loops)
        for where, loops in _reduction_loops(before, path)
    ]
    writes = before_fact("writes", path, value=_written(before, path))
    return {
        "extent-without-factor": evidence(
            "extent-without-factor",
            before_fact("loop_extent", path, plan.loop.index, value=n),
            pair("at_most", f, n - 1, value=True),
        ),
        "tail-uncovered": evidence("tail-uncovered", *covered),
        "index-name-taken": evidence("index-name-taken", names),
        "guard-reads-tensor": evidence("guard-reads-tensor", *guards),
        "axis-taken": evidence("axis-taken", names),
        "axis-shared": evidence("axis-shared", _kernel_loops(before, path)),
        "bound-reduction": evidence("bound-reduction", *(updates or [names])),
        "private-state": evidence("private-state", writes),
    }


def _guard_text(equation: Equation) -> str:
    return "" if equation.guard is None else expr_text(equation.guard)


def _axes_with(program: SignedProgram, path: Path) -> frozenset[str]:
    """Axes of the loops around the nest at ``path``, of its own, and of those inside it."""
    loops = list(loops_around(program.program, path))
    for _, nest in nests_in(nest_at(program.program, path)):
        loops += nest.loops
    return frozenset(loop.axis for loop in loops if loop.axis is not None)


def _loops_on(program: SignedProgram, path: Path, axis: str) -> int:
    """How many loops of the top-level nest around ``path`` run on a hardware axis."""
    return sum(
        loop.axis == axis
        for _, nest in nests_in(program.program.nests[path[0]])
        for loop in nest.loops
    )


def _kernel_loops(program: SignedProgram, path: Path) -> Fact:
    top = path[:1]
    return before_fact("loops_text", top, value=loops_text(nest_at(program.program, top).loops))


def _reduction_loops(
    program: SignedProgram, path: Path
) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """Pure updates in the nest at ``path`` with their reduction loops."""
    return tuple(
        (where, update.reduction_loops)
        for where, update in classify(program).items()
        if where[: len(path)] == path and update.kind == "update"
    )


def _reductions_over(program: SignedProgram, path: Path, index: str) -> tuple[str, ...]:
    """Operations of the updates in the nest at ``path`` that reduce over the loop ``index``."""
    return tuple(
        update.op or ""
        for where, update in classify(program).items()
        if where[: len(path)] == path
        and update.kind == "update"
        and index in update.reduction_loops
    )


def _rule(reductions: tuple[str, ...]) -> str:
    if any(op in "+*" for op in reductions):
        return "associativity-up-to-rounding"
    return "exact-associativity" if reductions else "strip-mining"


def _private_tensors(nest: Nest, index: str) -> tuple[str, ...]:
    """Local and shared tensors in the nest that no dimension tells apart by ``index``."""
    bare: dict[str, set[int]] = {}
    for located in equations_in(nest):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                if access.scope != "g":
                    dims = {
                        d
                        for d, subscript in enumerate(access.subscripts)
                        if subscript == Index(index)
                    }
                    bare[access.name] = bare.get(access.name, dims) & dims
    return tuple(sorted(name for name, dims in bare.items() if not dims))


def _written(program: SignedProgram, path: Path) -> tuple[str, ...]:
    nest = nest_at(program.program, path)
    names = (located.equation.target.name for located in equations_in(nest, path))
    return tuple(dict.fromkeys(names))


def _trips(program: SignedProgram, path: Path) -> int:
    loops = loops_around(program.program, path) + nest_at(program.program, path).loops
    count = 1
    for loop in loops:
        count *= loop.extent
    return count
