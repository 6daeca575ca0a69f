"""tensor_concat_to_fuse_operators: run one operator on two inputs that are put together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Loop, Nest, Statement
from steptp_dagster.leir.dependence import Answer, can_move
from steptp_dagster.leir.printer import expr_text, loops_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import map_equation, map_expr, replace_at, substitute
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import (
    affine_sum,
    equation_at,
    nest_at,
    new_tensor_names,
    read_texts,
)
from steptp_dagster.strategies.slicing import copied
from steptp_dagster.strategies.twins import (
    Twins,
    headers_fit,
    joined_dimensions,
    single,
    spatial,
    twins,
)


class TensorConcatToFuseOperators(Strategy):
    """Put the differing inputs of two adjacent like nests together, compute once, take apart.

    The nests hold one equation each, equal up to the names of indices and tensors; their loops
    agree in all extents but at most one. Along one loop of the target, that one or any where all
    agree, the inputs that differ are copied one behind the other, the operator runs once over
    the joined range, and two copies give back the results. The loop occurs only as a bare
    subscript of what differs, so shared inputs, values and conditions do not depend on it.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[3,4]
        # input K f32[4]
        # output D f32[2,4]
        # output E f32[3,4]
        B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}*K^{f32,g}_{a};];
        B^{3}_{tx=0}L^{4}_{c=0}[E^{f32,g}_{tx,c}=C^{f32,g}_{tx,c}*K^{f32,g}_{c};];
        --- site statement 1: loop=tx
        --- after
        B^{2}_{tx=0}L^{4}_{c=0}[G^{f32,g}_{tx,c}=A^{f32,g}_{tx,c};];
        B^{3}_{tx=0}L^{4}_{c=0}[G^{f32,g}_{tx+2,c}=C^{f32,g}_{tx,c};];
        B^{5}_{tx=0}L^{4}_{a=0}[F^{f32,g}_{tx,a}=G^{f32,g}_{tx,a}*K^{f32,g}_{a};];
        B^{2}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=F^{f32,g}_{tx,a};];
        B^{3}_{tx=0}L^{4}_{a=0}[E^{f32,g}_{tx,a}=F^{f32,g}_{tx+2,a};];
        --- numerics exact
    """

    name = "tensor_concat_to_fuse_operators"
    level = "graph"
    version = "1"
    summary = "Runs one operator on the inputs of two, put together along one dimension."
    preconditions = (
        "nest-shared",
        "headers-differ",
        "equations-differ",
        "results-interfere",
        "target-continues",
        "index-not-bare",
        "nothing-to-join",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every pair of adjacent top-level nests with every loop, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for i in range(len(program.program.nests) - 1):
            found = _pair(program, i)
            if not isinstance(found, Twins):
                refusals.append(Refusal(self.name, (i,), *found))
                continue
            seen: set[str] = set()
            for candidate in self._candidates(program, i, found):
                if isinstance(candidate, Site):
                    sites.append(candidate)
                elif candidate.reason not in seen:
                    seen.add(candidate.reason)
                    refusals.append(candidate)
        return Survey(tuple(sites), tuple(refusals))

    def _candidates(self, program: SignedProgram, i: int, found: Twins) -> Iterator[Site | Refusal]:
        for loop, _ in found.candidates:
            site = Site.of(self.name, (i,), loop=loop.index)
            built = _built(program, i, loop.index)
            if isinstance(built, tuple):
                yield Refusal(self.name, (i,), *built)
                continue
            broken = fault(built.program)
            yield site if broken is None else Refusal(self.name, (i,), *broken)

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Replace both nests by copies, the joined operator and the two results."""
        return _at(program, site)[1].program

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The two equations, what differs between them, and the joined loop."""
        found, built = _at(before, site)
        i, index = site.path[0], site.text("loop")
        first, second = (i,), (i + 1,)
        one, other = (equation_at(before.program, (*path, 0)) for path in (first, second))
        pairs = zip(found.loops, found.others, strict=True)
        loop, its = next(p for p in pairs if p[0].index == index)
        update = classify(before)
        value = before_fact("value_text", (*first, 0), value=expr_text(one.value))
        targets = tuple(
            before_fact("target_text", (*path, 0), value=expr_text(equation.target))
            for path, equation in ((first, one), (second, other))
        )
        renaming = {old: Index(new) for old, new in found.renaming}
        joined = tuple(
            before_fact("read_texts", path, name, value=read_texts(equation, name))
            for mine in built.joined
            for path, equation, name in ((first, one, mine), (second, other, found.names[mine]))
        )
        known: dict[str, tuple[Fact, ...]] = {
            "nest-shared": tuple(before_fact("statements", p, value=1) for p in (first, second)),
            "headers-differ": tuple(
                before_fact("loops_text", p, value=loops_text(nest_at(before.program, p).loops))
                for p in (first, second)
            ),
            "equations-differ": (
                value,
                before_fact(
                    "renamed_value",
                    (*second, 0),
                    found.renaming,
                    value=expr_text(substitute(other.value, renaming)),
                ),
            ),
            "results-interfere": (before_fact("conflict", first, second, value="none"),),
            "target-continues": tuple(
                before_fact("update_init", (*p, 0), value=update[(*p, 0)].init or "")
                for p in (first, second)
            ),
            "index-not-bare": targets,
            "nothing-to-join": joined,
        }
        where = built.operator
        return Explanation(
            state=(value, *targets),
            preconditions=tuple(Evidence(p, known[p]) for p in self.preconditions),
            decision=(
                before_fact("loop_extent", first, index, value=loop.extent),
                before_fact("loop_extent", second, its.index, value=its.extent),
                after_fact("loop_extent", where, index, value=loop.extent + its.extent),
                pair("new_tensors", value=built.made),
            ),
            transition=transition(before, after),
            soundness_rule="ranges-put-together",
            soundness=joined,
            effect=effects(before, after),
        )


@dataclass(frozen=True, slots=True)
class _Joined:
    """A result; the first nest's tensors that were put together, the new ones, the operator."""

    program: SignedProgram
    joined: tuple[str, ...]
    made: tuple[str, ...]
    operator: tuple[int, ...]


