"""Dividing a nest between two of its statements: the two nests, and what happens to intermediates.

Once divided, all iterations of the first part run before any of the second. An intermediate that
every iteration overwrites then needs one element per iteration (it is *spread*), and one in
local or shared memory moves to global memory where the parts become kernels of their own.
"""

from dataclasses import replace
from functools import partial

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.ast import BLOCK_AXES, Access, Expr, Index, Loop, Nest, Program, Statement
from steptp_dagster.leir.dependence import Answer, conflicting_pairs, same, touch
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    accesses_in,
    equations,
    equations_in,
    expressions,
    map_equation,
    map_expr,
    replace_at,
)
from steptp_dagster.strategies.joining import follower
from steptp_dagster.strategies.rewrite import accesses_to, nest_at


def crossing(program: Program, path: Path, cut: int) -> tuple[str, ...]:
    """Tensors that statements before and behind the cut both touch, by first occurrence."""
    body = nest_at(program, path).body
    first = _touched(body[:cut])
    later = set(_touched(body[cut:]))
    return tuple(name for name in first if name in later)


def _touched(body: tuple[Statement, ...]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            access.name
            for statement in body
            for one in equations_in(statement)
            for expr in expressions(one.equation)
            for access in accesses_in(expr)
        )
    )


def spreadable(program: SignedProgram, path: Path, name: str) -> bool:
    """Whether a tensor may get new dimensions: no known variable, and used in this nest only.

    In local or shared memory all accesses must also stand under the same axes.
    """
    if name in program.signature.by_name:
        return False
    found = list(accesses_to(program.program, name))
    if any(where[: len(path)] != path for where, _, _ in found):
        return False
    around = len(nest_at(program.program, path).loops) + _depth_above(program.program, path)
    return len({_axes(loops[around:], access.scope) for _, loops, access in found}) == 1


def _depth_above(program: Program, path: Path) -> int:
    return sum(len(nest_at(program, path[:n]).loops) for n in range(1, len(path)))


def _axes(loops: tuple[Loop, ...], scope: str) -> tuple[str, ...]:
    """The axes bound by ``loops`` that tell instances of a private tensor apart."""
    return tuple(sorted(axis for axis, _ in _owners(loops, scope)))


def _owners(loops: tuple[Loop, ...], scope: str) -> list[tuple[str, str]]:
    bound = [(loop.axis, loop.index) for loop in loops if loop.axis is not None]
    if scope == "g":
        return []
    return sorted((axis, name) for axis, name in bound if scope == "l" or axis in BLOCK_AXES)


def parted(program: Program, path: Path, cut: int, spread: tuple[str, ...]) -> Program:
    """The program with the nest at ``path`` divided before its statement number ``cut``.

    Tensors in ``spread`` get the nest's indices as leading subscripts. At the top level private
    tensors that cross the cut move to global memory.
    """
    to_global = crossing(program, path, cut) if len(path) == 1 else ()
    nest = nest_at(program, path)
    around = _depth_above(program, path) + len(nest.loops)
    leading = tuple(Index(loop.index) for loop in nest.loops if loop.extent > 1)
    changed = program
    for one in equations(program):
        if one.path[: len(path)] == path:
            rewrite = partial(_rewritten, one.loops[around:], leading, spread, to_global)
            new = map_equation(one.equation, partial(map_expr, function=rewrite))
            changed = replace_at(changed, one.path, new)
    body = nest_at(changed, path).body
    return replace_at(changed, path, Nest(nest.loops, body[:cut]), Nest(nest.loops, body[cut:]))


def _rewritten(
    inner: tuple[Loop, ...],
    leading: tuple[Expr, ...],
    spread: tuple[str, ...],
    to_global: tuple[str, ...],
    node: Expr,
) -> Expr:
    """A node of an equation that stands under ``inner`` loops within the divided nest."""
    if not isinstance(node, Access):
        return node
    subscripts, scope = node.subscripts, node.scope
    if node.name in to_global:
        if node.name in spread:
            subscripts = (*(Index(name) for _, name in _owners(inner, scope)), *subscripts)
        scope = "g"
    if node.name in spread:
        subscripts = (*leading, *subscripts)
    return replace(node, scope=scope, subscripts=subscripts)


def reversed_tensors(program: SignedProgram, path: Path, depth: int) -> tuple[str, ...]:
    """Tensors over which the nest at ``path`` and the next one would conflict if joined again.

    That is: some instance of the second nest stands in an iteration before one of the first that
    touches the same element. By name, sorted.
    """
    accesses = Analysis.of(program).accesses
    second = follower(path)
    mine, yours = accesses.loops_of[path], accesses.loops_of[second]
    pairs = list(zip(mine[:depth], yours[:depth], strict=True))
    found: set[str] = set()
    for one, other in conflicting_pairs(accesses.touching(path), accesses.touching(second)):
        if one.tensor in found:
            continue
        outer = same(one.chain[: one.chain.index(mine[0])])
        for k, (a, b) in enumerate(pairs):
            relations = [
                *outer,
                *((c.name, d.name, "=") for c, d in pairs[:k]),
                (a.name, b.name, ">"),
                *((c.name, d.name, "*") for c, d in pairs[k + 1 :]),
            ]
            if touch(one, other, relations) is not Answer.NONE:
                found.add(one.tensor)
                break
    return tuple(sorted(found))
