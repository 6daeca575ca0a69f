"""Small changes that often make a valid LEIR program invalid."""

import random
from collections.abc import Callable
from dataclasses import replace

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    InvalidNode,
    Kind,
    Loop,
    Nest,
    Program,
    Statement,
)
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    Path,
    all_nests,
    at,
    equations,
    expressions,
    iter_expr,
    map_equation,
    map_expr,
    map_program,
    map_statement,
    replace_at,
    substitute,
)

_Mutation = Callable[[SignedProgram, random.Random], Program | None]


def mutate(signed: SignedProgram, rng: random.Random) -> SignedProgram:
    """The program with one random change; the program itself if ten attempts do not apply."""
    for _ in range(10):
        try:
            program = rng.choice(_MUTATIONS)(signed, rng)
        except InvalidNode:
            continue
        if program is not None:
            return SignedProgram(program, signed.signature)
    return signed


def _nest(signed: SignedProgram, rng: random.Random) -> tuple[Path, Nest]:
    return rng.choice(list(all_nests(signed.program)))


def _with_loop(nest: Nest, k: int, loop: Loop) -> Nest:
    """The nest with loop ``k`` replaced; uses of its index follow a new name."""
    old = nest.loops[k]
    loops = (*nest.loops[:k], loop, *nest.loops[k + 1 :])
    if old.index == loop.index:
        return replace(nest, loops=loops)

    def renamed(expr: Expr) -> Expr:
        return substitute(expr, {old.index: Index(loop.index)})

    body = tuple(map_statement(s, renamed) for s in nest.body)
    return replace(nest, loops=loops, body=body)


def _extent(signed: SignedProgram, rng: random.Random) -> Program | None:
    path, nest = _nest(signed, rng)
    k = rng.randrange(len(nest.loops))
    extent = nest.loops[k].extent + rng.choice((-1, 1))
    return replace_at(
        signed.program, path, _with_loop(nest, k, replace(nest.loops[k], extent=extent))
    )


def _start(signed: SignedProgram, rng: random.Random) -> Program | None:
    path, nest = _nest(signed, rng)
    k = rng.randrange(len(nest.loops))
    loop = replace(nest.loops[k], start=nest.loops[k].start + rng.choice((-1, 1)))
    return replace_at(signed.program, path, _with_loop(nest, k, loop))


def _kind(signed: SignedProgram, rng: random.Random) -> Program | None:
    path, nest = _nest(signed, rng)
    k = rng.randrange(len(nest.loops))
    old = nest.loops[k]
    kinds: tuple[Kind, ...] = ("L", "P", "V", "U", "B", "B")
    kind = rng.choice(kinds)
    name = old.index
    if kind == "B":
        name = rng.choice(("tx", "ty", "bx", "by")) + rng.choice(("", "", "q"))
    elif old.kind == "B":
        name = rng.choice(("m", "n", "o"))
    return replace_at(
        signed.program, path, _with_loop(nest, k, Loop(kind, name, old.extent, old.start))
    )


def _swap_loops(signed: SignedProgram, rng: random.Random) -> Program | None:
    path, nest = _nest(signed, rng)
    if len(nest.loops) < 2:
        return None
    loops = tuple(rng.sample(nest.loops, len(nest.loops)))
    return replace_at(signed.program, path, replace(nest, loops=loops))


def _drop(signed: SignedProgram, rng: random.Random) -> Program | None:
    located = list(equations(signed.program))
    return None if len(located) < 2 else replace_at(signed.program, rng.choice(located).path)


def _drop_guard(signed: SignedProgram, rng: random.Random) -> Program | None:
    guarded = [e for e in equations(signed.program) if e.equation.guard is not None]
    if not guarded:
        return None
    chosen = rng.choice(guarded)
    return replace_at(signed.program, chosen.path, replace(chosen.equation, guard=None))


def _add_guard(signed: SignedProgram, rng: random.Random) -> Program | None:
    chosen = rng.choice(list(equations(signed.program)))
    loop = rng.choice(chosen.loops)
    bound = Int(loop.start + loop.extent - rng.choice((0, 1)))
    guard: Expr = Compare((Index(loop.index), bound), (rng.choice(("<", "<=", "!=")),))
    if chosen.equation.guard is not None:
        guard = Binary("&", chosen.equation.guard, guard)
    return replace_at(signed.program, chosen.path, replace(chosen.equation, guard=guard))


def _swap_statements(signed: SignedProgram, rng: random.Random) -> Program | None:
    bodies: list[tuple[Path, tuple[Statement, ...]]] = [((), signed.program.nests)]
    bodies += [(path, nest.body) for path, nest in all_nests(signed.program)]
    bodies = [(path, body) for path, body in bodies if len(body) > 1]
    if not bodies:
        return None
    path, body = rng.choice(bodies)
    mixed = tuple(rng.sample(body, len(body)))
    if not path:
        return Program(tuple(s for s in mixed if isinstance(s, Nest)))
    nest = at(signed.program, path)
    assert isinstance(nest, Nest)
    return replace_at(signed.program, path, replace(nest, body=mixed))


def _scope(signed: SignedProgram, rng: random.Random) -> Program | None:
    names = sorted({e.equation.target.name for e in equations(signed.program)})
    names = [n for n in names if n not in signed.signature.by_name]
    if not names:
        return None
    name, scope = rng.choice(names), rng.choice("gsl")

    def changed(expr: Expr) -> Expr:
        own = isinstance(expr, Access) and expr.name == name
        return replace(expr, scope=scope) if isinstance(expr, Access) and own else expr

    return map_program(signed.program, lambda expr: map_expr(expr, changed))


