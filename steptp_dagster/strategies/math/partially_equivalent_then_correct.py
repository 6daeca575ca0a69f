"""partially_equivalent_then_correct: two padded convolutions as one, with the seam put right."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import Nest
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.convolutions import (
    Geometry,
    Padded,
    Pair,
    axes,
    corresponding,
    nests_of,
    pairs,
)
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, quoted, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.remembered import PerProgram
from steptp_dagster.strategies.rewrite import new_tensor_names, readers_of, writers_of
from steptp_dagster.strategies.seam import together


class PartiallyEquivalentThenCorrect(Strategy):
    """Convolve two images with one kernel at once, and recompute what the seam spoiled.

    Two convolutions with the same kernel, padding, stride and dilation put their images side by
    side along one axis, pad once and convolve once. Where a window of the first image reaches past
    its end, it now sees pixels of the second one instead of zeros, and the other way round; these
    few outputs are set to 0 and accumulated again, in the order of before. All others are equal
    bit for bit. The second image must start at a multiple of the stride.

        === example
        --- before
        # input A f32[1,4]
        # input C f32[1,4]
        # param K f32[3]
        # output D f32[1,4]
        # output E f32[1,4]
        B^{1}_{tx=0}L^{6}_{a=0}[H^{f32,g}_{tx,a}=if_then_else(1<=a<5,A^{f32,g}_{tx,a-1},0);];
        B^{1}_{tx=0}L^{4}_{a=0}L^{3}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+H^{f32,g}_{tx,a+c}*K^{f32,g}_{c};];
        B^{1}_{tx=0}L^{6}_{a=0}[I^{f32,g}_{tx,a}=if_then_else(1<=a<5,C^{f32,g}_{tx,a-1},0);];
        B^{1}_{tx=0}L^{4}_{a=0}L^{3}_{c=0}[E^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}+I^{f32,g}_{tx,a+c}*K^{f32,g}_{c};];
        --- site statement 2: axis=a, with=E
        --- after
        B^{1}_{tx=0}L^{4}_{c=0}[F^{f32,g}_{tx,c}=A^{f32,g}_{tx,c};F^{f32,g}_{tx,c+4}=C^{f32,g}_{tx,c};];
        B^{1}_{tx=0}L^{10}_{a=0}[G^{f32,g}_{tx,a}=if_then_else(1<=a<9,F^{f32,g}_{tx,a-1},0);];
        B^{1}_{tx=0}L^{8}_{a=0}L^{3}_{c=0}[J^{f32,g}_{tx,a}=J^{f32,g}_{tx,a}+G^{f32,g}_{tx,a+c}*K^{f32,g}_{c};];
        B^{1}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx,a}=J^{f32,g}_{tx,a};E^{f32,g}_{tx,a}=J^{f32,g}_{tx,a+4};];
        B^{1}_{tx=0}L^{1}_{a=0}[D^{f32,g}_{tx,a+3}=0;L^{3}_{c=0}[D^{f32,g}_{tx,a+3}=D^{f32,g}_{tx,a+3}+if_then_else(1<=a+3+c<5,A^{f32,g}_{tx,a+3+c-1},0)*K^{f32,g}_{c};];];
        B^{1}_{tx=0}L^{1}_{a=0}[E^{f32,g}_{tx,a}=0;L^{3}_{c=0}[E^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}+if_then_else(1<=a+c<5,C^{f32,g}_{tx,a+c-1},0)*K^{f32,g}_{c};];];
        --- numerics exact
    """

    name = "partially_equivalent_then_correct"
    level = "math"
    version = "1"
    summary = "Runs two padded convolutions with one kernel as one and recomputes the seam."
    preconditions = (
        "kernels-differ",
        "padding-differs",
        "padded-copy-read-elsewhere",
        "operand-written-later",
        "seam-not-aligned",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every pair of padded convolutions and every axis, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for found in _candidates(program):
            path = (found.first.conv,)
            if not isinstance(found.pair, Pair):
                refusals.append(Refusal(self.name, path, *found.pair))
                continue
            for axis in found.axes:
                site = Site.of(
                    self.name, path, axis=axis.output.index, **{"with": found.second_name}
                )
                problem = _unaligned(axis) or fault(self.apply(program, site))
                if problem is None:
                    sites.append(site)
                else:
                    refusals.append(Refusal(self.name, path, *problem))
        return Survey(tuple(sites), tuple(refusals))

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the joint nests in the place of the first convolution; the other nests go."""
        return _result(program, *_at(program, site))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The two convolutions, what they share, and how far the seam reaches."""
        found, axis = _at(before, site)
        first, second = found.first, found.second
        one, two = ((p.conv,) for p in (first, second))
        new = _first_new(found)
        shapes = infer_shapes(before)
        fused = (new + 2,)
        operands = (first.image.name, second.image.name, first.kernel.name)
        evidence: dict[str, tuple[Fact, ...]] = {
            "kernels-differ": (
                before_fact("value_text", (*one, 0), value=expr_text(first.update.value)),
                before_fact("value_text", (*two, 0), value=expr_text(second.update.value)),
            ),
            "padding-differs": (
                before_fact("value_text", (first.pad, 0), value=expr_text(first.copy.value)),
                before_fact("value_text", (second.pad, 0), value=expr_text(second.copy.value)),
                *(
                    before_fact("shape_of", p.image.name, value=tuple(shapes[p.image.name]))
                    for p in (first, second)
                ),
            ),
            "padded-copy-read-elsewhere": tuple(
                before_fact(
                    "readers_of",
                    p.padded.name,
                    value=readers_of(before.program, p.padded.name),
                )
                for p in (first, second)
            ),
            "operand-written-later": tuple(
                before_fact("writers_of", name, value=writers_of(before.program, name))
                for name in operands
            ),
            "seam-not-aligned": (pair("divides", axis.length, axis.stride, value=True),),
        }
        index = axis.output.index
        return Explanation(
            state=(quoted("before", before, one), quoted("before", before, two)),
            preconditions=tuple(Evidence(name, evidence[name]) for name in self.preconditions),
            decision=(
                before_fact("loop_extent", one, index, value=axis.output.extent),
                after_fact("loop_extent", fused, index, value=axis.output.extent + axis.shift),
                pair("quotient", axis.length, axis.stride, value=axis.shift),
            ),
            transition=transition(before, after),
            soundness_rule="recomputed-at-the-seam",
            soundness=tuple(
                after_fact("loop_extent", (new + 4 + i,), index, value=count)
                for i, count in enumerate(_counts(axis))
            )
            or (after_fact("writes", (new + 3,), value=_results(found)),),
            effect=effects(before, after),
        )


def _counts(axis: Geometry) -> Iterator[int]:
    """How many outputs each correction recomputes; none for a correction that is not needed."""
    yield from (n for n in (axis.output.extent - axis.first_wrong, axis.first_right) if n > 0)


def _results(found: Pair) -> tuple[str, ...]:
    return found.first.update.target.name, found.second.update.target.name


def _first_new(found: Pair) -> int:
    """The position of the first new nest: where the first convolution stood."""
    return found.first.conv - sum(i < found.first.conv for i in nests_of(found))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Two convolutions: as a pair with the axes that come into question, or why they are none."""

    first: Padded
    second: Padded
    pair: Pair | tuple[str, str]
    axes: tuple[Geometry, ...]

    @property
    def second_name(self) -> str:
        """What the second convolution writes, by which sites name it."""
        return self.second.update.target.name


