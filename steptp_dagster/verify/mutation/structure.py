"""Mistakes in structure: loop kinds, scopes, order of statements and loops, launches."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Final

from steptp_dagster.leir.ast import (
    BLOCK_AXES,
    THREAD_AXES,
    Access,
    Binary,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Kind,
    Loop,
    Nest,
    Statement,
)
from steptp_dagster.leir.printer import loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    all_nests,
    equations,
    map_expr,
    map_program,
    replace_at,
)
from steptp_dagster.verify.mutation.edits import (
    Change,
    bodies,
    each_loop,
    free_index,
    where,
    with_body,
    with_loop,
    with_nest,
)

#: More threads than a block may have.
_TOO_MANY: Final = 2048


def race(signed: SignedProgram) -> Iterator[Change]:
    """A loop whose iterations may depend on each other runs in parallel, or on another axis."""
    kinds: tuple[Kind, ...] = ("P", "V")
    for path, nest, k, loop in each_loop(signed):
        if loop.extent == 1:
            continue
        if loop.kind == "B":
            for axis in ("tx", "bx") if loop.axis in BLOCK_AXES else ("bx",):
                if axis != loop.axis:
                    new = Loop("B", _on_axis(signed, axis), loop.extent, loop.start)
                    yield with_nest(signed, path, with_loop(nest, k, new))
            continue
        for kind in kinds:
            if kind != loop.kind:
                yield with_nest(signed, path, with_loop(nest, k, replace(loop, kind=kind)))
        for axis in ("tx", "ty", "bx"):
            new = Loop("B", _on_axis(signed, axis), loop.extent, loop.start)
            yield with_nest(signed, path, with_loop(nest, k, new))


def wrong_scope(signed: SignedProgram) -> Iterator[Change]:
    """A tensor lives in memory that others do not see, or not long enough."""
    first: dict[str, str] = {}
    for located in equations(signed.program):
        first.setdefault(located.equation.target.name, located.equation.target.scope)
    for name, own in first.items():
        for scope in "gsl":
            if scope != own:

                def moved(expr: Expr, name: str = name, scope: str = scope) -> Expr:
                    if isinstance(expr, Access) and expr.name == name:
                        return replace(expr, scope=scope)
                    return expr

                program = map_program(signed.program, lambda root: map_expr(root, moved))
                yield Change(f"{name} in scope {scope}", program)


def wrong_order(signed: SignedProgram) -> Iterator[Change]:
    """Two neighbouring statements change places, or the last one comes first."""
    for path, body in bodies(signed.program):
        for i in range(len(body) - 1):
            mixed = (*body[:i], body[i + 1], body[i], *body[i + 2 :])
            if mixed != body:
                text = f"{where((*path, i))} behind the next one"
                yield Change(text, with_body(signed.program, path, mixed))
        if len(body) > 2:
            mixed = (body[-1], *body[:-1])
            text = f"{where((*path, len(body) - 1))} in front"
            yield Change(text, with_body(signed.program, path, mixed))


def wrong_loop_order(signed: SignedProgram) -> Iterator[Change]:
    """Two neighbouring loops of a nest change places."""
    for path, nest in all_nests(signed.program):
        for k in range(len(nest.loops) - 1):
            loops = (
                *nest.loops[:k],
                nest.loops[k + 1],
                nest.loops[k],
                *nest.loops[k + 2 :],
            )
            yield with_nest(signed, path, replace(nest, loops=loops))


def missing_statement(signed: SignedProgram) -> Iterator[Change]:
    """A statement is left out."""
    for path, body in bodies(signed.program):
        if path == () and len(body) == 1:
            continue
        for i in range(len(body)):
            if path and len(body) == 1:
                continue
            yield Change(f"{where((*path, i))} left out", replace_at(signed.program, (*path, i)))


def wrong_fusion(signed: SignedProgram) -> Iterator[Change]:
    """Two neighbouring nests share their outer loop, whether that may be or not."""
    for path, body in bodies(signed.program):
        for i in range(len(body) - 1):
            joined = _fused(body[i], body[i + 1])
            if joined is not None:
                mixed = (*body[:i], joined, *body[i + 2 :])
                text = f"{where((*path, i))} with the next one: {loops_text(joined.loops)}"
                yield Change(text, with_body(signed.program, path, mixed))


def over_limits(signed: SignedProgram) -> Iterator[Change]:
    """A launch of more threads than a block may have; those too many have nothing to do."""
    for i, nest in enumerate(signed.program.nests):
        loop = nest.loops[0]
        if loop.axis not in (None, *THREAD_AXES) or any(x.kind == "B" for x in nest.loops[1:]):
            continue
        if len(nest.body) != 1 or not isinstance(nest.body[0], Equation):
            continue
        name = loop.index if loop.kind == "B" else _on_axis(signed, "tx")
        wide = with_loop(nest, 0, Loop("B", name, _TOO_MANY, loop.start))
        equation = wide.body[0]
        if not isinstance(equation, Equation):
            raise TypeError("renaming a loop made no equation of an equation")
        guard: Expr = Compare((Index(name), Int(loop.start + loop.extent)), ("<",))
        if equation.guard is not None:
            guard = Binary("&", equation.guard, guard)
        yield with_nest(signed, (i,), replace(wide, body=(replace(equation, guard=guard),)))


def repeated_nest(signed: SignedProgram) -> Iterator[Change]:
    """A nest runs twice, under one more loop: what accumulates counts double."""
    again = free_index(signed)
    for i, nest in enumerate(signed.program.nests):
        yield with_nest(signed, (i,), replace(nest, loops=(Loop("L", again, 2), *nest.loops)))


def _fused(first: Statement, second: Statement) -> Nest | None:
    """Two nests under the first one's outer loop, if the second's is as long."""
    if not isinstance(first, Nest) or not isinstance(second, Nest):
        return None
    head, other = first.loops[0], second.loops[0]
    if (head.extent, head.start) != (other.extent, other.start):
        return None
    inner = {x.index for nest in (first, second) for x in nest.loops[1:]}
    if head.index in inner or (head.kind == "B") != (other.kind == "B"):
        return None
    second = with_loop(second, 0, head)
    parts: list[Statement] = []
    for nest in (first, second):
        parts += [Nest(nest.loops[1:], nest.body)] if len(nest.loops) > 1 else nest.body
    return Nest((head,), tuple(parts))


def _on_axis(signed: SignedProgram, axis: str) -> str:
    """An index name on a hardware axis that no loop of the program has."""
    used = {loop.index for _, nest in all_nests(signed.program) for loop in nest.loops}
    candidates = (axis + "q" * n for n in count())
    return next(name for name in candidates if name not in used)