def _in_one_expression(
    change: Callable[[Expr, random.Random], Expr | None],
) -> _Mutation:
    """A mutation that changes one node of one equation."""

    def mutation(signed: SignedProgram, rng: random.Random) -> Program | None:
        chosen = rng.choice(list(equations(signed.program)))
        nodes = [n for e in expressions(chosen.equation) for n in iter_expr(e)]
        rng.shuffle(nodes)
        for node in nodes:
            new = change(node, rng)
            if new is not None and new != node:
                equation = map_equation(chosen.equation, _replacing(node, new))
                return replace_at(signed.program, chosen.path, equation)
        return None

    return mutation


def _replacing(old: Expr, new: Expr) -> Callable[[Expr], Expr]:
    """A function that replaces every occurrence of one node in an expression."""
    return lambda root: map_expr(root, lambda expr: new if expr == old else expr)


def _shift(node: Expr, rng: random.Random) -> Expr | None:
    if not isinstance(node, Access) or not node.subscripts:
        return None
    k = rng.randrange(len(node.subscripts))
    moved = Binary(rng.choice("+-"), node.subscripts[k], Int(1))
    return replace(node, subscripts=(*node.subscripts[:k], moved, *node.subscripts[k + 1 :]))


def _swap_subscripts(node: Expr, rng: random.Random) -> Expr | None:
    if not isinstance(node, Access) or len(node.subscripts) < 2:
        return None
    return replace(node, subscripts=tuple(rng.sample(node.subscripts, len(node.subscripts))))


def _constant_subscript(node: Expr, rng: random.Random) -> Expr | None:
    if not isinstance(node, Access) or not node.subscripts:
        return None
    k = rng.randrange(len(node.subscripts))
    return replace(node, subscripts=(*node.subscripts[:k], Int(0), *node.subscripts[k + 1 :]))


def _other_comparison(node: Expr, rng: random.Random) -> Expr | None:
    if not isinstance(node, Compare):
        return None
    ops = tuple(rng.choice(("<", "<=", ">", ">=", "==", "!=")) for _ in node.ops)
    return replace(node, ops=ops)


def _other_number(node: Expr, rng: random.Random) -> Expr | None:
    return Int(max(1, node.value + rng.choice((-1, 1)))) if isinstance(node, Int) else None


def _other_branch(node: Expr, _: random.Random) -> Expr | None:
    if isinstance(node, Call) and node.function == "if_then_else":
        condition, yes, no = node.arguments
        return replace(node, arguments=(condition, no, yes))
    return None


def _without_branch(node: Expr, rng: random.Random) -> Expr | None:
    if isinstance(node, Call) and node.function == "if_then_else":
        return node.arguments[rng.choice((1, 2))]
    return None


def _other_index(signed: SignedProgram, rng: random.Random) -> Program | None:
    chosen = rng.choice(list(equations(signed.program)))
    names = [loop.index for loop in chosen.loops]
    uses = [n for e in expressions(chosen.equation) for n in iter_expr(e) if isinstance(n, Index)]
    if not uses:
        return None
    old, new = rng.choice(uses), Index(rng.choice(names))

    def changed(expr: Expr) -> Expr:
        return substitute(expr, {old.name: new})

    if rng.random() < 0.5:
        equation = replace(chosen.equation, value=changed(chosen.equation.value))
    else:
        target = changed(chosen.equation.target)
        assert isinstance(target, Access)
        equation = replace(chosen.equation, target=target)
    return replace_at(signed.program, chosen.path, equation)


def _fuse(signed: SignedProgram, rng: random.Random) -> Program | None:
    """Two neighbouring nests with the same extents become one, legal or not."""
    nests = signed.program.nests
    pairs = [
        i
        for i in range(len(nests) - 1)
        if nests[i].loops[0].extent == nests[i + 1].loops[0].extent
        and nests[i].loops[0].start == nests[i + 1].loops[0].start
    ]
    if not pairs:
        return None
    i = rng.choice(pairs)
    first, second = nests[i], nests[i + 1]
    head = first.loops[0]
    if head.index in {loop.index for _, n in all_nests(Program((second,))) for loop in n.loops[1:]}:
        return None
    second = _with_loop(second, 0, head)
    parts: list[Statement] = []
    for nest in (first, second):
        parts += [Nest(nest.loops[1:], nest.body)] if len(nest.loops) > 1 else nest.body
    return Program((*nests[:i], Nest((head,), tuple(parts)), *nests[i + 2 :]))


def _repeat(signed: SignedProgram, rng: random.Random) -> Program | None:
    """An equation stands twice."""
    chosen = rng.choice(list(equations(signed.program)))
    equation: Equation = chosen.equation
    return replace_at(signed.program, chosen.path, equation, equation)


_MUTATIONS: tuple[_Mutation, ...] = (
    _extent,
    _start,
    _kind,
    _kind,
    _kind,
    _swap_loops,
    _drop,
    _drop_guard,
    _add_guard,
    _swap_statements,
    _scope,
    _fuse,
    _fuse,
    _repeat,
    _other_index,
    *map(
        _in_one_expression,
        (
            _shift,
            _swap_subscripts,
            _constant_subscript,
            _other_comparison,
            _other_number,
            _other_branch,
            _without_branch,
        ),
    ),
)
