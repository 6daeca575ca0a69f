"""set_storage_layout: change the layout of an intermediate in all accesses at once."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Nest, Program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.nest_memory import known_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, at
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.layouts import (
    Layout,
    judged,
    layout_of,
    layouts,
    parameter_facts,
    parameters,
    with_accesses,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import read_texts, readers_of, write_texts, writers_of


class SetStorageLayout(Strategy):
    """Permute, merge, flatten or split the dimensions of an intermediate, wherever it is used.

    One map takes the subscripts of every access to the tensor, those inside other subscripts and
    conditions included. Extents are those of the whole tensor, not of one access.

    * ``layout=permute, numbers=(1, 0)``: new dimension 0 is old dimension 1, and so on.
    * ``layout=merge, numbers=(0,)``: dimensions 0 and 1 become one, row-major.
    * ``layout=flatten``: all dimensions become one, row-major.
    * ``layout=split, numbers=(0, 4)``: dimension 0 becomes quotient and remainder by 4; where 4
      does not divide its extent, some elements of the new tensor stay unused.

        === example
        --- before
        # input A f32[2,3]
        # output E f32[3,2]
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{tx,a}=exp(A^{f32,g}_{tx,a});];
        B^{3}_{tx=0}L^{2}_{a=0}[E^{f32,g}_{tx,a}=D^{f32,g}_{a,tx}+1;];
        --- site statement 1.1: layout=permute, numbers=(1, 0), tensor=D
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}[D^{f32,g}_{a,tx}=exp(A^{f32,g}_{tx,a});];
        B^{3}_{tx=0}L^{2}_{a=0}[E^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+1;];
        --- numerics exact
    """

    name = "set_storage_layout"
    level = "memory"
    version = "1"
    summary = "Permutes, merges, flattens or splits the dimensions of an intermediate."
    preconditions = (
        "known-variable",
        "layout-unchanged",
        "extent-without-factor",
        "storage-too-large",
    )

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """A split needs a factor, the others dimensions that are really exchanged or joined."""
        moot = "layout-unchanged" if site.text("layout") == "split" else "extent-without-factor"
        return tuple(p for p in super().preconditions_at(site) if p != moot)

    def survey(self, program: SignedProgram) -> Survey:
        """Every written tensor with every layout, by first write."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        first: dict[str, Path] = {}
        for statement in Analysis.of(program).accesses.statements:
            first.setdefault(statement.equation.target.name, statement.path)
        for tensor, path in first.items():
            for found in self._candidates(program, tensor, path):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _candidates(
        self, program: SignedProgram, tensor: str, path: Path
    ) -> Iterator[Site | Refusal]:
        if tensor in program.signature.by_name:
            message = f"{tensor} is an output and keeps its shape"
            yield Refusal(self.name, path, "known-variable", message)
            return
        shape = Analysis.of(program).shapes[tensor]
        offered = tuple(layouts(shape))
        if all(layout.kind == "split" for layout in offered):
            message = f"{tensor} has fewer than two dimensions of extent above 1"
            yield Refusal(self.name, path, "layout-unchanged", message)
        if all(layout.kind != "split" for layout in offered):
            message = f"no dimension of {tensor} has a factor between 1 and its extent"
            yield Refusal(self.name, path, "extent-without-factor", message)

        def judge(layout: Layout) -> tuple[str, str] | None:
            return fault(self.apply(program, self._site(path, tensor, layout)))

        for layout, broken in judged(offered, judge):
            site = self._site(path, tensor, layout)
            if broken is None and layout.kind == "permute" and self._changes_nothing(program, site):
                message = f"the subscripts of {tensor} that change places are equal"
                yield Refusal(self.name, path, "layout-unchanged", message)
            elif broken is None:
                yield site
            elif broken[0] == "result-over-limits":
                yield Refusal(self.name, path, "storage-too-large", broken[1])
            else:
                yield Refusal(self.name, path, *broken)

    def _changes_nothing(self, program: SignedProgram, site: Site) -> bool:
        return self.apply(program, site).program == program.program

    def _site(self, path: Path, tensor: str, layout: Layout) -> Site:
        return Site.of(self.name, path, tensor=tensor, **parameters(layout))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Map the subscripts of every access to the tensor."""
        tensor, layout = site.text("tensor"), layout_of(site)
        shape = Analysis.of(program).shapes[tensor]
        converter_at = cache(Analysis.of(program).accesses.converter)

        def change(path: Path, node: Access) -> Access:
            if node.name != tensor:
                return node
            converter = converter_at(path)
            return replace(node, subscripts=layout.subscripts(node.subscripts, shape, converter))

        nests = [
            with_accesses(nest, (i,), change) if tensor in known_nest(nest).outline.names else nest
            for i, nest in enumerate(program.program.nests)
        ]
        kept = tuple([nest for nest in nests if isinstance(nest, Nest)])
        return SignedProgram(Program(kept), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show old and new shape and every access before and after."""
        tensor, layout = site.text("tensor"), layout_of(site)
        shape = Analysis.of(before).shapes[tensor]
        new = Analysis.of(after).shapes[tensor]
        access = Analysis.of(before).accesses.writes[tensor][0].access
        users = (
            before_fact("writers_of", tensor, value=writers_of(before.program, tensor)),
            before_fact("readers_of", tensor, value=readers_of(before.program, tensor)),
        )
        role = before_fact("role_of", tensor, value="intermediate")
        old_shape = before_fact("shape_of", tensor, value=shape)
        new_shape = after_fact("shape_of", tensor, value=new)
        known = {
            "known-variable": (role,),
            "layout-unchanged": (old_shape,),
            "extent-without-factor": parameter_facts(layout, shape),
            "storage-too-large": (
                after_fact("scope_of", tensor, value=access.scope),
                after_fact("bytes_of", tensor, value=prod(new) * DTYPES[access.dtype].bytes),
            ),
        }
        return Explanation(
            state=(old_shape, *users),
            preconditions=tuple(Evidence(p, known[p]) for p in self.preconditions_at(site)),
            decision=(*parameter_facts(layout, shape), new_shape),
            transition=transition(before, after),
            soundness_rule="injective-layout",
            soundness=(
                *_accesses(before, tensor, before_fact),
                *_accesses(after, tensor, after_fact),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _accesses(program: SignedProgram, tensor: str, fact: Callable[..., Fact]) -> tuple[Fact, ...]:
    """How each nest that uses the tensor writes and reads it."""
    used = (*writers_of(program.program, tensor), *readers_of(program.program, tensor))
    return tuple(
        fact(kind, nest, tensor, value=found(at(program.program, nest), tensor))
        for nest in sorted({path[:1] for path in used})
        for kind, found in (("write_texts", write_texts), ("read_texts", read_texts))
    )
