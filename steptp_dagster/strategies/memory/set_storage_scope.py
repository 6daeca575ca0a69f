"""set_storage_scope: move an intermediate to global, shared or local memory."""

from typing import Final

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.printer import loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, at, loops_around, map_expr, map_program
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.ownership import owned
from steptp_dagster.strategies.rewrite import read_texts, readers_of, write_texts, writers_of

_SCOPES: Final = ("g", "s", "l")


class SetStorageScope(Strategy):
    """Move an intermediate between global, shared and local memory; its subscripts stay.

    Every access to the tensor gets the new scope. Into ``s`` or ``l`` it goes only where one nest
    holds all its accesses, and each of its elements must belong to one block or thread: some
    dimensions, the same in all accesses, tell the blocks or threads apart. So nobody reads what
    another one wrote, neither before nor after.

        === example
        --- before
        # input A f32[2,3]
        # output E f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}[
          D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a});E^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}*2;];
        --- site statement 1.1: scope=l, tensor=D
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[
          D^{f32,l}_{tx,a}=exp(A^{f32,g}_{tx,a});E^{f32,g}_{tx,a}=D^{f32,l}_{tx,a}*2;];
        --- numerics exact
    """

    name = "set_storage_scope"
    level = "memory"
    version = "1"
    summary = "Moves an intermediate to global, shared or local memory."
    preconditions = (
        "known-variable",
        "several-nests",
        "shared-elements",
        "storage-too-large",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every written tensor with every other scope, by first write."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        accesses = Analysis.of(program).accesses
        first: dict[str, Path] = {}
        for statement in accesses.statements:
            first.setdefault(statement.equation.target.name, statement.path)
        for tensor, path in first.items():
            if tensor in program.signature.by_name:
                message = f"{tensor} is an output and stays in global memory"
                refusals.append(Refusal(self.name, path, "known-variable", message))
                continue
            for scope in _SCOPES:
                if scope == accesses.writes[tensor][0].access.scope:
                    continue
                site = Site.of(self.name, path, tensor=tensor, scope=scope)
                problem = self._objection(program, site)
                if problem is None:
                    sites.append(site)
                else:
                    refusals.append(Refusal(self.name, path, *problem))
        return Survey(tuple(sites), tuple(refusals))

    def _objection(self, program: SignedProgram, site: Site) -> tuple[str, str] | None:
        tensor, scope = site.text("tensor"), site.text("scope")
        uses = Analysis.of(program).accesses.by_tensor[tensor]
        if scope != "g" and len({use.statement.path[0] for use in uses}) > 1:
            return "several-nests", f"{tensor} is used in several nests and would not outlive one"
        if not owned(uses, scope):
            return (
                "shared-elements",
                f"no subscript of {tensor} says which block or thread an element belongs to",
            )
        broken = fault(self.apply(program, site))
        if broken is not None and broken[0] == "result-over-limits":
            return "storage-too-large", broken[1]
        return broken

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Give every access to the tensor the new scope."""
        tensor, scope = site.text("tensor"), site.text("scope")

        def visit(node: Expr) -> Expr:
            if isinstance(node, Access) and node.name == tensor:
                return Access(node.name, node.dtype, scope, node.subscripts)
            return node

        changed = map_program(program.program, lambda expr: map_expr(expr, visit))
        return SignedProgram(changed, program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show who writes and reads the tensor, by which subscripts, and how large it is."""
        tensor, scope = site.text("tensor"), site.text("scope")
        analysis = Analysis.of(before)
        access = analysis.accesses.writes[tensor][0].access
        writers, readers = writers_of(before.program, tensor), readers_of(before.program, tensor)
        nests = sorted({path[:1] for path in (*writers, *readers)})
        size = DTYPES[access.dtype].bytes
        for extent in analysis.shapes[tensor]:
            size *= extent
        around = loops_text(loops_around(before.program, site.path))
        texts = [
            before_fact(kind, nest, tensor, value=found(at(before.program, nest), tensor))
            for nest in nests
            for kind, found in (("write_texts", write_texts), ("read_texts", read_texts))
        ]
        users = (
            before_fact("writers_of", tensor, value=writers),
            before_fact("readers_of", tensor, value=readers),
        )
        return Explanation(
            state=(
                before_fact("scope_of", tensor, value=access.scope),
                before_fact("shape_of", tensor, value=analysis.shapes[tensor]),
            ),
            preconditions=(
                evidence("known-variable", before_fact("role_of", tensor, value="intermediate")),
                evidence("several-nests", *users),
                evidence(
                    "shared-elements",
                    before_fact("header_text", site.path, value=around),
                    *texts,
                ),
                evidence("storage-too-large", after_fact("bytes_of", tensor, value=size)),
            ),
            decision=(after_fact("scope_of", tensor, value=scope),),
            transition=transition(before, after),
            soundness_rule="storage-of-its-owner",
            soundness=(
                *users,
                before_fact("dtype_of", tensor, value=access.dtype),
                after_fact("dtype_of", tensor, value=access.dtype),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )
