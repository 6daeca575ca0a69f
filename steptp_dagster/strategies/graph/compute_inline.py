"""compute_inline: put the definition of an intermediate in the place of its reads."""

from math import prod
from typing import Final

from steptp_dagster.leir.ast import Equation, Program
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import expr_dtype
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import Located, equations, replace_at
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.definitions import (
    Problem,
    definition,
    inlined,
    located,
    operand_problem,
    reads_at,
)
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.inlining import (
    decisive_reads,
    nodes,
    rounds_when_stored,
    types_kept,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import (
    equation_at,
    read_texts,
    readers_of,
    reads_of,
    writers_of,
)

#: A result may have this many times the expression nodes of the program before, and some more.
GROWTH: Final = 4
SOME_NODES: Final = 100


class ComputeInline(Strategy):
    """Substitute the expression that defines an intermediate into all its reads; drop the nest.

    The written subscript is inverted on each read, so transposed, shifted, constant and
    mixed-radix (``i*n+j``) reads work, in any number of consumers, in other nests or the same.
    The intermediate is written by one plain assignment and is no output; what the definition
    reads still holds the same values where the reads stand.

    A definition in f32, f64, an integer type or bool is exact. Where the intermediate was
    rounded to f16 or bf16 the result is equal up to that rounding, and no read may decide
    anything (comparisons, conditions, subscripts).

        === example
        --- before
        # input A f32[3,2]
        # input C f32[3]
        # output E f32[2,3]
        B^{3}_{tx=0}L^{2}_{a=0}[D^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}+1;];
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=D^{f32,g}_{a,tx}*C^{f32,g}_{a};];
        --- site statement 1.1: tensor=D
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{tx,a}=(A^{f32,g}_{a,tx}+1)*C^{f32,g}_{a};];
        --- numerics exact
    """

    name = "compute_inline"
    level = "graph"
    version = "1"
    summary = "Puts the definition of an intermediate in the place of all its reads."
    preconditions = (
        "producer-is-output",
        "several-writers",
        "producer-is-update",
        "no-reader",
        "target-not-invertible",
        "target-misses-loop",
        "guarded-producer",
        "operand-redefined",
        "operand-private",
        "type-changes",
        "rounding-observed",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """One site per producer, in text order; else the first precondition that fails."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for producer in equations(program.program):
            found = self._consider(program, producer)
            if isinstance(found, Site):
                sites.append(found)
            else:
                refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _consider(self, program: SignedProgram, producer: Located) -> Site | Refusal:
        path, name = producer.path, producer.equation.target.name
        problem = _producer_problem(program, producer) or _consumer_problem(program, producer)
        if problem is not None:
            return Refusal(self.name, path, problem.reason, problem.message)
        site = Site.of(self.name, path, tensor=name)
        broken = fault(self.apply(program, site))
        return site if broken is None else Refusal(self.name, path, *broken)

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Rewrite every reader, then remove the producer."""
        producer = located(program.program, site.path)
        result = program.program
        for path in readers_of(result, producer.equation.target.name):
            new = inlined(program.program, producer, located(program.program, path))
            if isinstance(new, Problem):
                raise ValueError(f"no site of this program: {site.describe()}: {new.message}")
            result = replace_at(result, path, new)
        return SignedProgram(replace_at(result, site.path), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The producer, its readers, and what its operands and types are."""
        path = site.path
        producer = located(before.program, path)
        equation = producer.equation
        name = equation.target.name
        readers = readers_of(before.program, name)
        operands = tuple(dict.fromkeys(access.name for access in reads_of(equation)))
        guard = "" if equation.guard is None else expr_text(equation.guard)
        stored = before_fact("dtype_of", name, value=equation.target.dtype)
        rounds = rounds_when_stored(equation)
        reads = before_fact("reads", path, value=operands)
        known: dict[str, tuple[Fact, ...]] = {
            "producer-is-output": (before_fact("role_of", name, value="intermediate"),),
            "several-writers": (before_fact("writers_of", name, value=(path,)),),
            "producer-is-update": (before_fact("update_kind", path, value="assignment"),),
            "no-reader": (before_fact("readers_of", name, value=readers),),
            "target-not-invertible": (
                before_fact("target_text", path, value=expr_text(equation.target)),
                *(
                    before_fact(
                        "read_texts",
                        reader,
                        name,
                        value=read_texts(equation_at(before.program, reader), name),
                    )
                    for reader in readers
                ),
            ),
            "target-misses-loop": (
                before_fact("loops_around", path, value=tuple(x.index for x in producer.loops)),
            ),
            "guarded-producer": (before_fact("guard_text", path, value=guard),),
            "operand-redefined": (
                reads,
                *(
                    before_fact("writers_of", operand, value=writers_of(before.program, operand))
                    for operand in operands
                ),
            ),
            "operand-private": (
                reads,
                *(
                    before_fact("scope_of", operand, value=_scope(equation, operand))
                    for operand in operands
                ),
            ),
            "type-changes": (
                stored,
                before_fact(
                    "expression_dtype",
                    path,
                    value=expr_dtype(equation.value, equation.target.dtype).name,
                ),
            ),
            "rounding-observed": (stored,),
        }
        return Explanation(
            state=(
                before_fact("value_text", path, value=expr_text(equation.value)),
                before_fact("readers_of", name, value=readers),
            ),
            preconditions=tuple(Evidence(p, known[p]) for p in self.preconditions_at(site)),
            decision=(
                pair("removed_tensors", value=(name,)),
                *(
                    before_fact("trip_count", where, value=_trips(before.program, where))
                    for where in (path, *readers)
                ),
            ),
            transition=transition(before, after),
            soundness_rule="substitution-without-rounding" if rounds else "substitution",
            soundness=(
                before_fact("target_text", path, value=expr_text(equation.target)),
                before_fact("value_text", path, value=expr_text(equation.value)),
            ),
            effect=effects(before, after),
        )


def _producer_problem(program: SignedProgram, producer: Located) -> Problem | None:
    """What the producer alone rules out."""
    name = producer.equation.target.name
    if name in program.signature.by_name:
        return Problem("producer-is-output", f"{name} is an output of the program")
    writers = writers_of(program.program, name)
    if len(writers) > 1:
        return Problem("several-writers", f"{name} is written by {len(writers)} equations")
    kind = classify(program)[producer.path].kind
    if kind != "assignment":
        return Problem("producer-is-update", f"the definition of {name} is an {kind} of itself")
    if not readers_of(program.program, name):
        return Problem("no-reader", f"nothing reads {name}")
    return None


def _consumer_problem(program: SignedProgram, producer: Located) -> Problem | None:
    """What the readers rule out, first in text order."""
    name = producer.equation.target.name
    size = sum(nodes(one.equation) for one in equations(program.program))
    grown = size
    for path in readers_of(program.program, name):
        reader = located(program.program, path)
        for read in reads_at(reader, name):
            solved = definition(program.program, producer, reader, read)
            if isinstance(solved, Problem):
                return solved
            problem = operand_problem(program, producer, reader, solved)
            if problem is not None:
                return problem
        new = inlined(program.program, producer, reader)
        if isinstance(new, Problem):
            return new
        problem = _value_problem(producer.equation, reader.equation, new)
        if problem is not None:
            return problem
        grown += nodes(new) - nodes(reader.equation)
    if grown > GROWTH * size + SOME_NODES:
        return Problem("expression-too-large", f"{size} expression nodes would become {grown}")
    return None


def _value_problem(producer: Equation, before: Equation, after: Equation) -> Problem | None:
    name = producer.target.name
    if not types_kept(name, producer, before, after):
        return Problem(
            "type-changes", f"without {name} some operation would be done in another type"
        )
    if rounds_when_stored(producer) and any(a.name == name for a in decisive_reads(before)):
        return Problem(
            "rounding-observed",
            f"{name} is rounded to {producer.target.dtype} and decides a condition or an integer",
        )
    return None


def _scope(equation: Equation, name: str) -> str:
    return next(access.scope for access in reads_of(equation) if access.name == name)


def _trips(program: Program, path: tuple[int, ...]) -> int:
    return prod(loop.extent for loop in located(program, path).loops)