def _at(program: SignedProgram, site: Site) -> tuple[Twins, _Joined]:
    found = _pair(program, site.path[0])
    if isinstance(found, Twins):
        built = _built(program, site.path[0], site.text("loop"))
        if isinstance(built, _Joined):
            return found, built
    raise ValueError(f"no site of this program: {site.describe()}")


@per_program
def _pair(program: SignedProgram, i: int) -> Twins | tuple[str, str]:
    """The nests ``i`` and ``i + 1`` as twins, or the first precondition that fails."""
    first, second = program.program.nests[i : i + 2]
    if single(first) is None or single(second) is None:
        return "nest-shared", "a nest holds more than one equation, or a guarded one"
    if not headers_fit(first, second):
        headers = f"{loops_text(first.loops)} and {loops_text(second.loops)}"
        return "headers-differ", f"the loop headers differ: {headers}"
    found = twins(first, second)
    if found is None:
        return "equations-differ", "the equations differ in more than names"
    if can_move(program, (i,), (i + 1,)) is not Answer.NONE:
        return "results-interfere", "one nest writes what the other one touches"
    updates = classify(program)
    for path in ((i, 0), (i + 1, 0)):
        if updates[path].init not in (None, "identity") or updates[path].kind == "recurrence":
            return "target-continues", "a result continues from values of its own"
    return found


@per_program
def _built(program: SignedProgram, i: int, index: str) -> _Joined | tuple[str, str]:
    """The result, or the precondition of the nests or of the loop that fails."""
    found = _pair(program, i)
    if not isinstance(found, Twins):
        return found
    dimensions = joined_dimensions(found, index)
    target = found.equation.target
    if dimensions is None or target.name not in dimensions:
        return "index-not-bare", f"{index} is not one bare subscript of each tensor that differs"
    inputs = tuple(one for name, one in dimensions.items() if name != target.name)
    if not inputs:
        return "nothing-to-join", "both nests read the same tensors"
    loops = zip(found.loops, found.others, strict=True)
    sizes = next((a.extent, b.extent) for a, b in loops if a.index == index)
    result, *names = new_tensor_names(program, 1 + len(inputs))
    shapes = infer_shapes(program)
    statements: list[Statement] = []
    by = {target.name: result}
    for one, name in zip(inputs, names, strict=True):
        own = one.read.name
        other = replace(one, read=replace(one.read, name=found.names[own]))
        statements.append(copied(one, name, shapes[own], sizes[0], 0))
        statements.append(copied(other, name, shapes[other.read.name], sizes[1], 0, sizes[0]))
        by[own] = name
    operator = (i + len(statements),)
    header = _with_extent(found.loops, index, sum(sizes))
    renamed = map_equation(found.equation, partial(map_expr, function=partial(_renamed, by)))
    statements.append(Nest(header, (renamed,)))
    for name, size, offset in (
        (target.name, sizes[0], 0),
        (found.names[target.name], sizes[1], sizes[0]),
    ):
        kept = _with_extent(spatial(found.loops, target), index, size)
        shift: dict[str, Expr] = {index: affine_sum(Index(index), offset)}
        value = substitute(replace(target, name=result), shift)
        statements.append(Nest(kept, (Equation(replace(target, name=name), value),)))
    without = replace_at(program.program, (i + 1,))
    signed = SignedProgram(replace_at(without, (i,), *statements), program.signature)
    return _Joined(signed, tuple(o.read.name for o in inputs), (*names, result), operator)


def _with_extent(loops: tuple[Loop, ...], index: str, extent: int) -> tuple[Loop, ...]:
    return tuple(replace(x, extent=extent) if x.index == index else x for x in loops)


def _renamed(by: dict[str, str], node: Expr) -> Expr:
    """An access with the name of what its tensor became part of."""
    if isinstance(node, Access) and node.name in by:
        return replace(node, name=by[node.name])
    return node
