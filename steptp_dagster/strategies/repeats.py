"""Parts of expressions that occur more than once, up to the names of loop indices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from steptp_dagster.leir.ast import Access, Expr, Index, Loop, Nest
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.walk import (
    Located,
    Path,
    accesses_in,
    at,
    equations,
    equations_in,
    fresh_indices,
    iter_expr,
    substitute,
)
from steptp_dagster.strategies.naming import operations_with_parents

#: An expression with its indices named by first occurrence, its type, and where they start.
Key = tuple[Expr, str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One part of one equation. ``indices`` are its loop indices by first occurrence."""

    one: Located
    part: Expr
    dtype: str
    indices: tuple[str, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops of its indices, in the order of ``indices``."""
        by_name = {loop.index: loop for loop in self.one.loops}
        return tuple(by_name[name] for name in self.indices)


def repeated(program: SignedProgram) -> tuple[tuple[Occurrence, ...], ...]:
    """Groups of at least two equal parts, by first occurrence, each in text order.

    A group whose members all stand in members of one larger group is left out.
    """
    groups: dict[Key, list[Occurrence]] = {}
    above: dict[Key, list[Key | None]] = {}
    for one in equations(program.program):
        for part in _parts(program.program.nests[one.path[0]])[one.path[1:]]:
            found = Occurrence(one, part.expr, part.dtype, part.indices)
            groups.setdefault(part.key, []).append(found)
            above.setdefault(part.key, []).append(part.outer)

    def inside(key: Key) -> bool:
        outer = above[key][0]
        same = outer is not None and all(other == outer for other in above[key])
        return same and outer is not None and len(groups[outer]) == len(groups[key])

    return tuple(
        tuple(group) for key, group in groups.items() if len(group) > 1 and not inside(key)
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """An operation of an equation of some nest, with its key and that of the one around it."""

    expr: Expr
    dtype: str
    indices: tuple[str, ...]
    key: Key
    outer: Key | None


@per_nest
def _parts(nest: Nest) -> Mapping[Path, tuple[_Part, ...]]:
    """The operations in the values of a nest, by the equation's path below it."""
    return {one.path: tuple(_parts_of(one)) for one in equations_in(nest)}


def _parts_of(one: Located) -> Iterator[_Part]:
    starts = {loop.index: loop.start for loop in one.loops}
    keys: dict[int, Key] = {}
    for typed, parent in operations_with_parents(typed_equation(one.equation).value):
        indices = tuple(
            dict.fromkeys([e.name for e in iter_expr(typed.expr) if isinstance(e, Index)])
        )
        names = fresh_indices(())
        canonical = substitute(typed.expr, {name: Index(next(names)) for name in indices})
        key = canonical, typed.dtype.name, tuple([starts[name] for name in indices])
        keys[id(typed)] = key
        outer = None if parent is None else keys[id(parent)]
        yield _Part(typed.expr, typed.dtype.name, indices, key, outer)


def across_nests(
    program: SignedProgram, group: Sequence[Occurrence]
) -> Iterator[tuple[Occurrence, ...]]:
    """Longest runs of at least two occurrences whose nests write none of their operands."""
    run: list[Occurrence] = []
    for found in group:
        first = run[0] if run else found
        if clobbered(program, first, found):
            if len(run) > 1:
                yield tuple(run)
            run = [] if clobbered(program, found, found) else [found]
        else:
            run.append(found)
    if len(run) > 1:
        yield tuple(run)


def clobbered(program: SignedProgram, first: Occurrence, last: Occurrence) -> tuple[str, ...]:
    """Operands that some top-level nest from the first to the last occurrence writes, sorted."""
    low, high = first.one.path[0], last.one.path[0]
    written = {name for i in range(low, high + 1) for name in writes(program, (i,))}
    return tuple(sorted({a.name for a in accesses_in(first.part)} & written))


def in_one_body(
    program: SignedProgram, group: Sequence[Occurrence]
) -> Iterator[tuple[Occurrence, ...]]:
    """Longest runs of equal occurrences in one body, no operand written between them."""
    bodies: dict[tuple[Path, Expr], list[Occurrence]] = {}
    for found in group:
        bodies.setdefault((found.one.path[:-1], found.part), []).append(found)
    for body in bodies.values():
        run: list[Occurrence] = []
        for found in body:
            if run and written_between(program, run[0], found):
                if len(run) > 1:
                    yield tuple(run)
                run = []
            run.append(found)
        if len(run) > 1:
            yield tuple(run)


def written_between(program: SignedProgram, first: Occurrence, last: Occurrence) -> tuple[str, ...]:
    """Operands written after the first and before the last of two occurrences in one body."""
    written = {name for path in between(first, last) for name in writes(program, path)}
    return tuple(sorted({a.name for a in accesses_in(first.part)} & written))


def between(first: Occurrence, last: Occurrence) -> tuple[Path, ...]:
    """Statements of a body from the first occurrence's up to, without, the last one's."""
    above = first.one.path[:-1]
    return tuple((*above, i) for i in range(first.one.path[-1], last.one.path[-1]))


def writes(program: SignedProgram, path: Path) -> tuple[str, ...]:
    """Tensors that a statement writes, by first occurrence."""
    found = equations_in(at(program.program, path))
    return tuple(dict.fromkeys(one.equation.target.name for one in found))


def domain(run: Sequence[Occurrence]) -> tuple[Loop, ...]:
    """Loops for the indices of the first occurrence, large enough for all, in its loops' order."""
    extents = [max(found.loops[i].extent for found in run) for i in range(len(run[0].indices))]
    wanted = dict(zip(run[0].indices, extents, strict=True))
    return tuple(
        replace(loop, extent=wanted[loop.index])
        for loop in run[0].one.loops
        if loop.index in wanted
    )


def read_at(found: Occurrence, first: Occurrence, name: Access, order: Sequence[Loop]) -> Access:
    """The access to the common result that stands for an occurrence."""
    own = dict(zip(first.indices, found.indices, strict=True))
    return replace(name, subscripts=tuple(Index(own[loop.index]) for loop in order))
