"""What can be said of a program by looking at it: names, kinds of loops, threads, updates.

Part of the reference interpreter, which shares no code with the static checker. Faults found by
``names_and_types`` make a program meaningless, so that it is not run; those found by
``kinds_and_threads`` do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

from steptp_dagster.leir.ast import (
    LOGICAL,
    THREAD_AXES,
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Program,
    Statement,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.interpreter.faults import Log
from steptp_dagster.leir.interpreter.types import Types
from steptp_dagster.leir.signature import Signature, SignedProgram
from steptp_dagster.leir.walk import (
    Located,
    Path,
    accesses_in,
    equations,
    equations_in,
    expressions,
    indices_in,
    iter_expr,
)

_LANES = (1, 2, 4, 8, 16)
_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class PureUpdate:
    """``X op e``: ``op`` is ``+ * max min`` (``X-e`` counts as ``+``)."""

    op: str


def pure_update(equation: Equation, loops: tuple[Loop, ...]) -> PureUpdate | None:
    """The pure update that an equation inside ``loops`` is, or None.

    The target occurs once, at the same subscript, and a chain of one operator leads to it:
    ``X+a+b``, ``a+X``, ``X-a+b``, ``max(max(X,a),b)``.
    """
    target = equation.target
    own = [
        a
        for e in (*target.subscripts, *expressions(equation)[1:])
        for a in accesses_in(e)
        if a.name == target.name
    ]
    if len(own) != 1 or not same_element(own[0], target, loops):
        return None
    op = _operator(equation.value)
    if op is None or not _leads_to(equation.value, own[0], op):
        return None
    return PureUpdate(op)


def same_element(one: Access, other: Access, loops: tuple[Loop, ...]) -> bool:
    """Whether two accesses to a tensor have the same subscripts, however they are written.

    Subscripts without tensors are compared by their values, in up to _TRIALS iterations; a loop
    that runs once counts as two, since ``X_{a}`` and ``X_{0}`` are different subscripts.
    """
    if one == other:
        return True
    pairs = list(zip(one.subscripts, other.subscripts, strict=True))
    if any(isinstance(n, Access) for pair in pairs for e in pair for n in iter_expr(e)):
        return False
    ranges = (range(x.start, x.start + max(2, x.extent)) for x in loops)
    names = [x.index for x in loops]
    for values in islice(product(*ranges), _TRIALS):
        at = dict(zip(names, values, strict=True))
        if any(_whole(a, at) != _whole(b, at) for a, b in pairs):
            return False
    return True


def _whole(expr: Expr, at: dict[str, int]) -> int:
    """The value of a subscript without tensors."""
    match expr:
        case Int():
            return expr.value
        case Index():
            return at[expr.name]
        case Unary():
            return -_whole(expr.operand, at)
        case Binary():
            left, right = _whole(expr.left, at), _whole(expr.right, at)
            match expr.op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "//":
                    return left // right if right else 0
            return left % right if right else 0
    raise TypeError(f"not a subscript: {expr}")


def _operator(value: Expr) -> str | None:
    match value:
        case Binary(op="+" | "-"):
            return "+"
        case Binary(op="*"):
            return "*"
        case Call(function="max" | "min" as function):
            return function
    return None


def _leads_to(value: Expr, target: Access, op: str) -> bool:
    """Whether a chain of ``op`` leads from ``value`` down to the access ``target``."""
    if value == target:
        return True
    match value:
        case Binary(op="-") if op == "+":
            return _leads_to(value.left, target, op)
        case Binary() if value.op == op:
            return _leads_to(value.left, target, op) or _leads_to(value.right, target, op)
        case Call() if value.function == op:
            return any(_leads_to(a, target, op) for a in value.arguments)
    return False


def launch_loops(nest: Nest, path: Path) -> tuple[Path, ...]:
    """The loops that launch the kernel, outermost first: for each the path of its nest.

    They are the loops outside all ``B`` loops: with sibling ``B`` loops, those around them all.
    A nest without ``B`` loops is one launch.
    """
    found: list[Path] = []
    while True:
        for loop in nest.loops:
            if loop.kind == "B":
                return tuple(found)
            found.append(path)
        bound = [(i, s) for i, s in enumerate(nest.body) if isinstance(s, Nest) and _binds(s)]
        if len(bound) != 1:
            return tuple(found) if bound else ()
        path, nest = (*path, bound[0][0]), bound[0][1]


def _binds(nest: Nest) -> bool:
    """Whether there is a ``B`` loop in the nest."""
    return any(loop.kind == "B" for located in equations_in(nest) for loop in located.loops)


def names_and_types(signed: SignedProgram, log: Log) -> None:
    """Faults that leave a program without meaning: names, ranks, annotations, indices, types."""
    _names(signed.program, signed.signature, log)
    for path, loops in _all_loops(signed.program):
        names = [loop.index for loop in loops]
        for name in sorted({n for n in names if names.count(n) > 1}):
            log.report("index-rebound", f"{name} is bound again inside its own loop", path, name)
    for located in equations(signed.program):
        bound = {loop.index for loop in located.loops}
        for expr in expressions(located.equation):
            for name in sorted(indices_in(expr) - bound):
                log.report("unbound-index", f"no loop binds {name}", located.path, name)
        _types(located, log)


def _names(program: Program, signature: Signature, log: Log) -> None:
    written = {located.equation.target.name for located in equations(program)}
    first: dict[str, Access] = {}
    for located in equations(program):
        target = located.equation.target
        first.setdefault(target.name, target)
        known = signature.by_name.get(target.name)
        if known is not None and known.role != "output":
            message = f"{target.name} is a {known.role}: it is never written"
            log.report("input-written", message, located.path, target.name)
    for located in equations(program):
        for expr in expressions(located.equation):
            for access in accesses_in(expr):
                name = access.name
                known = signature.by_name.get(name)
                if known is not None:
                    form, rank = (known.dtype, "g"), len(known.shape)
                elif name in written:
                    form = (first[name].dtype, first[name].scope)
                    rank = len(first[name].subscripts)
                else:
                    log.report("unknown-name", f"nothing defines {name}", located.path, name)
                    continue
                if (access.dtype, access.scope) != form:
                    kind = "annotation-conflict" if known is None else "known-variable-changed"
                    message = f"{name} is {form}, here ({access.dtype}, {access.scope})"
                    log.report(kind, message, located.path, name)
                if len(access.subscripts) != rank:
                    message = f"{name} has rank {rank}, here {len(access.subscripts)}"
                    log.report("rank-mismatch", message, located.path, name)


def _all_loops(program: Program) -> Iterator[tuple[Path, tuple[Loop, ...]]]:
    """Every nest's path with all loops down to and including its own."""

    def visit(
        statement: Statement, path: Path, outer: tuple[Loop, ...]
    ) -> Iterator[tuple[Path, tuple[Loop, ...]]]:
        if isinstance(statement, Nest):
            loops = outer + statement.loops
            yield path, loops
            for i, child in enumerate(statement.body):
                yield from visit(child, (*path, i), loops)

    for i, nest in enumerate(program.nests):
        yield from visit(nest, (i,), ())


