"""common_subexpression_elimination: compute what occurs several times once."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Nest
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import expr_dtype
from steptp_dagster.leir.walk import Path, at, equations, replace_at, substitute
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
    header_names,
    in_value,
    own_header,
    same_types,
)
from steptp_dagster.strategies.remembered import PerProgram
from steptp_dagster.strategies.repeats import (
    Occurrence,
    across_nests,
    between,
    clobbered,
    domain,
    in_one_body,
    read_at,
    repeated,
    writes,
    written_between,
)
from steptp_dagster.strategies.rewrite import equation_at, new_tensor_names, readers_of, reads_of


class CommonSubexpressionElimination(Strategy):
    """Name a part that occurs at least twice, compute it once, and read the name everywhere.

    Parts are equal if they agree up to the names of loop indices that start alike; the largest
    common part counts. No operand may be written between the first and the last occurrence. The
    name has the type in which the part is computed and is defined

    * ``nest``: by a nest in front of the first top-level nest with an occurrence, over the
      largest range of each index;
    * ``l``: for occurrences in one body, by an equation in front of the first, in local memory.

        === example
        --- before
        # input A f32[2,3]
        # output D f32[2,3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a})+1;];
        B^{2}_{tx=0}L^{3}_{c=0}[E^{f32,g}_{tx,c}=exp(A^{f32,g}_{tx,c})*2;];
        --- site statement 1.1: part=exp(A^{f32,g}_{tx,a}), place=nest
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[C^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a});];
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=C^{f32,g}_{tx,a}+1;];
        B^{2}_{tx=0}L^{3}_{c=0}[E^{f32,g}_{tx,c}=C^{f32,g}_{tx,c}*2;];
        --- numerics exact
    """

    name = "common_subexpression_elimination"
    level = "graph"
    version = "1"
    summary = "Computes a part that occurs several times once, under a name of its own."
    preconditions = (
        "nothing-repeated",
        "operand-written-between",
        "type-changes",
        "too-large",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every repeated part with every place, by first occurrence."""
        groups = repeated(program)
        if not groups:
            words = "no operation on tensors occurs twice"
            return Survey((), (Refusal(self.name, (0,), "nothing-repeated", words),))
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for group in groups:
            runs = list(_runs(program, group))
            if not runs:
                refusals.append(self._separated(program, group))
            for place, run in runs:
                found = self._consider(program, run, place)
                if isinstance(found, Site):
                    sites.append(found)
                elif found not in refusals:
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _separated(self, program: SignedProgram, group: tuple[Occurrence, ...]) -> Refusal:
        first, last = group[0], group[-1]
        written = clobbered(program, first, last) or written_between(program, first, last)
        return Refusal(
            self.name,
            first.one.path,
            "operand-written-between",
            f"{', '.join(written)} is written between occurrences of {expr_text(first.part)}",
        )

    def _consider(
        self, program: SignedProgram, run: tuple[Occurrence, ...], place: str
    ) -> Site | Refusal:
        first = run[0]
        found = _built(program, run, place)
        if isinstance(found, _Shared):
            site = Site.of(self.name, first.one.path, part=expr_text(first.part), place=place)
            _results(program).setdefault(site, (run, found))
            return site
        return Refusal(self.name, first.one.path, *found)

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """The size only where the name is a tensor."""
        return self.preconditions if site.text("place") == "nest" else self.preconditions[:-1]

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Define the name and put it in the place of all occurrences."""
        return _at(program, site)[1].program

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The equations with the part, what it reads, and what is written between them."""
        run, shared = _at(before, site)
        where, name = shared.definition, shared.name
        definition = located(after.program, where).equation
        operands = tuple(dict.fromkeys(access.name for access in reads_of(definition)))
        texts = tuple(
            before_fact(
                "value_text", path, value=expr_text(equation_at(before.program, path).value)
            )
            for path in dict.fromkeys(found.one.path for found in run)
        )
        passed = between(run[0], run[-1])
        if site.text("place") == "nest":
            passed = tuple((i,) for i in range(run[0].one.path[0], run[-1].one.path[0] + 1))
        dtype = expr_dtype(definition.value, definition.target.dtype).name
        known: dict[str, tuple[Fact, ...]] = {
            "nothing-repeated": texts,
            "operand-written-between": (
                after_fact("reads", where, value=operands),
                *(before_fact("writes", path, value=writes(before, path)) for path in passed),
            ),
            "type-changes": (
                after_fact("expression_dtype", where, value=dtype),
                after_fact("dtype_of", name, value=definition.target.dtype),
            ),
            "too-large": (
                after_fact("elements_of", name, value=_elements(after, name)),
                *allowed(before, _elements(after, name)),
            ),
        }
        return Explanation(
            state=texts,
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
                after_fact("readers_of", name, value=readers_of(after.program, name)),
            ),
            effect=effects(before, after),
        )


