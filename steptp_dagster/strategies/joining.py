"""Joining two adjacent nests: which loops they share, what flows between them, the joined nest."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from steptp_dagster.leir.analysis import per_program
from steptp_dagster.leir.ast import (
    Access,
    Equation,
    Expr,
    Index,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.nest_memory import known_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify
from steptp_dagster.leir.walk import (
    Path,
    equations,
    equations_in,
    fresh_indices,
    index_names,
    loops_around,
    map_expr,
    map_statement,
    nests_in,
    replace_at,
)
from steptp_dagster.strategies.reductions import identity
from steptp_dagster.strategies.rewrite import accesses_to, nest_at, reads_of, rename_loops


def adjacent(program: Program) -> Iterator[tuple[Path, Nest, Nest]]:
    """Adjacent sibling nests in text order of the first, with the first one's path."""

    def pairs(body: tuple[Statement, ...], above: Path) -> Iterator[tuple[Path, Nest, Nest]]:
        for i, statement in enumerate(body):
            if not isinstance(statement, Nest):
                continue
            if i + 1 < len(body):
                after = body[i + 1]
                if isinstance(after, Nest):
                    yield (*above, i), statement, after
            yield from pairs(statement.body, (*above, i))

    yield from pairs(program.nests, ())


def follower(path: Path) -> Path:
    """The path of the next statement in the same body."""
    return (*path[:-1], path[-1] + 1)


def common_depth(first: tuple[Loop, ...], second: tuple[Loop, ...]) -> int:
    """How many leading loops agree in kind, extent, start and axis."""
    depth = 0
    for one, other in zip(first, second, strict=False):
        if (one.kind, one.extent, one.start, one.axis) != (
            other.kind,
            other.extent,
            other.start,
            other.axis,
        ):
            break
        depth += 1
    return depth


def header_words(loop: Loop) -> str:
    """A loop in words, for messages."""
    return f"{loop.kind} {loop.index} of extent {loop.extent} from {loop.start}"


def thread_axes(nest: Nest) -> tuple[str, ...]:
    """Thread axes of the loops of a nest and inside it, sorted."""
    axes = {
        loop.axis
        for _, inner in nests_in(nest)
        for loop in inner.loops
        if loop.axis is not None and loop.axis[0] == "t"
    }
    return tuple(sorted(axes))


def joined(program: Program, path: Path, depth: int) -> Program:
    """The program with both nests joined; the second's loops renamed."""
    first, second = nest_at(program, path), nest_at(program, follower(path))
    renamed = _with_names(program, path, first, second, depth)
    shared = first.loops[:depth]
    body = (*_rest(first, depth), *_rest(renamed, depth))
    without = replace_at(program, follower(path))
    return replace_at(without, path, Nest(shared, body))


def _rest(nest: Nest, depth: int) -> tuple[Statement, ...]:
    """What is left of a nest below its first ``depth`` loops."""
    return (Nest(nest.loops[depth:], nest.body),) if nest.loops[depth:] else nest.body


def _with_names(program: Program, path: Path, first: Nest, second: Nest, depth: int) -> Nest:
    """The second nest with the first one's names for the shared loops.

    Inner loops of the second nest that have one of those names get fresh ones.
    """
    names = {
        other.index: one.index
        for one, other in zip(first.loops[:depth], second.loops[:depth], strict=True)
        if other.index != one.index
    }
    taken = set(names.values())
    below = [
        loop.index
        for _, inner in nests_in(Nest(second.loops, second.body))
        for loop in inner.loops
        if loop.index not in {shared.index for shared in second.loops[:depth]}
    ]
    around = {loop.index for loop in loops_around(program, path)}
    used = around | index_names(first) | index_names(second)
    fresh = fresh_indices(used)
    for index in dict.fromkeys(below):
        if index in taken:
            names[index] = next(fresh)
    renamed = rename_loops(second, names)
    if not isinstance(renamed, Nest):
        raise TypeError("renaming keeps a nest a nest")
    return renamed


def flow(first: Nest, second: Nest) -> tuple[str, ...]:
    """Tensors that the first nest writes and the second touches, by first occurrence."""
    touched = set(written(second)) | set(read(second))
    return tuple(name for name in written(first) if name in touched)


def written(nest: Nest) -> tuple[str, ...]:
    """Tensors that a nest writes, by first occurrence."""
    return tuple(dict.fromkeys(one.equation.target.name for one in equations_in(nest)))


