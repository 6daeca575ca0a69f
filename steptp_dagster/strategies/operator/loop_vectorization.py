"""loop_vectorization: run the iterations of an innermost loop as the lanes of vectors."""

from typing import Final

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import Call, Loop, Nest
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.limits import VECTOR_BYTES
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.strides import aligned, stride
from steptp_dagster.leir.structure import VECTOR_WIDTHS
from steptp_dagster.leir.walk import Path, equations_in, expressions, indices_in, iter_expr
from steptp_dagster.strategies.base import Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.headers import (
    carries,
    loop_of,
    loops_inside,
    loops_with_nests,
    with_loop,
)
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.rewrite import nest_at, signed_with

#: Lanes that are worth a vector.
_LANES: Final = tuple(n for n in VECTOR_WIDTHS if n > 1)


class LoopVectorization(Strategy):
    """Make an innermost serial loop a vector loop: its iterations become lanes.

    The extent is the number of lanes, so a longer loop is split first (``loop_split``). Written
    elements lie side by side; read ones lie side by side or are one and the same for all lanes.
    Vectors take at most 16 bytes and start at a multiple of their own size, so that each is one
    load or store. No condition may tell lanes apart.

        === example
        --- before
        # input A f32[2,3,4]
        # output D f32[2,3,4]
        B^{2}_{tx=0}L^{3}_{a=0}L^{4}_{c=0}[D^{f32,g}_{tx,a,c}=A^{f32,g}_{tx,a,c}*2;];
        --- site statement 1: loop=c
        --- after
        B^{2}_{tx=0}L^{3}_{a=0}V^{4}_{c=0}[D^{f32,g}_{tx,a,c}=A^{f32,g}_{tx,a,c}*2;];
        --- numerics exact
    """

    name = "loop_vectorization"
    level = "operator"
    version = "1"
    summary = "Runs the iterations of an innermost loop as the lanes of vectors."
    preconditions = (
        "loops-inside",
        "lanes-unavailable",
        "dependence-carried",
        "lanes-diverge",
        "stride-unsuitable",
        "vector-too-wide",
        "vector-unaligned",
    )

    def survey(self, program: SignedProgram) -> Survey:
        """Every serial loop that runs more than once, in text order."""
        sites: list[Site] = []
        refusals: list[Refusal] = []
        for path, nest, loop in loops_with_nests(program):
            if loop.kind != "L" or loop.extent == 1:
                continue
            site = Site.of(self.name, path, loop=loop.index)
            broken = _fault(program, path, nest, loop) or fault(self.apply(program, site))
            if broken is None:
                sites.append(site)
            else:
                refusals.append(Refusal(self.name, path, *broken))
        return Survey(tuple(sites), tuple(refusals))

    def keeps_instances(self, site: Site) -> bool:
        """True: only the kind of the loop changes."""
        return site.strategy == self.name

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Change the kind of the loop."""
        nest = nest_at(program.program, site.path)
        return signed_with(program, site.path, with_loop(nest, site.text("loop"), kind="V"))

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The lanes, what they touch, and that they do not depend on each other."""
        path, index = site.path, site.text("loop")
        loop = loop_of(before, path, index)
        inner = loops_inside(nest_at(before.program, path), index)
        extent = before_fact("loop_extent", path, index, value=loop.extent)
        depends = before_fact("depends", path, index, value=carries(before, path, index))
        steps = before_fact("strides", path, index, value=_strides(before, path, loop))
        size = _bytes(before, path, loop)
        known = {
            "loops-inside": (
                before_fact("loops_inside", path, index, value=tuple(x.index for x in inner)),
            ),
            "lanes-unavailable": (extent,),
            "dependence-carried": (depends,),
            "lanes-diverge": (
                before_fact(
                    "lane_conditions",
                    path,
                    index,
                    value=_conditions(nest_at(before.program, path), loop),
                ),
            ),
            "stride-unsuitable": (steps,),
            "vector-too-wide": (
                before_fact("vector_bytes", path, index, value=size),
                pair("at_most", size, VECTOR_BYTES, value=size <= VECTOR_BYTES),
            ),
            "vector-unaligned": (
                before_fact("unaligned", path, index, value=_unaligned(before, path, loop)),
            ),
        }
        return Explanation(
            state=(extent, before_fact("loop_kind", path, index, value=loop.kind)),
            preconditions=tuple(evidence(p, *known[p]) for p in self.preconditions),
            decision=(after_fact("loop_kind", path, index, value="V"),),
            transition=transition(before, after),
            soundness_rule="independent-iterations",
            soundness=(depends,),
            effect=effects(before, after),
        )


