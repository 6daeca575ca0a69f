"""reduction_factorization: reduce in parts and combine the partial results."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import Binary, Compare, Equation, Expr, Index, Int, Loop, Statement
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import equations, loops_around
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.definitions import Problem
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.reductions import (
    Reduction,
    apply_op,
    identity,
    in_place_of,
    nested,
    partial_access,
    reduction_at,
    started,
    with_indices,
)
from steptp_dagster.strategies.rewrite import (
    exact_factors,
    fresh_index,
    new_tensor_names,
    signed_with,
    tail_factors,
)

#: Most tile sizes with a tail that are offered for one loop.
MOST_TAILS: Final = 4


class ReductionFactorization(Strategy):
    """Split a reduction into partial reductions, combined in an equation of their own.

    ``form=cut``: the loop runs in two halves, ``at`` iterations and the rest, each into a
    partial result; the combining equation stands under the loops that do not reduce, and keeps
    the old value where the update continued one.
    ``form=rfactor``: the loop is split by ``factor`` (with a guard where it does not divide the
    extent); the outer part becomes a dimension of one partial result, which a second, shorter
    reduction combines. The outer part is a serial loop, or the block axis where the reduction
    is bound to a thread axis.

    All other reduction loops stay in the partial reductions and are absent from the combining
    one of a cut. Partial results have the type in which the update is evaluated (f32 for f16).
    ``max`` and ``min`` and integers are exact; ``+`` and ``*`` of floats equal up to rounding.

        === example
        --- before
        # input A f32[2,5,3]
        # output D f32[2]
        B^{2}_{tx=0}L^{5}_{a=0}L^{3}_{c=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a,c};];
        --- site statement 1.1: at=2, form=cut, loop=a
        --- after
        B^{2}_{tx=0}L^{2}_{a=0}L^{3}_{c=0}[C^{f32,g}_{tx}=C^{f32,g}_{tx}+A^{f32,g}_{tx,a,c};];
        B^{2}_{tx=0}L^{3}_{a=0}L^{3}_{c=0}[E^{f32,g}_{tx}=E^{f32,g}_{tx}+A^{f32,g}_{tx,a+2,c};];
        B^{2}_{tx=0}[D^{f32,g}_{tx}=C^{f32,g}_{tx}+E^{f32,g}_{tx};];
        --- numerics reassociated
    """

    name = "reduction_factorization"
    level = "operator"
    version = "1"
    summary = "Reduces in parts and combines the partial results."
    preconditions = (
        "not-associative",
        "nest-shared",
        "target-repeats",
        "type-mixed",
        "extent-too-small",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every update with every reduction loop, cuts before factors, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        updates = classify(program)
        for located in equations(program.program):
            update = updates[located.path]
            if update.kind == "assignment":
                continue
            found = factorable(program, located.path)
            if isinstance(found, Problem):
                refusals.append(Refusal(self.name, located.path, found.reason, found.message))
                continue
            seen: set[str] = set()
            for candidate in self._candidates(program, found):
                if isinstance(candidate, Site):
                    sites.append(candidate)
                elif candidate.reason not in seen:
                    seen.add(candidate.reason)
                    refusals.append(candidate)
        return Survey(tuple(sites), tuple(refusals))

    def _candidates(self, program: SignedProgram, reduction: Reduction) -> Iterator[Site | Refusal]:
        for loop in reduction.candidates:
            for site in _sites(self.name, program, reduction, loop):
                broken = fault(self.apply(program, site))
                yield site if broken is None else Refusal(self.name, site.path, *broken)

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace the nest of the update by the partial reductions and the combining equation."""
        reduction = factorable(program, site.path)
        if isinstance(reduction, Problem):
            raise ValueError(f"no site of this program: {site.describe()}: {reduction.message}")
        build = _cut if site.text("form") == "cut" else _rfactor
        return signed_with(program, reduction.top, *build(program, reduction, site))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The update, the loop that is shared out, and the partial results."""
        reduction = factorable(before, site.path)
        if isinstance(reduction, Problem):
            raise ValueError(f"no site of this program: {site.describe()}: {reduction.message}")
        path, equation, update = site.path, reduction.equation, reduction.update
        name, index = equation.target.name, site.text("loop")
        extent = next(loop.extent for loop in reduction.loops if loop.index == index)
        part = site.integer("at" if site.text("form") == "cut" else "factor")
        kind = before_fact("update_kind", path, value="update")
        op = before_fact("update_op", path, value=reduction.op)
        over = before_fact("reduction_loops", path, value=update.reduction_loops)
        size = before_fact("loop_extent", path, index, value=extent)
        partials = new_tensor_names(before, 2 if site.text("form") == "cut" else 1)
        known: dict[str, tuple[Fact, ...]] = {
            "not-associative": (kind, op),
            "nest-shared": (before_fact("statements", path[:-1], value=1),),
            "target-repeats": (
                before_fact("target_text", path, value=expr_text(equation.target)),
                over,
            ),
            "type-mixed": (
                before_fact("dtype_of", name, value=equation.target.dtype),
                before_fact("expression_dtype", path, value=reduction.dtype.name),
            ),
            "extent-too-small": (size, pair("at_most", part, extent - 1, value=True)),
        }
        return Explanation(
            state=(
                op,
                over,
                before_fact("update_init", path, value=update.init or ""),
            ),
            preconditions=tuple(Evidence(p, known[p]) for p in self.preconditions_at(site)),
            decision=(
                size,
                *_division(site, extent, part),
                pair("new_tensors", value=partials),
                *(
                    after_fact("dtype_of", partial, value=reduction.dtype.name)
                    for partial in partials
                ),
            ),
            transition=transition(before, after),
            soundness_rule=rule_of(reduction),
            soundness=(op, before_fact("expression_dtype", path, value=reduction.dtype.name)),
            effect=effects(before, after),
        )


@per_program
def factorable(program: SignedProgram, path: tuple[int, ...]) -> Reduction | Problem:
    """The reduction at ``path``, or the first precondition that it fails."""
    update = classify(program)[path]
    if update.kind != "update":
        return Problem(
            "not-associative", f"the equation is no pure update but of kind {update.kind}"
        )
    found = reduction_at(program, path, update)
    if found is None:
        return Problem("nest-shared", "other statements stand beside the update in its loops")
    if found.equation.target.scope != "g" and len(found.top) == 1:
        return Problem(
            "private-target",
            f"{found.equation.target.name} lives as long as this nest, and partial results would"
            " be combined in another",
        )
    if not found.over:
        return Problem("extent-too-small", "no loop of the nest reduces more than one iteration")
    repeats = set(update.repeating_loops) - set(update.reduction_loops)
    extents = {loop.index: loop.extent for loop in found.loops}
    if any(extents.get(index, 1) > 1 for index in repeats):
        return Problem(
            "target-repeats", "iterations of the other loops come back to the same element"
        )
    stored = DTYPES[found.equation.target.dtype]
    kept = found.dtype.is_float if stored.is_float else found.dtype == stored
    if stored.kind == "bool" or not kept:
        return Problem(
            "type-mixed",
            f"a {found.dtype.name} value is rounded to {stored.name} in every iteration",
        )
    if found.explicit and identity(found.op, found.dtype) is None:
        return Problem("identity-unspelled", f"no literal starts {found.op} in {found.dtype.name}")
    return found


def _sites(name: str, program: SignedProgram, reduction: Reduction, loop: Loop) -> Iterator[Site]:
    n = loop.extent
    power = 1 << ((n - 1).bit_length() - 1)
    # The middle always; elsewhere no part of a single iteration, which shares out nothing.
    others = {n // 4, 3 * n // 4, power} & set(range(2, n - 1))
    for at in sorted({n // 2} | others):
        yield Site.of(name, reduction.path, form="cut", loop=loop.index, at=at)
    if loop.axis is not None and not _block_axis_free(program, reduction, loop):
        return
    for factor, tail in (
        *((f, "exact") for f in exact_factors(n)),
        *((f, "guard") for f in tail_factors(n)[:MOST_TAILS]),
    ):
        yield Site.of(
            name, reduction.path, form="rfactor", loop=loop.index, factor=factor, tail=tail
        )


def _block_axis_free(program: SignedProgram, reduction: Reduction, loop: Loop) -> bool:
    around = loops_around(program.program, reduction.path)
    return loop.index[0] == "t" and all(other.axis != _block(loop) for other in around)


def _block(loop: Loop) -> str:
    return "b" + loop.index[1]


def _cut(program: SignedProgram, reduction: Reduction, site: Site) -> tuple[Statement, ...]:
    index, at = site.text("loop"), site.integer("at")
    names = new_tensor_names(program, 2)
    statements: list[Statement] = []
    for name, extent, offset in ((names[0], at, 0), (names[1], None, at)):
        loops = tuple(
            replace(loop, extent=loop.extent - at if extent is None else extent)
            if loop.index == index
            else loop
            for loop in reduction.loops
        )
        partial = partial_access(reduction, name)
        update = in_place_of(reduction.equation, reduction.equation.target.name, partial)
        if offset:
            update = with_indices(update, {index: Binary("+", Index(index), Int(offset))})
        statements += started(reduction, partial, loops, update, reduction.over)
    first, second = (partial_access(reduction, name) for name in names)
    value = apply_op(reduction.op, first, second)
    if reduction.update.init != "identity" or reduction.restarts:
        value = apply_op(reduction.op, reduction.equation.target, value)
    guard, _ = reduction.guards_apart
    combined = Equation(reduction.equation.target, value, guard)
    statements.append(nested(reduction, reduction.spatial, combined))
    return tuple(statements)


def _rfactor(program: SignedProgram, reduction: Reduction, site: Site) -> tuple[Statement, ...]:
    index, factor = site.text("loop"), site.integer("factor")
    loop = next(one for one in reduction.loops if one.index == index)
    fresh = fresh_index(program.program, reduction.path)
    parts = -(-loop.extent // factor)
    outer = Loop("B", _block(loop), parts) if loop.axis is not None else Loop("L", fresh, parts)
    sum_ = Binary("+", Binary("*", Index(outer.index), Int(factor)), Index(index))
    partial = partial_access(reduction, new_tensor_names(program, 1)[0], Index(outer.index))
    update = with_indices(reduction.equation, {index: sum_})
    update = in_place_of(update, reduction.equation.target.name, partial)
    if site.text("tail") == "guard":
        inside: Expr = Compare((sum_, Int(loop.start + loop.extent)), ("<",))
        if update.guard is not None:
            inside = Binary("&", inside, update.guard)
        update = replace(update, guard=inside)
    loops: list[Loop] = []
    for one in reduction.loops:
        loops += [outer, replace(one, extent=factor)] if one.index == index else [one]
    statements = started(reduction, partial, tuple(loops), update, reduction.over)
    target = reduction.equation.target
    part = replace(partial, subscripts=(*target.subscripts, Index(fresh)))
    guard, _ = reduction.guards_apart
    combined = Equation(target, apply_op(reduction.op, target, part), guard)
    last = (*reduction.spatial, Loop("L", fresh, parts))
    return (*statements, nested(reduction, last, combined))


def _division(site: Site, extent: int, part: int) -> tuple[Fact, ...]:
    if site.text("form") == "cut":
        return (pair("at_most", part, extent, value=True),)
    return (
        pair("divides", extent, part, value=extent % part == 0),
        pair("quotient", extent, part, value=extent // part),
        pair("remainder", extent, part, value=extent % part),
    )


def rule_of(reduction: Reduction) -> str:
    """The rule that a step at this reduction rests on."""
    if reduction.op in ("max", "min"):
        return "exact-associativity"
    return "associativity-up-to-rounding" if reduction.dtype.is_float else "wrapping-associativity"
