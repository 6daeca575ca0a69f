"""expression_splitting: give a part of an expression a name of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Equation, Expr, Index, Loop, Nest, Statement
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import expr_dtype
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import (
    Located,
    Path,
    accesses_in,
    at,
    equations,
    equations_in,
    expressions,
    indices_in,
    replace_at,
    substitute,
)
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.definitions import located
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.naming import (
    allowance,
    allowed,
    branch_condition,
    header_names,
    in_value,
    own_header,
    parts,
    reads_tensor,
    same_types,
    unconditional,
)
from steptp_dagster.strategies.rewrite import new_tensor_names, reads_of

#: Where the name is defined: private to the iteration, one element per iteration, or before.
PLACES: Final = ("l", "g", "nest")


class ExpressionSplitting(Strategy):
    """Name a part of an equation's value and read the name instead.

    Every operation that reads a tensor is offered, apart from the value as a whole. The name has
    the type in which the part is computed, so its value does not change. It is defined

    * ``l``: by an equation in front, in local memory, one element at a time;
    * ``g``: by an equation in front, in global memory, one element per iteration;
    * ``nest``: by a nest of its own in front of the top-level nest, over just the loops whose
      indices the part uses. That nest may not write what the part reads.

    A part that stands in a branch is computed everywhere if that is legal, else under the
    conditions of the branch.

        === example
        --- before
        # input A f32[2,3]
        # input C f32[3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=C^{f32,g}_{a}/(1+exp(-A^{f32,g}_{tx,a}));];
        --- site statement 1.1: part=exp(-A^{f32,g}_{tx,a}), place=nest
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=exp(-A^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=C^{f32,g}_{a}/(1+D^{f32,g}_{tx,a});];
        --- numerics exact
    """

    name = "expression_splitting"
    level = "graph"
    version = "1"
    summary = "Gives a part of an expression a name of its own, computed in front of it."
    preconditions = (
        "reads-target",
        "type-changes",
        "too-large",
        "operand-written-in-nest",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every part of every equation in every place, in text order, outer parts first."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for one in equations(program.program):
            for part, dtype in parts(one.equation):
                for place in PLACES:
                    found = self._consider(program, one, part, dtype, place)
                    if isinstance(found, Site):
                        sites.append(found)
                    elif found not in refusals:
                        refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _consider(
        self, program: SignedProgram, one: Located, part: Expr, dtype: str, place: str
    ) -> Site | Refusal:
        problem = _problem(program, one, part, place)
        if problem is None:
            built = _built(program, one, part, dtype, place)
            if isinstance(built, _Named):
                return Site.of(self.name, one.path, part=expr_text(part), place=place)
            problem = built
        return Refusal(self.name, one.path, *problem)

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Define the name and read it wherever the part stood in the equation."""
        return _at(program, site).program

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """Those about operands only for a nest of its own, the size only where it counts."""
        return self.preconditions[: {"l": 2, "g": 3, "nest": 4}[site.text("place")]]

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """What the part reads, its type, and where its name is defined."""
        named = _at(before, site)
        where, name = named.definition, named.name
        definition = located(after.program, where).equation
        operands = tuple(dict.fromkeys(access.name for access in reads_of(definition)))
        reader = located(before.program, site.path).equation
        reads = after_fact("reads", where, value=operands)
        elements = prod(infer_shapes(after)[name])
        dtype = expr_dtype(definition.value, definition.target.dtype).name
        known: dict[str, tuple[Fact, ...]] = {
            "reads-target": (
                before_fact("update_kind", site.path, value=classify(before)[site.path].kind),
                before_fact("target_text", site.path, value=expr_text(reader.target)),
                reads,
            ),
            "type-changes": (
                after_fact("expression_dtype", where, value=dtype),
                after_fact("dtype_of", name, value=definition.target.dtype),
            ),
            "too-large": (
                after_fact("elements_of", name, value=elements),
                *allowed(before, elements),
            ),
            "operand-written-in-nest": (
                reads,
                before_fact("writes", site.path[:1], value=_written(before, site.path[:1])),
            ),
        }
        return Explanation(
            state=(before_fact("value_text", site.path, value=expr_text(reader.value)),),
            preconditions=tuple(Evidence(p, known[p]) for p in self.preconditions_at(site)),
            decision=(
                pair("new_tensors", value=(name,)),
                after_fact("scope_of", name, value=definition.target.scope),
                after_fact("value_text", where, value=expr_text(definition.value)),
            ),
            transition=transition(before, after),
            soundness_rule="naming",
            soundness=(
                after_fact("target_text", where, value=expr_text(definition.target)),
                after_fact("readers_of", name, value=(named.reader,)),
            ),
            effect=effects(before, after),
        )


@dataclass(frozen=True, slots=True)
class _Named:
    """A result: the program, the new name, and where it is defined and read."""

    program: SignedProgram
    name: str
    definition: Path
    reader: Path


def _at(program: SignedProgram, site: Site) -> _Named:
    one = located(program.program, site.path)
    for part, dtype in parts(one.equation):
        if expr_text(part) == site.text("part"):
            found = _built(program, one, part, dtype, site.text("place"))
            if isinstance(found, _Named):
                return found
    raise ValueError(f"no site of this program: {site.describe()}")


