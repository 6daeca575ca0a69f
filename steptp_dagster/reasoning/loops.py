"""Derivations about how loops run: order, launches, hardware axes, lanes, unrolling."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

from steptp_dagster.leir.accesses import Statement, Use
from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import THREAD_AXES, Call, Expr, Loop, Nest
from steptp_dagster.leir.dependence import can_interchange
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.strides import aligned, stride
from steptp_dagster.leir.walk import (
    expressions,
    indices_in,
    iter_expr,
    loops_around,
    nests_in,
    replace_at,
)
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    equations_at,
    loop_at,
    name_of,
    nest_at,
    path_of,
    statement_at,
)
from steptp_dagster.strategies.facts import Value


def interchange(signed: SignedProgram, path: Value, first: Value, second: Value) -> str:
    """Whether two loops of a nest, or of headers perfectly nested in it, may change places.

    One of exact, reassociated, illegal, unknown.
    """
    nest = nest_at(signed, path)
    while len(nest.body) == 1 and isinstance(inner := nest.body[0], Nest):
        nest = Nest(nest.loops + inner.loops, inner.body)
    if not {name_of(first), name_of(second)} <= {loop.index for loop in nest.loops}:
        raise DerivationError(f"no loops {first!r} and {second!r} in one header at {path}")
    flat = SignedProgram(replace_at(signed.program, path_of(path), nest), signed.signature)
    return str(can_interchange(flat, path_of(path), name_of(first), name_of(second)))


def _around_and_in(signed: SignedProgram, path: Value) -> tuple[Loop, ...]:
    """Loops around, at and inside a statement, in text order."""
    inner = nests_in(statement_at(signed, path))
    own = tuple(loop for _, nest in inner for loop in nest.loops)
    return loops_around(signed.program, path_of(path)) + own


def loops_inside(signed: SignedProgram, path: Value, index: Value) -> tuple[str, ...]:
    """Indices of the loops inside a loop of a nest, in text order."""
    loop = loop_at(signed, path, index)
    own = tuple(one for _, nest in nests_in(nest_at(signed, path)) for one in nest.loops)
    if loop not in own:
        raise DerivationError(f"loop {index!r} is not of the nest at {path}")
    return tuple(one.index for one in own[own.index(loop) + 1 :])


def axes_in_use(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Hardware axes of the loops around, at and inside a statement, by first occurrence."""
    axes = (loop.axis for loop in _around_and_in(signed, path))
    return tuple(dict.fromkeys(axis for axis in axes if axis is not None))