@dataclass(frozen=True, slots=True)
class _Shared:
    """A result: the program, the new name, and where it is defined."""

    program: SignedProgram
    name: str
    definition: Path


def _runs(
    program: SignedProgram, group: tuple[Occurrence, ...]
) -> Iterator[tuple[str, tuple[Occurrence, ...]]]:
    yield from (("nest", run) for run in across_nests(program, group))
    yield from (("l", run) for run in in_one_body(program, group))


#: Occurrences and result at sites, as a survey found them.
_results: Final = PerProgram(lambda _: dict[Site, tuple[tuple[Occurrence, ...], _Shared]]())


def _at(program: SignedProgram, site: Site) -> tuple[tuple[Occurrence, ...], _Shared]:
    known = _results(program).get(site)
    if known is not None:
        return known
    for group in repeated(program):
        for place, run in _runs(program, group):
            here = (run[0].one.path, expr_text(run[0].part), place)
            if here == (site.path, site.text("part"), site.text("place")):
                found = _built(program, run, place)
                if isinstance(found, _Shared):
                    return _results(program).setdefault(site, (run, found))
    raise ValueError(f"no site of this program: {site.describe()}")


def _built(
    program: SignedProgram, run: tuple[Occurrence, ...], place: str
) -> _Shared | tuple[str, str]:
    """The result, or the precondition that fails with words."""
    first = run[0]
    name = new_tensor_names(program, 1)[0]
    if place == "nest":
        order = domain(run)
        size, (limit, _, _) = prod(loop.extent for loop in order), allowance(program)
        if size > limit:
            text = expr_text(first.part)
            return "too-large", f"{text} would take {size} elements, more than {limit}"
    else:  # iterations of these run at the same time, in one thread
        order = tuple(x for x in first.one.loops if x.extent > 1 and x.kind in ("P", "V"))
    subscripts: tuple[Expr, ...] = tuple(Index(loop.index) for loop in order)
    target = Access(name, first.dtype, "g" if place == "nest" else "l", subscripts)
    changed = {one.path: one.equation for one in equations(program.program)}
    for found in run:
        access = read_at(found, first, target, order) if place == "nest" else target
        changed[found.one.path] = in_value(changed[found.one.path], found.part, access)
    definition = Equation(target, first.part)
    result = program.program
    for one in dict.fromkeys(found.one for found in run):
        if not same_types(definition, one.equation, changed[one.path]):
            return "type-changes", f"{expr_text(first.part)} would be computed in another type"
        result = replace_at(result, one.path, changed[one.path])
    guards = {found.one.equation.guard for found in run}
    guard = first.one.equation.guard if place == "l" and len(guards) == 1 else None
    if place == "nest":
        header = own_header(order, first.indices)
        names = header_names(order, first.indices, header)
        moved = substitute(target, names)
        if not isinstance(moved, Access):
            raise TypeError("renaming keeps an access an access")
        definition = Equation(moved, substitute(first.part, names))
        top = first.one.path[:1]
        result = replace_at(result, top, Nest(header, (definition,)), at(result, top))
        where: Path = (*top, 0)
    else:
        where = first.one.path
        result = replace_at(result, where, Equation(target, first.part, guard), at(result, where))
    signed = SignedProgram(result, program.signature)
    return fault(signed) or _Shared(signed, name, where)


def _elements(program: SignedProgram, name: str) -> int:
    return prod(infer_shapes(program)[name])
