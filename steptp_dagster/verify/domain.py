"""Where an original has a value: binary64 results that say nothing are turned into NaN.

An original's divisions, logarithms and powers are part of its domain: at a pole, such as the
division of a number by zero, it gives an infinity, but a rewrite that is right everywhere else
(``(a+b)/c`` as ``a/c+b/c``) may give another one or NaN. And where finite data overflows binary64
itself, the infinity is no result of the function. Infinities that were meant, from literals
(masks) or from infinite data, stay.
"""

from dataclasses import dataclass, field

import numpy as np

from steptp_dagster.leir.ast import Binary, Call, Compare, Expr, Inf, Int, Real
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import (
    accesses_in,
    equations,
    expressions,
    iter_expr,
    map_expr,
    map_program,
)
from steptp_dagster.verify.compare import Array
from steptp_dagster.verify.engine import LLVM, Engine, Runner

_NAN = Binary("-", Inf(), Inf())


@dataclass(slots=True)
class Reference:
    """An original in binary64. ``kernel`` is the program as it stands, run by ``engine``."""

    signed: SignedProgram
    kernel: Runner
    engine: Engine = LLVM
    _marked: Runner | None = field(default=None, init=False)

    def run(self, data: dict[str, Array]) -> dict[str, Array]:
        """The outputs on finite data, NaN where an infinity is one of a pole."""
        results = self.kernel.run(data)
        if not any(_infinite(r).any() for r in results.values()):
            return results
        if self._marked is None:
            self._marked = self.engine.compile([with_poles_marked(self.signed)], "float64")[0]
        marked = self._marked.run(data)
        return {
            name: _masked(result, _infinite(result) & (marked[name] != result))
            for name, result in results.items()
        }


def without_overflow(results: dict[str, Array]) -> dict[str, Array]:
    """Results on large finite data, NaN where they are infinite."""
    return {name: _masked(result, _infinite(result)) for name, result in results.items()}


def with_poles_marked(signed: SignedProgram) -> SignedProgram:
    """The program with NaN in the place of ``x/0``, ``log(0)``, and ``0**x`` if x is no literal.

    Nothing is evaluated that the program does not evaluate.
    """
    program = map_program(signed.program, lambda expr: map_expr(expr, _marked_pole))
    return SignedProgram(program, signed.signature)


def takes_masks(signed: SignedProgram) -> bool:
    """Whether ``-inf`` in the data is a mask to the program: it selects, compares or exponentiates.

    Plain arithmetic has no masks. Infinities there would only tell apart rewrites that agree on
    all numbers, such as ``a*(b+c)`` and ``a*b+a*c``.
    """
    return any(
        _selects(node)
        for located in equations(signed.program)
        for expr in expressions(located.equation)
        for node in iter_expr(expr)
    )


def _selects(node: Expr) -> bool:
    match node:
        case Inf() | Call(function="exp" | "max" | "min"):
            return True
        case Compare():
            return any(True for _ in accesses_in(node))
        case _:
            return False


def _marked_pole(expr: Expr) -> Expr:
    match expr:
        case Binary(op="/", right=Int() | Real() as divisor) if divisor.value != 0:
            return expr
        case Binary(op="/", right=zero):
            pass
        case Binary(op="**", right=Int() | Real()):
            return expr
        case Binary(op="**", left=zero) | Call(function="log", arguments=(zero,)):
            pass
        case _:
            return expr
    return Call("if_then_else", (Compare((zero, Int(0)), ("==",)), _NAN, expr))


def _infinite(result: Array) -> Array:
    if result.dtype.kind != "f":
        return np.zeros(result.shape, dtype=bool)
    return np.asarray(np.isinf(result))


def _masked(result: Array, where: Array) -> Array:
    return np.where(where, np.nan, result) if where.any() else result