def _types(located: Located, log: Log) -> None:
    types = Types("f64", doubles=False)
    equation = located.equation

    def wrong(kind: str, message: str, expr: Expr) -> None:
        log.report(kind, message, located.path, repr(expr))

    if equation.guard is not None and types.of(equation.guard) != "bool":
        wrong("guard-not-bool", "a guard is a condition", equation.guard)
    for root in expressions(equation):
        for node in iter_expr(root):
            match node:
                case Access():
                    for subscript in node.subscripts:
                        if not _is_subscript(subscript):
                            whole = DTYPES[types.settled(types.of(subscript))].is_integer
                            kind = "subscript-form" if whole else "subscript-not-integer"
                            wrong(kind, f"no subscript of {node.name}", subscript)
                case Call(function="if_then_else") if types.of(node.arguments[0]) != "bool":
                    wrong("condition-not-bool", "if_then_else takes a condition first", node)
                case Binary() if node.op in LOGICAL:
                    if any(types.of(e) != "bool" for e in (node.left, node.right)):
                        wrong("logical-not-bool", f"{node.op} combines conditions", node)
                case Binary(op="**"):
                    # Literals alone may become floats beside a float operand.
                    own = types.of(node)
                    if own in DTYPES and DTYPES[own].is_integer and not isinstance(node.right, Int):
                        wrong("integer-power", "an integer power has a literal exponent", node)
                case _:
                    pass


