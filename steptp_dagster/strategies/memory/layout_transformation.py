"""layout_transformation: copy what a nest reads of one tensor into another layout."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Int, Loop, Nest, Program
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, at, equations_in, fresh_indices
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
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
from steptp_dagster.strategies.rewrite import (
    affine_sum,
    equation_at,
    new_tensor_names,
    read_texts,
    writers_of,
)

#: Threads of a block; a longer dimension is spread over blocks.
_MOST_THREADS = 1024


@dataclass(frozen=True, slots=True)
class _Box:
    """The smallest box of a tensor that holds all reads of a nest."""

    low: tuple[int, ...]
    shape: tuple[int, ...]


class LayoutTransformation(Strategy):
    """Copy the part of a global tensor that a nest reads into a new layout, and read the copy.

    The copy is a nest of its own in front of the reading one, with one loop per dimension of the
    box that is read, so that no element is copied twice. Its layout is a permutation, a merge of
    two neighbours, a flattening or a split of one dimension, as in ``set_storage_layout``; the
    numbers refer to the box. Other nests keep reading the tensor itself.

        === example
        --- before
        # input A f32[2,4]
        # input C f32[4,3]
        # output D f32[2,3]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];
        --- site statement 1: layout=permute, numbers=(1, 0), tensor=C
        --- after
        B^{4}_{tx=0}L^{3}_{a=0}[E^{f32,g}_{a,tx}=C^{f32,g}_{tx,a};];
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[
          D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*E^{f32,g}_{a,c};];
        --- numerics exact
    """

    name = "layout_transformation"
    level = "memory"
    version = "1"
    summary = "Copies what a nest reads of a tensor into another layout and reads the copy."
    preconditions = (
        "nothing-but-a-copy",
        "written-in-nest",
        "region-not-written",
        "no-other-layout",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every nest with every tensor that it reads and every layout, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for i in range(len(program.program.nests)):
            for found in self._nest(program, (i,)):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    refusals.append(found)
        return Survey(tuple(sites), tuple(refusals))

    def _nest(self, program: SignedProgram, path: Path) -> Iterator[Site | Refusal]:
        if _only_copies(program, path):
            message = "the nest only copies, so another copy gains nothing"
            yield Refusal(self.name, path, "nothing-but-a-copy", message)
            return
        uses = Analysis.of(program).accesses.under(path)
        written = {use.tensor for use in uses if use.write}
        for tensor in dict.fromkeys(use.tensor for use in uses if not use.write):
            reads = _reads(program, path, tensor)
            if tensor in written:
                message = f"{tensor} is written in the nest that reads it"
                yield Refusal(self.name, path, "written-in-nest", message)
                continue
            offered = tuple(layouts(_box(program, reads).shape))
            if not offered:
                message = f"what is read of {tensor} has no other layout"
                yield Refusal(self.name, path, "no-other-layout", message)
            yield from self._checked(program, path, tensor, offered)

    def _checked(
        self, program: SignedProgram, path: Path, tensor: str, offered: tuple[Layout, ...]
    ) -> Iterator[Site | Refusal]:
        def judge(layout: Layout) -> tuple[str, str] | None:
            return fault(self.apply(program, self._site(path, tensor, layout)))

        for layout, broken in judged(offered, judge):
            if broken is None:
                yield self._site(path, tensor, layout)
            elif "(unwritten-read)" in broken[1]:
                message = f"the box that is read of {tensor} holds elements that nobody wrote"
                yield Refusal(self.name, path, "region-not-written", message)
                return
            else:
                yield Refusal(self.name, path, *broken)

    def _site(self, path: Path, tensor: str, layout: Layout) -> Site:
        return Site.of(self.name, path, tensor=tensor, **parameters(layout))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the copy in front of the nest and redirect the nest's reads."""
        tensor, layout = site.text("tensor"), layout_of(site)
        reads = _reads(program, site.path, tensor)
        box = _box(program, reads)
        name = new_tensor_names(program, 1)[0]
        old = reads[0].access
        converter_at = Analysis.of(program).accesses.converter

        def change(path: Path, node: Access) -> Access:
            if node.name != tensor:
                return node
            local = tuple(
                affine_sum(s, -low) for s, low in zip(node.subscripts, box.low, strict=True)
            )
            converter = converter_at(path)
            return replace(
                node, name=name, subscripts=layout.subscripts(local, box.shape, converter)
            )

        nest = with_accesses(at(program.program, site.path), site.path, change)
        k = site.path[0]
        nests = program.program.nests
        if not isinstance(nest, Nest):
            raise TypeError(f"the statement at {site.path} is an equation")
        copied = (*nests[:k], _copy(old, name, box, layout), nest, *nests[k + 1 :])
        return SignedProgram(Program(copied), program.signature)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show what is read of the tensor, who writes it, and the copy's shape."""
        tensor, layout, path = site.text("tensor"), layout_of(site), site.path
        reads = _reads(before, path, tensor)
        box = _box(before, reads)
        name = new_tensor_names(before, 1)[0]
        old = reads[0].access
        nest = at(before.program, path)
        copy, moved = (*path, 0), (path[0] + 1,)
        texts = before_fact("read_texts", path, tensor, value=read_texts(nest, tensor))
        written = before_fact("writers_of", tensor, value=writers_of(before.program, tensor))
        shape = before_fact("shape_of", tensor, value=Analysis.of(before).shapes[tensor])
        new = Analysis.of(after).shapes[name]
        value = expr_text(equation_at(after.program, copy).value)
        trips = after_fact("trip_count", copy, value=prod(box.shape))
        return Explanation(
            state=(texts, shape),
            preconditions=(
                evidence(
                    "nothing-but-a-copy",
                    *(
                        before_fact("value_text", one.path, value=expr_text(one.equation.value))
                        for one in equations_in(nest, path)
                    ),
                ),
                evidence("written-in-nest", written, before_fact("scope_of", tensor, value="g")),
                evidence("region-not-written", after_fact("value_text", copy, value=value), trips),
                evidence("no-other-layout", after_fact("shape_of", name, value=new)),
            ),
            decision=(
                pair("new_tensors", value=(name,)),
                after_fact("shape_of", name, value=new),
                *parameter_facts(layout, box.shape),
            ),
            transition=transition(before, after),
            soundness_rule="copy-holds-same-values",
            soundness=(
                before_fact("dtype_of", tensor, value=old.dtype),
                after_fact("dtype_of", name, value=old.dtype),
                after_fact(
                    "read_texts",
                    moved,
                    name,
                    value=read_texts(at(after.program, moved), name),
                ),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )


def _only_copies(program: SignedProgram, path: Path) -> bool:
    return all(
        isinstance(one.equation.value, Access)
        for one in equations_in(at(program.program, path), path)
    )


def _reads(program: SignedProgram, path: Path, tensor: str) -> list[Use]:
    uses = Analysis.of(program).accesses.under(path)
    return [use for use in uses if use.tensor == tensor and not use.write]


def _box(program: SignedProgram, reads: list[Use]) -> _Box:
    """The box of all reads: valid reads lie inside the tensor, so it is cut off there."""
    shape = Analysis.of(program).shapes[reads[0].tensor]
    low = [extent - 1 for extent in shape]
    high = [0] * len(shape)
    for use in reads:
        if use.bounds.empty:
            continue
        for d, form in enumerate(use.subscripts):
            least, most = use.bounds.interval(form)
            low[d] = min(low[d], max(least, 0))
            high[d] = max(high[d], min(most, shape[d] - 1))
    extents = tuple(max(h - lo + 1, 1) for lo, h in zip(low, high, strict=True))
    return _Box(tuple(low), extents)


def _copy(old: Access, name: str, box: _Box, layout: Layout) -> Nest:
    """One loop per dimension of the box, the first one bound to threads or, if long, to blocks."""
    names = fresh_indices(())
    loops: list[Loop] = []
    here: list[Expr] = []
    for extent in box.shape:
        if extent == 1:
            here.append(Int(0))
        elif loops:
            loops.append(Loop("L", next(names), extent))
            here.append(Index(loops[-1].index))
        else:
            loops.append(Loop("B", "tx" if extent <= _MOST_THREADS else "bx", extent))
            here.append(Index(loops[-1].index))
    source = tuple(affine_sum(e, low) for e, low in zip(here, box.low, strict=True))
    return Nest(
        tuple(loops),
        (
            Equation(
                Access(name, old.dtype, "g", layout.subscripts(tuple(here), box.shape)),
                Access(old.name, old.dtype, "g", source),
            ),
        ),
    )
