"""Size and work of a program, computed from its syntax tree alone.

Everything counts executed instances of equations: a loop multiplies by its extent, and guards
count as always true, so figures of guarded equations are upper bounds. ``if_then_else`` counts
its condition and, figure by figure, the more expensive branch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from steptp_dagster.leir.ast import (
    LOGICAL,
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Nest,
    Real,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES, SCOPES
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import Typed, typed_equation
from steptp_dagster.leir.walk import equations_in, nests_in


@dataclass(frozen=True, slots=True)
class Cost:
    """Size measures of a program.

    ``nests`` counts top-level nests, ``loops`` loop headers, ``equations`` equations as written;
    ``loop_depth`` is the largest number of loops around one equation. ``iterations`` is the
    number of executed equation instances, ``flops`` that of floating-point operations (arithmetic
    operators, and every function but ``if_then_else``, whose evaluation type is a float; a minus
    sign, a comparison and a conversion count nothing). ``bytes_read`` and ``bytes_written`` are
    bytes per scope (``g``, ``s``, ``l``): every occurrence of a tensor counts, no reuse assumed.
    """

    nests: int
    loops: int
    equations: int
    loop_depth: int
    iterations: int
    flops: int
    bytes_read: Mapping[str, int] = field(hash=False)
    bytes_written: Mapping[str, int] = field(hash=False)


def cost(signed: SignedProgram) -> Cost:
    """The size measures of a program. Total: also on programs that are not valid."""
    parts = [_of_nest(nest) for nest in signed.program.nests]
    return Cost(
        nests=len(parts),
        loops=sum(part.loops for part in parts),
        equations=sum(part.equations for part in parts),
        loop_depth=max(part.loop_depth for part in parts),
        iterations=sum(part.iterations for part in parts),
        flops=sum(part.flops for part in parts),
        bytes_read={scope: sum(p.bytes_read[scope] for p in parts) for scope in SCOPES},
        bytes_written={scope: sum(p.bytes_written[scope] for p in parts) for scope in SCOPES},
    )


@per_nest
def _of_nest(nest: Nest) -> Cost:
    """The size measures of one top-level nest."""
    iterations = flops = depth = count = 0
    read, written = dict.fromkeys(SCOPES, 0), dict.fromkeys(SCOPES, 0)
    for located in equations_in(nest):
        instances = prod(loop.extent for loop in located.loops)
        count += 1
        depth = max(depth, len(located.loops))
        iterations += instances
        work, traffic = _per_instance(located.equation)
        flops += work * instances
        for scope, size in traffic.items():
            read[scope] += size * instances
        target = located.equation.target
        written[target.scope] += DTYPES[target.dtype].bytes * instances
    return Cost(
        nests=1,
        loops=sum(len(inner.loops) for _, inner in nests_in(nest)),
        equations=count,
        loop_depth=depth,
        iterations=iterations,
        flops=flops,
        bytes_read=read,
        bytes_written=written,
    )


#: Floating-point operations, and bytes read by scope.
_Work = tuple[int, dict[str, int]]


def _per_instance(equation: Equation) -> _Work:
    if equation.guard is None and all(map(_is_plain, equation.target.subscripts)):
        sizes: dict[str, int] = {}
        found = _evident(equation.value, sizes)
        if found is not None:
            return found[0], sizes
    return _by_types(equation)


def _is_plain(subscript: Expr) -> bool:
    return isinstance(subscript, Index | Int)


def _evident(expr: Expr, sizes: dict[str, int]) -> tuple[int, bool] | None:
    """Operations, and whether the value is made of floats, where a look at each node tells.

    That is where every operation has an operand that is one. The bytes that are read are added to
    ``sizes``; None where types have to be worked out.
    """
    if isinstance(expr, Access):
        dtype = DTYPES[expr.dtype]
        if not dtype.is_float or not all(map(_is_plain, expr.subscripts)):
            return None
        sizes[expr.scope] = sizes.get(expr.scope, 0) + dtype.bytes
        return 0, True
    if isinstance(expr, Int | Real | Inf):
        return 0, False
    if isinstance(expr, Unary):
        return _evident(expr.operand, sizes)
    if isinstance(expr, Binary):
        operands: tuple[Expr, ...] = (expr.left, expr.right)
        if expr.op in LOGICAL:
            return None
    elif isinstance(expr, Call) and expr.function != "if_then_else":
        operands = expr.arguments
    else:
        return None
    flops = 1
    is_float = False
    for operand in operands:
        found = _evident(operand, sizes)
        if found is None:
            return None
        flops += found[0]
        is_float = is_float or found[1]
    return (flops, True) if is_float else None


@lru_cache(maxsize=4096)
def _by_types(equation: Equation) -> _Work:
    typed = typed_equation(equation)
    parts = [_work(subscript) for subscript in typed.target.operands]
    parts.append(_work(typed.value))
    if typed.guard is not None:
        parts.append(_work(typed.guard))
    return _sum(parts)


def _work(typed: Typed) -> _Work:
    below = [_work(operand) for operand in typed.operands]
    match typed.expr:
        case Call(function="if_then_else"):
            return _sum([below[0], _most(below[1], below[2])])
        case Binary(op=op) if op not in LOGICAL and typed.dtype.is_float:
            below.append((1, {}))
        case Call() if typed.dtype.is_float:
            below.append((1, {}))
        case Access(dtype=dtype, scope=scope):
            below.append((0, {scope: DTYPES[dtype].bytes}))
        case _:
            pass
    return _sum(below)


def _sum(parts: list[_Work]) -> _Work:
    if not parts:
        return 0, {}
    total: dict[str, int] = {}
    for _, sizes in parts:
        for scope, size in sizes.items():
            total[scope] = total.get(scope, 0) + size
    return sum(flops for flops, _ in parts), total


def _most(first: _Work, second: _Work) -> _Work:
    scopes = (*first[1], *(scope for scope in second[1] if scope not in first[1]))
    sizes = {scope: max(first[1].get(scope, 0), second[1].get(scope, 0)) for scope in scopes}
    return max(first[0], second[0]), sizes