def _is_subscript(expr: Expr) -> bool:
    match expr:
        case Int() | Index():
            return True
        case Access():
            return DTYPES[expr.dtype].is_integer
        case Unary():
            return _is_subscript(expr.operand)
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            return _is_subscript(expr.left) and _is_subscript(expr.right)
        case _:
            return False


def kinds_and_threads(signed: SignedProgram, log: Log) -> None:
    """Faults of loop kinds, hardware axes, thread structure and the lifetime of ``l`` and ``s``."""
    for path, loops in _all_loops(signed.program):
        _kinds(path, loops, log)
    homes: dict[str, tuple[int, frozenset[str]]] = {}
    for i, nest in enumerate(signed.program.nests):
        located_here = list(equations_in(nest, (i,)))
        _threads(i, located_here, log)
        for located in located_here:
            blocks = frozenset(
                loop.axis for loop in located.loops if loop.axis and loop.axis[0] == "b"
            )
            for expr in expressions(located.equation):
                for access in accesses_in(expr):
                    if access.scope == "g":
                        continue
                    home = homes.setdefault(access.name, (i, blocks))
                    if home[0] != i:
                        message = f"{access.name} is used in nests {home[0]} and {i}"
                        log.report("scope-lifetime", message, located.path, access.name)
                    elif home[1] != blocks:
                        message = f"{access.name} is used under other block axes before"
                        log.report("scope-blocks", message, located.path, access.name)
    # A vector loop holds nothing but equations, and has as many lanes as hardware has.
    for path, nest in _nests(signed.program):
        inner = any(isinstance(s, Nest) for s in nest.body)
        for k, loop in enumerate(nest.loops):
            if loop.kind == "V" and loop.extent not in _LANES:
                message = f"V loop {loop.index} has {loop.extent} lanes"
                log.report("vector-width", message, path, loop.index)
            if loop.kind == "V" and (inner or k < len(nest.loops) - 1):
                message = f"V loop {loop.index} is not innermost"
                log.report("vector-not-innermost", message, path, loop.index)


def _nests(program: Program) -> Iterator[tuple[Path, Nest]]:
    def visit(statement: Statement, path: Path) -> Iterator[tuple[Path, Nest]]:
        if isinstance(statement, Nest):
            yield path, statement
            for i, child in enumerate(statement.body):
                yield from visit(child, (*path, i))

    for i, nest in enumerate(program.nests):
        yield from visit(nest, (i,))


def _kinds(path: Path, loops: tuple[Loop, ...], log: Log) -> None:
    for k, loop in enumerate(loops):
        outer = loops[:k]
        if loop.axis is not None and any(o.axis == loop.axis for o in outer):
            log.report("axis-repeated", f"{loop.axis} is bound twice", path, loop.axis)
        if loop.kind == "P" and any(o.kind == "P" for o in outer):
            log.report("parallel-nested", f"P loop {loop.index} inside another", path, loop.index)
        if loop.kind in "PB" and any(o.kind == "V" for o in outer):
            message = f"{loop.kind} loop {loop.index} inside a V loop"
            log.report("parallel-in-vector", message, path, loop.index)


def _threads(top: int, located: list[Located], log: Log) -> None:
    sets = [tuple(sorted({x.axis for x in e.loops if x.axis in THREAD_AXES})) for e in located]
    if not sets:
        return
    widest = max(sets, key=len)
    for equation, axes in zip(located, sets, strict=True):
        if axes != widest:
            message = f"under threads {list(axes)}, others in nest {top} under {list(widest)}"
            log.report("thread-structure", message, equation.path, "")
