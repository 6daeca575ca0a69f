"""Parts of expressions that occur more than once, up to the names of loop indices."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Expr,
    Index,
    Loop,
    Nest,
    Unary,
)
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.walk import (
    Located,
    Path,
    accesses_in,
    at,
    children,
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
    nests = program.program.nests
    looks = Counter(look for nest in nests for own in _looks(nest).values() for look in own)
    for one in equations(program.program):
        nest, path = nests[one.path[0]], one.path[1:]
        # what looks like nothing else is equal to nothing else
        wanted = tuple([looks[look] > 1 for look in _looks(nest)[path]])
        if not any(wanted):
            continue
        known = _parts(nest)
        if (path, wanted) not in known:
            known[path, wanted] = tuple(_parts_of(one, wanted))
        for part in known[path, wanted]:
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
    """An operation of an equation of some nest, with its key and that of the one around it.

    ``outer`` is None also where the operation around it occurs only once.
    """

    expr: Expr
    dtype: str
    indices: tuple[str, ...]
    key: Key
    outer: Key | None


#: Equal for equal parts: what a node is, and the tensors in it from left to right.
_Look = tuple[object, tuple[str, ...]]


@per_nest
def _looks(nest: Nest) -> Mapping[Path, tuple[_Look, ...]]:
    """How the operations in the values of a nest look, pre-order, by the equation's path below it.

    They are those of ``operations_with_parents``.
    """
    found: dict[Path, tuple[_Look, ...]] = {}
    for one in equations_in(nest):
        looks: list[_Look] = []
        _look(one.equation.value, looks)
        found[one.path] = tuple(looks)
    return found


def _look(expr: Expr, looks: list[_Look]) -> tuple[str, ...]:
    """The tensors of an expression; appends how its operations look."""
    if isinstance(expr, Access):
        return (expr.name,)
    if isinstance(expr, Binary | Unary):
        head: object = expr.op
    elif isinstance(expr, Call):
        head = expr.function
    elif isinstance(expr, Compare):
        head = expr.ops
    else:
        return ()
    place = len(looks)
    looks.append((head, ()))
    names: tuple[str, ...] = ()
    for child in children(expr):
        names += _look(child, looks)
    if names:
        looks[place] = head, names
    else:
        del looks[place:]  # indices and literals alone are no part
    return names


@per_nest
def _parts(_: Nest) -> dict[tuple[Path, tuple[bool, ...]], tuple[_Part, ...]]:
    """The wanted operations of a nest, kept by the equation's path below it."""
    return {}


def _parts_of(one: Located, wanted: Sequence[bool]) -> Iterator[_Part]:
    """The operations of an equation that are wanted, pre-order."""
    starts = {loop.index: loop.start for loop in one.loops}
    keys: dict[int, Key] = {}
    operations = operations_with_parents(typed_equation(one.equation).value)
    for (typed, parent), may_recur in zip(operations, wanted, strict=True):
        if not may_recur:
            continue
        indices = tuple(
            dict.fromkeys([e.name for e in iter_expr(typed.expr) if isinstance(e, Index)])
        )
        names = fresh_indices(())
        canonical = substitute(typed.expr, {name: Index(next(names)) for name in indices})
        key = canonical, typed.dtype.name, tuple([starts[name] for name in indices])
        keys[id(typed)] = key
        outer = None if parent is None else keys.get(id(parent))
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