def _problem(
    program: SignedProgram, one: Located, part: Expr, place: str
) -> tuple[str, str] | None:
    """The first precondition that fails, types and validity of the result aside."""
    read = {access.name for access in accesses_in(part)}
    name = one.equation.target.name
    text = expr_text(part)
    if name in read and classify(program)[one.path].kind == "update":
        return "reads-target", f"{text} contains the running value of {name}"
    if place == "nest":
        written = sorted(read & set(_written(program, one.path[:1])))
        if written:  # so is whatever stands in local or shared memory
            return "operand-written-in-nest", f"{', '.join(written)} is computed in the same nest"
    loops = _loops(one.loops, part, place)
    size = prod(loop.extent for loop in loops)
    limit, _, _ = allowance(program)
    if size > limit:
        return "too-large", f"{text} would take {size} elements, more than {limit}"
    return None


def _loops(loops: tuple[Loop, ...], part: Expr, place: str) -> tuple[Loop, ...]:
    """The loops that get a dimension in the new tensor."""
    match place:
        case "l":  # iterations of these run at the same time, in one thread
            return tuple(x for x in loops if x.extent > 1 and x.kind in ("P", "V"))
        case "g":
            return tuple(x for x in loops if x.extent > 1)
    used = indices_in(part)
    return tuple(x for x in loops if x.index in used)


def _built(
    program: SignedProgram, one: Located, part: Expr, dtype: str, place: str
) -> _Named | tuple[str, str]:
    """The result with the weakest guard that is legal, or the first fault."""
    name = new_tensor_names(program, 1)[0]
    loops = _loops(one.loops, part, place)
    subscripts: tuple[Expr, ...] = tuple(Index(loop.index) for loop in loops)
    target = Access(name, dtype, "l" if place == "l" else "g", subscripts)
    reader = in_value(one.equation, part, target)
    if not same_types(Equation(target, part), one.equation, reader):
        return "type-changes", f"{expr_text(part)} would be computed in another type"
    # computed exactly where the equation is, a part can do nothing that the equation does not;
    # what is left are the limits of vectors and of local memory
    certain = unconditional(one.equation.value, part) and fault(program) is None
    certain = certain and all(loop.kind != "V" for loop in one.loops)
    if place == "l":
        certain = certain and not loops and not _has_local(program)
    elif place == "nest":
        certain = certain and one.equation.guard is None
    problem: tuple[str, str] | None = None
    for guard in _guards(program, one, part, place):
        result = _placed(program, one, Equation(target, part, guard), reader, place)
        broken = None if certain else fault(result.program)
        if broken is None:
            return result
        problem = problem or broken
    return problem or ("result-invalid", "no guard can be stated")


def _has_local(program: SignedProgram) -> bool:
    return any(
        access.scope == "l"
        for one in equations(program.program)
        for expr in expressions(one.equation)
        for access in accesses_in(expr)
    )


def _guards(program: SignedProgram, one: Located, part: Expr, place: str) -> Iterator[Expr | None]:
    """Guards for the definition, the weakest first."""
    guard = one.equation.guard
    branch = branch_condition(one.equation.value, part)
    both = branch if guard is None else guard
    if guard is not None and branch is not None:
        both = Binary("&", guard, branch)
    choices = (None, guard, both) if place == "nest" else (guard, both)
    allowed = indices_in(part)
    written = set(_written(program, one.path[:1]))
    for choice in dict.fromkeys(choices):
        if place == "nest" and choice is not None:
            if not indices_in(choice) <= allowed:
                continue
            if any(a.scope != "g" or a.name in written for a in accesses_in(choice)):
                continue
        if choice is not guard and choice is not None and reads_tensor(choice):
            continue  # a condition on data would leave it open whether the name was written
        yield choice


def _placed(
    program: SignedProgram, one: Located, definition: Equation, reader: Equation, place: str
) -> _Named:
    name = definition.target.name
    if place != "nest":
        result = replace_at(program.program, one.path, definition, reader)
        where, reads = one.path, (*one.path[:-1], one.path[-1] + 1)
        return _Named(SignedProgram(result, program.signature), name, where, reads)
    used = indices_in(definition.value)
    header = own_header(one.loops, used)
    names = header_names(one.loops, used, header)
    target = substitute(definition.target, names)
    if not isinstance(target, Access):
        raise TypeError("renaming keeps an access an access")
    guard = None if definition.guard is None else substitute(definition.guard, names)
    moved = Equation(target, substitute(definition.value, names), guard)
    changed = replace_at(program.program, one.path, reader)
    top = one.path[:1]
    old: Statement = at(changed, top)
    result = replace_at(changed, top, Nest(header, (moved,)), old)
    return _Named(
        SignedProgram(result, program.signature), name, (*top, 0), (top[0] + 1, *one.path[1:])
    )


def _written(program: SignedProgram, path: Path) -> tuple[str, ...]:
    found = equations_in(at(program.program, path))
    return tuple(dict.fromkeys(one.equation.target.name for one in found))