def _fault(program: SignedProgram, path: Path, nest: Nest, loop: Loop) -> tuple[str, str] | None:
    """What forbids lanes, as reason and message."""
    name = f"loop {loop.index}"
    inside = loops_inside(nest, loop.index)
    if inside:
        return "loops-inside", f"{name} has loop {inside[0].index} inside"
    if loop.extent not in _LANES:
        return (
            "lanes-unavailable",
            f"{name} has extent {loop.extent}, and vectors have {_listed(_LANES)} lanes",
        )
    if carries(program, path, loop.index) != "none":
        return "dependence-carried", f"iterations of {name} are not known to be independent"
    if conditions := _conditions(nest, loop):
        return "lanes-diverge", f"{conditions[0]} tells the lanes of {name} apart"
    return _memory_fault(program, path, loop)


def _memory_fault(program: SignedProgram, path: Path, loop: Loop) -> tuple[str, str] | None:
    analysis = Analysis.of(program)
    for use in analysis.accesses.under(path):
        step = stride(use, analysis.shapes[use.tensor], loop.index)
        if step != 1 and (use.write or step != 0):
            return (
                "stride-unsuitable",
                f"{expr_text(use.access)} does not touch neighbours along loop {loop.index}",
            )
    if (size := _bytes(program, path, loop)) > VECTOR_BYTES:
        return (
            "vector-too-wide",
            f"loop {loop.index} would move {size} bytes at once, and a vector has {VECTOR_BYTES}",
        )
    if names := _unaligned(program, path, loop):
        return (
            "vector-unaligned",
            f"vectors of {names[0]} would not start at multiples of {loop.extent} elements",
        )
    return None


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(str(n) for n in numbers[:-1]) + f" or {numbers[-1]}"


def _conditions(nest: Nest, loop: Loop) -> tuple[str, ...]:
    """Guards and conditions of ``if_then_else`` below the nest that use the loop's index."""
    found: dict[str, None] = {}
    for located in equations_in(nest):
        equation = located.equation
        conditions = [] if equation.guard is None else [equation.guard]
        conditions += [
            node.arguments[0]
            for root in expressions(equation)
            for node in iter_expr(root)
            if isinstance(node, Call) and node.function == "if_then_else"
        ]
        for condition in conditions:
            if loop.index in indices_in(condition):
                found.setdefault(expr_text(condition))
    return tuple(found)


def _strides(program: SignedProgram, path: Path, loop: Loop) -> tuple[int, ...]:
    """Distinct strides of all accesses along the loop."""
    analysis = Analysis.of(program)
    steps = {
        stride(use, analysis.shapes[use.tensor], loop.index)
        for use in analysis.accesses.under(path)
    }
    return tuple(sorted(step for step in steps if step is not None))


def _bytes(program: SignedProgram, path: Path, loop: Loop) -> int:
    """Bytes of the widest vector."""
    analysis = Analysis.of(program)
    widths = [
        DTYPES[use.access.dtype].bytes
        for use in analysis.accesses.under(path)
        if stride(use, analysis.shapes[use.tensor], loop.index) != 0
    ]
    return max(widths, default=0) * loop.extent


def _unaligned(program: SignedProgram, path: Path, loop: Loop) -> tuple[str, ...]:
    """Tensors whose vectors do not all start at a multiple of the number of lanes."""
    analysis = Analysis.of(program)
    whole = loop.start % loop.extent == 0
    found = (
        use.tensor
        for use in analysis.accesses.under(path)
        for shape in (analysis.shapes[use.tensor],)
        if stride(use, shape, loop.index) != 0
        and not (whole and aligned(use, shape, loop.index, loop.extent))
    )
    return tuple(dict.fromkeys(found))
