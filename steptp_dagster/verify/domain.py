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
        one = {name: np.asarray(value)[None] for name, value in data.items()}
        found = self.run_many(one, 1, np.ones(1, bool))
        return {name: np.asarray(value[0]) for name, value in found.items()}

    def run_many(self, data: dict[str, Array], count: int, poles: Array) -> dict[str, Array]:
        """The outputs of several runs; ``poles`` says for which of them poles are told apart."""
        results = self.kernel.run_many(data, count)
        chosen = poles.copy()
        chosen &= np.any([_rows(_infinite(r)).any(axis=1) for r in results.values()], axis=0)
        if not chosen.any():
            return results
        if self._marked is None:
            self._marked = self.engine.compile([with_poles_marked(self.signed)], "float64")[0]
        part = {name: value[chosen] for name, value in data.items()}
        marked = self._marked.run_many(part, int(chosen.sum()))
        for name, result in results.items():
            if result.dtype.kind == "f":
                own = result[chosen]
                result[chosen] = _masked(own, _infinite(own) & (marked[name] != own))
        return results


def without_overflow(results: dict[str, Array], where: Array) -> dict[str, Array]:
    """Results of several runs, NaN where they are infinite on large finite data (``where``)."""
    for result in results.values():
        if result.dtype.kind == "f":
            result[where] = _masked(result[where], _infinite(result[where]))
    return results


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


def _rows(values: Array) -> Array:
    return values.reshape(len(values), -1)


def _infinite(result: Array) -> Array:
    if result.dtype.kind != "f":
        return np.zeros(result.shape, dtype=bool)
    return np.asarray(np.isinf(result))


def _masked(result: Array, where: Array) -> Array:
    return np.where(where, np.nan, result) if where.any() else result
