"""Target limits: what a GPU of the supported kinds cannot launch or hold.

Apart from validity: a program over a limit still has a meaning. The thread block of a nest is as
large as the largest extents of its thread axes, over sibling loops.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import Final

from steptp_dagster.leir.accesses import Accesses, LoopRef
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import AXES, THREAD_AXES
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.shapes import Shape
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.uses import NestUses
from steptp_dagster.leir.violation import Violation
from steptp_dagster.leir.walk import Path

THREADS_PER_BLOCK: Final = 1024
AXIS_LIMITS: Final[dict[str, int]] = {
    "bx": 2**31 - 1,
    "by": 65535,
    "bz": 65535,
    "tx": 1024,
    "ty": 1024,
    "tz": 64,
}
#: Bytes of ``s`` tensors per block, of ``l`` tensors per thread, and of one vector.
SHARED_BYTES: Final = 48 * 1024
LOCAL_BYTES: Final = 1024
VECTOR_BYTES: Final = 16

#: Kinds of loops with limits of their own.
_LIMITED: Final = frozenset({"B", "V"})


def check_limits(signed: SignedProgram) -> tuple[Violation, ...]:
    """All exceeded target limits, in text order; empty: the program fits.

    Kinds: ``axis-extent``, ``threads-per-block``, ``shared-memory``, ``local-memory``,
    ``vector-bytes``. ``l`` tensors may take 1024 bytes per thread, the 255 registers of a thread.
    """
    analysis = Analysis.of(signed)
    accesses, shapes = analysis.accesses, analysis.shapes
    found: list[Violation] = []
    vectors: list[Violation] = []
    for i, facts in enumerate(accesses.facts):
        private = tuple(
            [(t.name, shapes[t.name]) for t in facts.outline.touched if not t.is_global]
        )
        if not private and facts.outline.kinds.isdisjoint(_LIMITED):
            continue
        check = partial(_nest, accesses, shapes, i)
        for rule, violation in facts.found(("limits", private), check):
            (vectors if rule else found).append(violation)
    return tuple(sorted((*found, *vectors), key=lambda v: v.path))


def _nest(
    accesses: Accesses, shapes: Mapping[str, Shape], i: int
) -> tuple[tuple[int, Violation], ...]:
    """The limits that one nest exceeds; those of vectors have the number 1."""
    part = accesses.part(i)
    outline = accesses.facts[i].outline
    found: list[tuple[int, Violation]] = []
    if "B" in outline.kinds:
        loops = [(path, ref) for path, refs in part.loops_of.items() for ref in refs]
        found.extend((0, v) for v in _launches(loops, i, part.nest.pos))
    if not all(touched.is_global for touched in outline.touched):
        found.extend((0, v) for v in _memory(part, shapes, i))
    if "V" in outline.kinds:
        found.extend((1, v) for v in _vectors(part))
    return tuple(found)


def _launches(loops: list[tuple[Path, LoopRef]], nest: int, pos: int) -> Iterator[Violation]:
    largest: dict[str, int] = {}
    for path, ref in loops:
        if ref.loop.axis is None:
            continue
        axis, extent = ref.loop.axis, ref.loop.start + ref.loop.extent
        largest[axis] = max(largest.get(axis, 0), extent)
        if extent > AXIS_LIMITS[axis]:
            yield Violation(
                "axis-extent",
                f"loop {ref.name} has extent {extent}",
                path,
                ref.loop.pos,
                f"{axis} of extent {extent}",
                f"{axis} <= {AXIS_LIMITS[axis]}",
            )
    threads = [axis for axis in AXES if axis in THREAD_AXES and axis in largest]
    size = prod(largest[axis] for axis in threads)
    if size > THREADS_PER_BLOCK:
        yield Violation(
            "threads-per-block",
            f"a block has {size} threads",
            (nest,),
            pos,
            " * ".join(f"{axis} {largest[axis]}" for axis in threads),
            f"at most {THREADS_PER_BLOCK} threads",
        )


def _memory(part: NestUses, shapes: Mapping[str, Shape], nest: int) -> Iterator[Violation]:
    sizes: dict[str, dict[str, int]] = {"s": {}, "l": {}}
    for use in part.uses:
        if use.access.scope in sizes:
            size = prod(shapes[use.tensor]) * DTYPES[use.access.dtype].bytes
            sizes[use.access.scope][use.tensor] = size
    for scope, kind, limit, what in (
        ("s", "shared-memory", SHARED_BYTES, "a block's shared memory"),
        ("l", "local-memory", LOCAL_BYTES, "a thread's local memory"),
    ):
        total = sum(sizes[scope].values())
        if total > limit:
            names = ", ".join(f"{name} {size}" for name, size in sorted(sizes[scope].items()))
            yield Violation(
                kind,
                f"{what} takes {total} bytes",
                (nest,),
                part.nest.pos,
                f"{total} bytes ({names})",
                f"at most {limit} bytes",
            )


def _vectors(part: NestUses) -> Iterator[Violation]:
    for statement in part.statements:
        for ref in statement.chain:
            if ref.loop.kind != "V":
                continue
            widest = max(
                (
                    DTYPES[use.access.dtype].bytes
                    for use in part.by_statement[statement.path]
                    if any(ref.name == a for f in use.forms for a, _ in f.terms)
                ),
                default=0,
            )
            if widest * ref.loop.extent > VECTOR_BYTES:
                yield Violation(
                    "vector-bytes",
                    f"V loop {ref.name} moves {widest * ref.loop.extent} bytes at once",
                    statement.path,
                    ref.loop.pos,
                    f"{ref.loop.extent} lanes of {widest} bytes",
                    f"at most {VECTOR_BYTES} bytes",
                )