def parallel_loops(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Indices of the ``P`` loops around, at and inside a statement."""
    return tuple(loop.index for loop in _around_and_in(signed, path) if loop.kind == "P")


def _statements(signed: SignedProgram, path: Value) -> list[Statement]:
    """The equations of the top-level nest around a statement."""
    statement_at(signed, path)
    top = path_of(path)[0]
    return [s for s in Analysis.of(signed).accesses.statements if s.path[0] == top]


def launch_loops(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Indices of the serial loops around all bound loops of the kernel of a statement."""
    longest = max(_statements(signed, path), key=lambda s: s.launch)
    return tuple(ref.name for ref in longest.chain[: longest.launch])


def thread_axes(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Sets of thread axes under which equations of a kernel stand, each as text; ``none``."""
    found = (
        " ".join(axis for axis in THREAD_AXES if axis in s.axes) or "none"
        for s in _statements(signed, path)
    )
    return tuple(dict.fromkeys(found))


def block_threads(signed: SignedProgram, path: Value) -> int:
    """Number of threads in a block of the kernel of a statement."""
    statement_at(signed, path)
    largest: dict[str, int] = {}
    for loop in _around_and_in(signed, path_of(path)[:1]):
        if loop.axis in THREAD_AXES and loop.axis is not None:
            largest[loop.axis] = max(largest.get(loop.axis, 0), loop.start + loop.extent)
    return prod(largest.values())


def local_bytes(signed: SignedProgram, path: Value) -> int:
    """Bytes of the local tensors that a thread of the kernel of a statement keeps."""
    statement_at(signed, path)
    top = path_of(path)[:1]
    uses = (use for use in Analysis.of(signed).accesses.under(top) if use.access.scope == "l")
    held = {use.tensor: DTYPES[use.access.dtype].bytes for use in uses}
    shapes = Analysis.of(signed).shapes
    return sum(size * prod(shapes[name]) for name, size in held.items())


def private_tensors(signed: SignedProgram, path: Value) -> tuple[str, ...]:
    """Tensors in shared or local memory that a statement uses, by first occurrence."""
    statement_at(signed, path)
    found = (u.tensor for u in _uses(signed, path) if u.access.scope != "g")
    return tuple(dict.fromkeys(found))


def _uses(signed: SignedProgram, path: Value) -> list[Use]:
    return Analysis.of(signed).accesses.under(path_of(path))


def strides(signed: SignedProgram, path: Value, index: Value) -> tuple[int, ...]:
    """Distinct distances, in elements, between what one access touches along a loop."""
    loop_at(signed, path, index)
    shapes = Analysis.of(signed).shapes
    found = [stride(u, shapes[u.tensor], name_of(index)) for u in _uses(signed, path)]
    if None in found:
        raise DerivationError(f"no constant stride along {index!r} at {path}")
    return tuple(sorted({step for step in found if step is not None}))


def unaligned(signed: SignedProgram, path: Value, index: Value) -> tuple[str, ...]:
    """Tensors whose accesses along a loop do not start at a multiple of its extent."""
    loop = loop_at(signed, path, index)
    shapes = Analysis.of(signed).shapes
    found = (
        u.tensor
        for u in _uses(signed, path)
        if stride(u, shapes[u.tensor], loop.index) != 0
        and not (
            loop.start % loop.extent == 0 and aligned(u, shapes[u.tensor], loop.index, loop.extent)
        )
    )
    return tuple(dict.fromkeys(found))


def vector_bytes(signed: SignedProgram, path: Value, index: Value) -> int:
    """Bytes of the widest access that moves along a loop, over all its iterations."""
    loop = loop_at(signed, path, index)
    shapes = Analysis.of(signed).shapes
    widths = (
        DTYPES[u.access.dtype].bytes
        for u in _uses(signed, path)
        if stride(u, shapes[u.tensor], loop.index) != 0
    )
    return max(widths, default=0) * loop.extent


def lane_conditions(signed: SignedProgram, path: Value, index: Value) -> tuple[str, ...]:
    """Guards and conditions of ``if_then_else`` in a statement that depend on a loop."""
    loop = loop_at(signed, path, index)
    found = (
        expr_text(condition)
        for located in equations_at(signed, path)
        for condition in (
            *(() if located.equation.guard is None else (located.equation.guard,)),
            *_conditions(expressions(located.equation)),
        )
        if loop.index in indices_in(condition)
    )
    return tuple(dict.fromkeys(found))


def _conditions(roots: tuple[Expr, ...]) -> Iterator[Expr]:
    for root in roots:
        for node in iter_expr(root):
            if isinstance(node, Call) and node.function == "if_then_else":
                yield node.arguments[0]


def unrolled_equations(signed: SignedProgram, path: Value) -> int:
    """How many equations a statement becomes once the unrolled loops in it are written out."""
    found = equations_at(signed, path)
    around = len(loops_around(signed.program, path_of(path)))
    return sum(
        prod(loop.extent for loop in located.loops[around:] if loop.kind == "U")
        for located in found
    )


KINDS: Final[Mapping[str, Derivation]] = {
    f.__name__: f
    for f in (
        interchange,
        loops_inside,
        axes_in_use,
        parallel_loops,
        launch_loops,
        thread_axes,
        block_threads,
        private_tensors,
        local_bytes,
        strides,
        unaligned,
        vector_bytes,
        lane_conditions,
        unrolled_equations,
    )
}
