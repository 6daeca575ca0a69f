"""normal_loop_reduction_to_prefix_reduction: keep the running sum, product or minimum of a row."""

from collections.abc import Iterable
from math import prod
from typing import Final

from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Operator
from steptp_dagster.leir.walk import accesses_in
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation, Fact
from steptp_dagster.strategies.legality import Fault, fault
from steptp_dagster.strategies.misses import Miss
from steptp_dagster.strategies.passes import Pass
from steptp_dagster.strategies.prefix_rows import find_passes, prefix_reduction
from steptp_dagster.strategies.row_evidence import (
    dtype_fact,
    extent_fact,
    guard_fact,
    kind_fact,
    new_tensor_facts,
    newcomers,
    readers_fact,
    recurrence_facts,
    reduction_fact,
    start_facts,
    target_fact,
    value_fact,
    writers_fact,
)
from steptp_dagster.strategies.streaming_strategy import StreamingStrategy

OPERATIONS: Final[tuple[Operator, ...]] = ("min", "+", "*")


class NormalLoopReductionToPrefixReduction(StreamingStrategy[Pass]):
    """Turn a sum, product or minimum of a row into running ones and a copy of the last one.

    ``X=X+e`` over a serial loop ``c`` becomes ``N_{c}=N_{c-1}+e``, where the first step has what
    the operation starts from (0, 1 or inf) in the place of the step before, and ``X=N_{last}``
    behind the loop. The same as ``normal_loop_max_to_prefix_max`` for the other operations: what
    streams over a row (a mean beside its partial means, a cumulative sum or product) starts here.

    Operands come in the same order and every step rounds to the same type, so the result is the
    very same. The array takes one element for each step; where that is more than the largest
    tensor which the operand reads, as in a matrix product, the form is refused.

        === example
        --- before
        # input S f32[2,4]
        # output X f32[2]
        B^{2}_{tx=0}L^{4}_{a=0}[X^{f32,g}_{tx}=X^{f32,g}_{tx}+S^{f32,g}_{tx,a};];
        --- site statement 1.1: op=+
        --- after
        B^{2}_{tx=0}L^{4}_{a=0}[
          A^{f32,g}_{tx,a}=if_then_else(a-1<0,0,A^{f32,g}_{tx,a-1})+S^{f32,g}_{tx,a};];
        B^{2}_{tx=0}[X^{f32,g}_{tx}=A^{f32,g}_{tx,3};];
        --- numerics exact
    """

    name = "normal_loop_reduction_to_prefix_reduction"
    level = "math"
    version = "1"
    origin = "steptp"
    summary = "Turns a sum, product or minimum of a row into running ones and a copy of the last."
    preconditions = (
        "guarded-update",
        "not-floating",
        "several-reduction-loops",
        "rows-overlap",
        "reduction-loop-not-serial",
        "scores-differ",
        "row-of-one",
        "start-not-identity",
        "written-elsewhere",
        "read-too-early",
        "history-too-large",
    )

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """All preconditions; only a minimum has to be a float."""
        names = super().preconditions_at(site)
        minimum = site.text("op") == "min"
        return tuple(name for name in names if minimum or name != "not-floating")

    def candidates(self, program: SignedProgram) -> Iterable[Pass | Miss]:
        """Every sum, product and minimum over rows."""
        return find_passes(program, OPERATIONS)

    def sites_of(self, found: Pass) -> tuple[Site, ...]:
        """One site, at the reduction."""
        return (Site.of(self.name, found.path, op=found.op),)

    def objection(self, program: SignedProgram, found: Pass, site: Site) -> Fault:
        """An array larger than what it is made from, or the checker's objection."""
        steps, (_, source) = _steps(program, found), _source(program, found)
        if steps > source:
            message = (
                f"{steps} running values of {found.target.name} would take more room than the"
                f" {source} elements that they are made from"
            )
            return "history-too-large", message
        return fault(self.rewritten(program, found, site))

    def rewritten(self, program: SignedProgram, found: Pass, site: Site) -> SignedProgram:
        """Write the recurrence in the place of the reduction, and the copy behind its loop."""
        return prefix_reduction(program, found)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show that the reduction goes over whole rows in order, and who reads it."""
        rows = self.found_at(before, site)
        path, x, loop = rows.path, rows.target.name, rows.reduction.name
        extent = extent_fact(before, path, loop)
        shown = (
            evidence("guarded-update", guard_fact(before, path)),
            evidence("not-floating", dtype_fact(before, x)),
            evidence("several-reduction-loops", reduction_fact(before, path)),
            evidence("rows-overlap", target_fact(before, path)),
            evidence("reduction-loop-not-serial", kind_fact(before, path, loop)),
            evidence("scores-differ", value_fact(before, path)),
            evidence("row-of-one", extent),
            evidence("start-not-identity", *start_facts(before, (path,), rows.inits)),
            evidence("written-elsewhere", writers_fact(before, x)),
            evidence("read-too-early", readers_fact(before, x)),
            evidence("history-too-large", *_sizes(before, rows)),
        )
        names = newcomers(before, after)
        return Explanation(
            state=(before_fact("update_op", path, value=rows.op), extent),
            preconditions=tuple(
                one for one in shown if one.precondition in self.preconditions_at(site)
            ),
            decision=new_tensor_facts(after, names),
            transition=transition(before, after),
            soundness_rule="running-reduction",
            soundness=(
                *recurrence_facts(after, names),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _steps(program: SignedProgram, found: Pass) -> int:
    """How many elements an array of all steps has."""
    return prod(infer_shapes(program)[found.target.name]) * found.reduction.loop.extent


def _source(program: SignedProgram, found: Pass) -> tuple[str, int]:
    """The largest tensor that the operand reads, and its elements; 0 where it reads none."""
    shapes = infer_shapes(program)
    sizes = {access.name: prod(shapes[access.name]) for access in accesses_in(found.operand)}
    largest = max(sizes, key=lambda name: (sizes[name], name), default="")
    return largest, sizes.get(largest, 0)


def _sizes(program: SignedProgram, found: Pass) -> tuple[Fact, ...]:
    elements = prod(infer_shapes(program)[found.target.name])
    extent, (name, size) = found.reduction.loop.extent, _source(program, found)
    steps = elements * extent
    return (
        before_fact("elements_of", found.target.name, value=elements),
        pair("product", elements, extent, value=steps),
        before_fact("elements_of", name, value=size),
        pair("at_most", steps, size, value=steps <= size),
    )
