"""tensor_split_to_decouple_operators: compute an operator in two independent halves."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Loop, Nest, Statement
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import indices_in, map_equation, substitute
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.definitions import Problem
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.operator.reduction_factorization import (
    ReductionFactorization,
    factorable,
    rule_of,
)
from steptp_dagster.strategies.reductions import in_place_of
from steptp_dagster.strategies.rewrite import (
    affine_sum,
    equation_at,
    nest_at,
    new_tensor_names,
    read_texts,
    signed_with,
)
from steptp_dagster.strategies.slicing import copied, read_from, slices

_FACTORIZATION: Final = ReductionFactorization()


class TensorSplitToDecoupleOperators(Strategy):
    """Cut a loop of a one-equation nest in two; slice the inputs, compute, put together.

    Every input that the loop indexes with its bare index is copied in two slices; the two
    computations read only their own. Other inputs, and reads at shifted or compound subscripts,
    stay as they are.

    ``form=spatial``: the loop indexes the target; each half is computed into a tensor of its own
    and then stored to its place. ``form=reduction``: the loop reduces; two partial results are
    combined, all other reduction loops stay in both.

        === example
        --- before
        # input A f32[2,5]
        # output E f32[2,5]
        B^{2}_{tx=0}L^{5}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}*a;];
        --- site statement 1.1: at=2, form=spatial, loop=a
        --- after
        B^{2}_{tx=0}L^{2}_{c=0}[F^{f32,g}_{tx,c}=A^{f32,g}_{tx,c};];
        B^{2}_{tx=0}L^{3}_{c=0}[G^{f32,g}_{tx,c}=A^{f32,g}_{tx,c+2};];
        B^{2}_{tx=0}L^{2}_{a=0}[C^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}*a;];
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=G^{f32,g}_{tx,a}*(a+2);];
        B^{2}_{tx=0}L^{2}_{a=0}[E^{f32,g}_{tx,a}=C^{f32,g}_{tx,a};];
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a+2}=D^{f32,g}_{tx,a};];
        --- numerics exact
    """

    name = "tensor_split_to_decouple_operators"
    level = "graph"
    version = "1"
    summary = "Splits the inputs of an operator in two and computes two independent halves."
    preconditions = (
        "nest-shared",
        "guarded",
        "recurrence",
        "target-continues",
        "target-not-bare",
        "nothing-to-slice",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every loop of every top-level nest, cut in the middle and at a power of two."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for i, nest in enumerate(program.program.nests):
            problem = _nest_problem(program, i, nest)
            if problem is not None:
                refusals.append(Refusal(self.name, (i,), *problem))
                continue
            seen: set[str] = set()
            for found in self._candidates(program, i, nest):
                if isinstance(found, Site):
                    sites.append(found)
                elif found.reason not in seen:
                    seen.add(found.reason)
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _candidates(self, program: SignedProgram, i: int, nest: Nest) -> Iterator[Site | Refusal]:
        path = (i, 0)
        equation = equation_at(program.program, path)
        reduction = factorable(program, path)
        over = frozenset[str]() if isinstance(reduction, Problem) else reduction.over
        for loop in nest.loops:
            if loop.extent < 2 or loop.start:
                continue
            reduces = loop.index in over
            if not reduces:
                problem = _spatial_problem(program, path, loop)
                if problem is not None:
                    yield Refusal(self.name, path, *problem)
                    continue
            if not slices(equation, Index(loop.index)):
                words = f"no input is read with {loop.index} as a subscript of its own"
                yield Refusal(self.name, path, "nothing-to-slice", words)
                continue
            for at in _places(loop.extent):
                form = "reduction" if reduces else "spatial"
                site = Site.of(self.name, path, at=at, form=form, loop=loop.index)
                broken = fault(self.apply(program, site))
                yield site if broken is None else Refusal(self.name, path, *broken)

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """Those about the target only where it is stored in halves."""
        if site.text("form") == "spatial":
            return self.preconditions
        return ("nest-shared", "guarded", "recurrence", "nothing-to-slice")

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace the nest by copies, two computations, and what puts them together."""
        return _built(program, site).program

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The loop, its cut, the sliced inputs and the halves."""
        path, index, at = site.path, site.text("loop"), site.integer("at")
        equation = equation_at(before.program, path)
        built = _built(before, site)
        extent = next(x.extent for x in nest_at(before.program, path[:1]).loops if x.index == index)
        update = classify(before)[path]
        size = before_fact("loop_extent", path, index, value=extent)
        target = before_fact("target_text", path, value=expr_text(equation.target))
        inputs = tuple(
            before_fact("read_texts", path, name, value=read_texts(equation, name))
            for name in built.sliced
        )
        known: dict[str, tuple[Fact, ...]] = {
            "nest-shared": (before_fact("statements", path[:1], value=1),),
            "guarded": (before_fact("guard_text", path, value=""),),
            "recurrence": (
                before_fact("update_kind", path, value=update.kind),
                before_fact("update_op", path, value=update.op or ""),
            ),
            "target-continues": (before_fact("update_init", path, value=update.init or ""),),
            "target-not-bare": (target,),
            "nothing-to-slice": inputs,
        }
        shapes = infer_shapes(after)
        return Explanation(
            state=(target, before_fact("value_text", path, value=expr_text(equation.value))),
            preconditions=tuple(Evidence(p, known[p]) for p in self.preconditions_at(site)),
            decision=(
                size,
                pair("at_most", at, extent - 1, value=True),
                *(after_fact("shape_of", name, value=shapes[name]) for name in built.copies),
            ),
            transition=transition(before, after),
            soundness_rule=built.rule,
            soundness=(before_fact("reduction_loops", path, value=update.reduction_loops),),
            effect=effects(before, after),
        )


@dataclass(frozen=True, slots=True)
class _Split:
    """A result, the inputs that were sliced, their copies, and the rule that it rests on."""

    program: SignedProgram
    sliced: tuple[str, ...]
    copies: tuple[str, ...]
    rule: str


def _places(extent: int) -> tuple[int, ...]:
    """The middle, and the largest power of two below the extent where it differs."""
    power = 1 << ((extent - 1).bit_length() - 1)
    return tuple(sorted({extent // 2, power if power < extent - 1 else extent // 2}))


def _nest_problem(program: SignedProgram, i: int, nest: Nest) -> tuple[str, str] | None:
    """What rules out the whole nest."""
    if len(nest.body) > 1 or not isinstance(nest.body[0], Equation):
        return "nest-shared", "the nest holds more than one equation"
    if nest.body[0].guard is not None:
        return "guarded", f"the equation holds only where {expr_text(nest.body[0].guard)}"
    if classify(program)[(i, 0)].kind == "recurrence":
        name = nest.body[0].target.name
        return "recurrence", f"{name} depends on values of itself"
    return None


def _spatial_problem(
    program: SignedProgram, path: tuple[int, ...], loop: Loop
) -> tuple[str, str] | None:
    """What rules out storing the target in two halves of a loop."""
    equation = equation_at(program.program, path)
    target = equation.target
    if classify(program)[path].init not in (None, "identity"):
        return "target-continues", f"{target.name} continues from values written earlier"
    using = [s for s in target.subscripts if loop.index in indices_in(s)]
    if using != [Index(loop.index)]:
        return "target-not-bare", f"{loop.index} is no subscript of its own of {target.name}"
    return None


def _built(program: SignedProgram, site: Site) -> _Split:
    at, index, path = site.integer("at"), site.text("loop"), site.path
    nest = nest_at(program.program, path[:1])
    extent = next(loop.extent for loop in nest.loops if loop.index == index)
    equation = equation_at(program.program, path)
    found = slices(equation, Index(index))
    names = new_tensor_names(program, 2 + 2 * len(found))  # two for the halves, in both forms
    shifted = affine_sum(Index(index), at)
    if site.text("form") == "reduction":
        cut = Site.of(_FACTORIZATION.name, path, at=at, form="cut", loop=index)
        reduction = factorable(program, path)
        if isinstance(reduction, Problem):
            raise ValueError(f"no site of this program: {site.describe()}: {reduction.message}")
        divided = _FACTORIZATION.apply(program, cut)
        rule = rule_of(reduction)
        first, second, *last = divided.program.nests[path[0] : path[0] + 3]
        halves = first, second
        together: list[Statement] = list(last)
    else:
        rule = "halves-of-their-own"
        halves, together = _halves(nest, equation, index, at, names[:2])
    own: tuple[tuple[Expr, int, int], ...] = (
        (Index(index), 0, at),
        (shifted, at, extent - at),
    )
    shapes = infer_shapes(program)
    copies: list[Statement] = []
    made: list[str] = []
    computed: list[Statement] = []
    for k, (half, (subscript, offset, size)) in enumerate(zip(halves, own, strict=True)):
        turned: dict[str, tuple[int, str]] = {}
        for n, one in enumerate(found):
            name = names[2 + k * len(found) + n]
            copies.append(copied(one, name, shapes[one.read.name], size, offset))
            made.append(name)
            turned[one.read.name] = one.dimension, name
        equation = read_from(_only(half), turned, subscript, index)
        computed.append(Nest(half.loops, (equation,), pos=half.pos))
    result = signed_with(program, path[:1], *copies, *computed, *together)
    return _Split(result, tuple(one.read.name for one in found), tuple(made), rule)


def _only(nest: Nest) -> Equation:
    found = nest.body[0]
    if not isinstance(found, Equation):
        raise TypeError("a half holds one equation")
    return found


def _halves(
    nest: Nest, equation: Equation, index: str, at: int, names: tuple[str, ...]
) -> tuple[tuple[Nest, Nest], list[Statement]]:
    """The two computations into tensors of their own, and the nests that store them."""
    target = equation.target
    halves: list[Nest] = []
    stores: list[Statement] = []
    for name, offset in zip(names, (0, at), strict=True):
        loops = tuple(
            replace(loop, extent=loop.extent - at if offset else at)
            if loop.index == index
            else loop
            for loop in nest.loops
        )
        part = replace(target, name=name)
        here = equation
        if offset:
            by: dict[str, Expr] = {index: affine_sum(Index(index), offset)}
            here = map_equation(here, partial(substitute, by=by))
        here = in_place_of(here, target.name, part)  # a half has subscripts of its own
        halves.append(Nest(loops, (here,)))
        place = substitute(target, {index: affine_sum(Index(index), offset)})
        if not isinstance(place, Access):
            raise TypeError("renaming keeps an access an access")
        kept = tuple(loop for loop in loops if loop.index in indices_in(target))
        stores.append(Nest(kept, (Equation(place, part),)))
    return (halves[0], halves[1]), stores
