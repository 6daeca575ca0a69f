"""Loop headers as strategies see them: which loops stand where, and how a header is changed.

A *band* is a maximal run of loops with nothing between them: the header of a nest and those of the
nests that are, one in the other, its only statement.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import THREAD_AXES, Loop, Nest, Statement
from steptp_dagster.leir.dependence import Answer, carried
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Update, own_update
from steptp_dagster.leir.uses import Statement as Placed
from steptp_dagster.leir.uses import launch_indices
from steptp_dagster.leir.walk import Path, all_nests, loops_around, nests_in, replace_at
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.rewrite import nest_at


@dataclass(frozen=True, slots=True)
class Band:
    """The loops of a band, how many each header holds, and the body below them."""

    loops: tuple[Loop, ...]
    sizes: tuple[int, ...]
    body: tuple[Statement, ...]

    def nest(self, loops: tuple[Loop, ...]) -> Nest:
        """The band with other loops, as many, in headers of the same sizes."""
        body, end = self.body, len(loops)
        for size in reversed(self.sizes):
            found = Nest(loops[end - size : end], body)
            body, end = (found,), end - size
        return found


def band_at(program: SignedProgram, path: Path) -> Band:
    """The band that starts with the header of the nest at ``path``."""
    nest = nest_at(program.program, path)
    loops, sizes = nest.loops, [len(nest.loops)]
    while len(nest.body) == 1 and isinstance(inner := nest.body[0], Nest):
        nest = inner
        loops += nest.loops
        sizes.append(len(nest.loops))
    return Band(loops, tuple(sizes), nest.body)


def in_one_header(program: SignedProgram, path: Path) -> SignedProgram:
    """The same program with the band at ``path`` as one header."""
    band = band_at(program, path)
    if len(band.sizes) == 1:
        return program
    flat = replace_at(program.program, path, Nest(band.loops, band.body))
    return SignedProgram(flat, program.signature)


def with_loop(nest: Nest, index: str, **changes: object) -> Nest:
    """The nest with fields of one loop of its header changed."""
    loops = tuple(
        replace(loop, **changes) if loop.index == index else loop  # type: ignore[arg-type]
        for loop in nest.loops
    )
    return replace(nest, loops=loops)


def loops_with_nests(program: SignedProgram) -> Iterator[tuple[Path, Nest, Loop]]:
    """Every loop of a program, in text order, with its nest."""
    for path, nest in all_nests(program.program):
        for loop in nest.loops:
            yield path, nest, loop


def loop_of(program: SignedProgram, path: Path, index: str) -> Loop:
    """The loop ``index`` in the header of the nest at ``path``."""
    return next(x for x in nest_at(program.program, path).loops if x.index == index)


def loops_inside(nest: Nest, index: str) -> tuple[Loop, ...]:
    """Loops inside one loop of a nest's header, in text order."""
    own = tuple(loop for _, inner in nests_in(nest) for loop in inner.loops)
    place = [loop.index for loop in nest.loops].index(index)
    return own[place + 1 :]


def around_and_in(program: SignedProgram, path: Path) -> tuple[Loop, ...]:
    """Loops around, at and inside the nest at ``path``, in text order."""
    nest = nest_at(program.program, path)
    inner = tuple(loop for _, found in nests_in(nest) for loop in found.loops)
    return loops_around(program.program, path) + inner


def axes_in(loops: tuple[Loop, ...]) -> tuple[str, ...]:
    """Hardware axes of loops, by first occurrence."""
    return tuple(dict.fromkeys(loop.axis for loop in loops if loop.axis is not None))


def launch_loops(program: SignedProgram, path: Path) -> tuple[str, ...]:
    """Indices of the serial loops around all bound loops of the kernel around ``path``."""
    return launch_indices(program.program.nests[path[0]])


def private_tensors(program: SignedProgram, path: Path) -> tuple[str, ...]:
    """Names of the ``l`` and ``s`` tensors used in the statement at ``path``, in text order."""
    uses = Analysis.of(program).accesses.under(path)
    return tuple(dict.fromkeys(u.tensor for u in uses if u.access.scope != "g"))


def rounding_reductions(program: SignedProgram, path: Path, index: str) -> bool:
    """Whether a float sum or product in the nest at ``path`` reduces over the loop ``index``."""
    return any(
        update.op in ("+", "*") and DTYPES[statement.equation.target.dtype].is_float
        for statement, update in _reductions(program, path, index)
    )


def reduces(program: SignedProgram, path: Path, index: str) -> bool:
    """Whether any pure update in the nest at ``path`` reduces over the loop ``index``."""
    return bool(_reductions(program, path, index))


def _reductions(program: SignedProgram, path: Path, index: str) -> list[tuple[Placed, Update]]:
    part = Analysis.of(program).accesses.part(path[0])
    found = [(s, own_update(part, s)) for s in part.statements if s.path[: len(path)] == path]
    return [
        (statement, update)
        for statement, update in found
        if update.kind == "update" and index in update.reduction_loops
    ]


def loops_fact(program: SignedProgram, path: Path) -> Fact:
    """The loops at and around the nest at ``path``, by index."""
    around = loops_around(program.program, path) + nest_at(program.program, path).loops
    return before_fact("loops_around", path, value=tuple(loop.index for loop in around))


def trips(program: SignedProgram, path: Path) -> int:
    """How often the loops at and around the nest at ``path`` run."""
    count = 1
    for loop in loops_around(program.program, path) + nest_at(program.program, path).loops:
        count *= loop.extent
    return count


def block_threads(program: SignedProgram, path: Path) -> int:
    """Number of threads in a block of the kernel around ``path``."""
    accesses = Analysis.of(program).accesses
    largest: dict[str, int] = {}
    for refs in accesses.part(path[0]).loops_of.values():
        for ref in refs:
            if ref.loop.axis in THREAD_AXES:
                end = ref.loop.start + ref.loop.extent
                largest[ref.loop.axis] = max(largest.get(ref.loop.axis, 0), end)
    return prod(largest.values())


def thread_sets(program: SignedProgram, path: Path) -> tuple[str, ...]:
    """The sets of thread axes of the equations of the kernel around ``path``, as texts."""
    accesses = Analysis.of(program).accesses
    found = (
        " ".join(axis for axis in THREAD_AXES if axis in s.axes) or "none"
        for s in accesses.part(path[0]).statements
    )
    return tuple(dict.fromkeys(found))


def carries(program: SignedProgram, path: Path, index: str) -> str:
    """What a loop carries, as the facts say it: none, reduction, dependence or unknown."""
    found = carried(program, path, index)
    if found.answer is Answer.NONE and found.reduction is not Answer.NONE:
        return "reduction"
    return found.answer.name.lower()


def bound_inside(program: SignedProgram, path: Path, index: str) -> bool:
    """Whether a bound loop stands inside the loop ``index`` of the nest at ``path``."""
    nest = nest_at(program.program, path)
    return any(loop.axis is not None for loop in loops_inside(nest, index))