def read(nest: Nest) -> tuple[str, ...]:
    """Tensors that a nest reads, by first occurrence."""
    return tuple(dict.fromkeys(a.name for a in _reads(nest)))


def _reads(nest: Nest) -> Iterator[Access]:
    for one in equations_in(nest):
        yield from reads_of(one.equation)


@per_program
def private_intermediates(program: SignedProgram, path: Path) -> tuple[str, ...]:
    """Global intermediates that flow between the two nests and are used nowhere else.

    The sum that the threads of a block reduction make together is none: in local memory each
    thread would have a sum of its own.
    """
    first, second = nest_at(program.program, path), nest_at(program.program, follower(path))
    read_by_second = set(read(second))
    return tuple(
        name
        for name in written(first)
        if name in read_by_second
        and name not in program.signature.by_name
        and all(
            access.scope == "g" and where[: len(path)] in (path, follower(path))
            for where, _, access in accesses_to(program.program, name)
        )
        and not _made_together(program, name)
    )


def _made_together(program: SignedProgram, name: str) -> bool:
    """Whether an update of a tensor reduces over a bound loop."""
    updates = classify(program)
    return any(
        loop.kind == "B" and loop.index in updates[located.path].reduction_loops
        for located in equations(program.program)
        if located.equation.target.name == name and updates[located.path].kind == "update"
        for loop in located.loops
    )


def _changed(program: Program, names: tuple[str, ...], visit: Callable[[Expr], Expr]) -> Program:
    """The program with the expressions mapped of the nests that touch some of the tensors."""
    nests = [
        nest
        if known_nest(nest).outline.names.isdisjoint(names)
        else map_statement(nest, lambda expr: map_expr(expr, visit))
        for nest in program.nests
    ]
    return Program(tuple([nest for nest in nests if isinstance(nest, Nest)]))


def in_local_memory(program: Program, names: tuple[str, ...]) -> Program:
    """The program with tensors moved to scope ``l``, subscripts as they are."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Access) and node.name in names:
            return replace(node, scope="l")
        return node

    return _changed(program, names, visit)


def in_registers(
    program: Program, path: Path, names: tuple[str, ...], starts: Mapping[str, str]
) -> Program | None:
    """Tensors moved to scope ``l`` without the dimensions that the loops at ``path`` index.

    ``path`` is the joined nest. A dimension goes where every access has the bare index of one
    and the same loop there; None unless that tells apart all iterations of the loops around and
    at ``path``: then no iteration sees the element of another, so that one element will do. Loops
    of kind ``P`` and ``V`` do not count: their iterations would share the element at one time.

    ``starts`` names the tensors that an update starts implicitly, with its operation: they are
    started by an equation in front of the body, now that iterations share the element; None
    where that is more than one element, or where no literal denotes the start.
    """
    loops = loops_around(program, path) + nest_at(program, path).loops
    several = {loop.index for loop in loops if loop.extent > 1}
    serial = {loop.index for loop in loops if loop.kind not in ("P", "V")}
    dropped: dict[str, frozenset[int]] = {}
    inits: list[Equation] = []
    for name in names:
        accesses = [access for _, _, access in accesses_to(program, name)]
        dims = _shared_dims(accesses, serial)
        told_apart = {s.name for d in dims if isinstance(s := accesses[0].subscripts[d], Index)}
        if not dims or not several <= told_apart:
            return None
        dropped[name] = dims
        if name in starts:
            start = identity(starts[name], DTYPES[accesses[0].dtype])
            if start is None or len(dims) < len(accesses[0].subscripts):
                return None
            inits.append(Equation(replace(accesses[0], scope="l", subscripts=()), start))

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Access) or node.name not in dropped:
            return node
        dims = dropped[node.name]
        kept = tuple(s for d, s in enumerate(node.subscripts) if d not in dims)
        return replace(node, scope="l", subscripts=kept)

    moved = _changed(program, names, visit)
    nest = nest_at(moved, path)
    return replace_at(moved, path, replace(nest, body=(*inits, *nest.body)))


def _shared_dims(accesses: Sequence[Access], indices: set[str]) -> frozenset[int]:
    """Dimensions where every access has the same bare index, one of ``indices``."""
    return frozenset(
        d
        for d, subscript in enumerate(accesses[0].subscripts)
        if isinstance(subscript, Index)
        and subscript.name in indices
        and all(access.subscripts[d] == subscript for access in accesses)
    )
