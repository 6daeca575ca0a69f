"""What values the expressions of a program really take, seen by watching the interpreter."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from steptp_dagster.leir.ast import Equation, Expr
from steptp_dagster.leir.interpreter import expressions, interpret
from steptp_dagster.leir.interpreter.expressions import Closure, Compiler, Env
from steptp_dagster.leir.interpreter.nests import NestCompiler
from steptp_dagster.leir.interpreter.values import Value
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path


@dataclass
class Seen:
    """All values of one expression in the place of one equation, in few words."""

    low: float = math.inf
    high: float = -math.inf
    zero: bool = False
    minus_zero: bool = False
    infinite: bool = False
    nan: bool = False
    broken: bool = False

    def add(self, value: Value) -> None:
        number = float(value)
        if math.isnan(number):
            self.nan = True
            return
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.zero = self.zero or number == 0.0
        self.minus_zero = self.minus_zero or (number == 0.0 and math.copysign(1.0, number) < 0)
        self.infinite = self.infinite or math.isinf(number)
        self.broken = self.broken or (not math.isinf(number) and number != math.floor(number))


Observations = dict[tuple[Path, Expr], Seen]


@contextmanager
def _watching(found: Observations, patch: pytest.MonkeyPatch) -> Iterator[None]:
    place: list[Path] = [()]
    plain = Compiler._node
    equation = NestCompiler._equation

    def node(self: Compiler, expr: Expr, dtype: str) -> Closure:
        closure = plain(self, expr, dtype)
        seen = found.setdefault((place[0], expr), Seen())

        def watched(env: Env) -> Value:
            value = closure(env)
            seen.add(value)
            return value

        return watched

    def at(self: NestCompiler, one: Equation, path: Path, loops: object, states: object) -> object:
        place[0] = path
        return equation(self, one, path, loops, states)  # type: ignore[arg-type]

    patch.setattr(expressions.Compiler, "_node", node)
    patch.setattr(NestCompiler, "_equation", at)
    yield
    patch.undo()


def observe(
    signed: SignedProgram, inputs: Mapping[str, np.ndarray], precision: str = "working"
) -> Observations:
    """Every value that every expression takes on these inputs, by equation."""
    found: Observations = {}
    with pytest.MonkeyPatch.context() as patch, _watching(found, patch):
        chosen = "float64" if precision == "float64" else "working"
        interpret(signed, inputs, precision=chosen, dynamic=False)  # type: ignore[arg-type]
    return found