def _found_in(program: SignedProgram) -> tuple[_Candidate, ...]:
    """Every pair of padded convolutions, in text order."""
    found: list[_Candidate] = []
    for first, second in pairs(program):
        pair = corresponding(program, first, second)
        own = tuple(axes(program, pair)) if isinstance(pair, Pair) else ()
        found.append(_Candidate(first, second, pair, own))
    return tuple(found)


_candidates: Final = PerProgram(_found_in)


def _unaligned(axis: Geometry) -> tuple[str, str] | None:
    if axis.length % axis.stride:
        words = f"an image of length {axis.length} ends between two steps of {axis.stride}"
        return "seam-not-aligned", words
    return None


def _result(program: SignedProgram, found: Pair, axis: Geometry) -> SignedProgram:
    joined, padded, result = new_tensor_names(program, 3)
    made = together(program, found, axis, (joined, padded, result))
    gone = set(nests_of(found))
    nests: list[Nest] = []
    for i, nest in enumerate(program.program.nests):
        if i == found.first.conv:
            nests += made
        if i not in gone:
            nests.append(nest)
    return SignedProgram(type(program.program)(tuple(nests)), program.signature)


def _at(program: SignedProgram, site: Site) -> tuple[Pair, Geometry]:
    for found in _candidates(program):
        if (found.first.conv,) != site.path or found.second_name != site.text("with"):
            continue
        if isinstance(found.pair, Pair):
            for axis in found.axes:
                if axis.output.index == site.text("axis"):
                    return found.pair, axis
    raise ValueError(f"no site of this program: {site.describe()}")
