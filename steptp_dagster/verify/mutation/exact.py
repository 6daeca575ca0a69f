"""Programs in exact arithmetic: rational numbers for floats, integers for integers.

For programs of ``+ - * / // % max min abs floor ceil round if_then_else``, comparisons and powers
with integer exponents. Nothing is rounded, so that two results are equal or the programs differ.
Written for valid programs: what the dynamic checks of the interpreter find is not looked for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Final

from steptp_dagster.leir.ast import (
    BLOCK_AXES,
    THREAD_AXES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Nest,
    Real,
    Statement,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.interpreter.structure import launch_loops, pure_update
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, equations, expressions, iter_expr, loops_around

#: A rational or an integer; floats are infinities and NaN only.
Number = Fraction | int | float
Results = dict[str, dict[tuple[int, ...], Number]]

_FUNCTIONS: Final = frozenset({"max", "min", "abs", "floor", "ceil", "round", "if_then_else"})
#: Integer types whose values these small data cannot overflow.
_WHOLE: Final = frozenset({"i32", "i64", "bool"})
_IDENTITY: Final[Mapping[str, Number]] = {"+": 0, "*": 1, "max": -math.inf, "min": math.inf}
_OWNERS: Final = {"g": (), "s": BLOCK_AXES, "l": BLOCK_AXES + THREAD_AXES}


class NotExact(ValueError):
    """The program uses what exact arithmetic does not have."""


def is_rational(signed: SignedProgram) -> bool:
    """Whether a program can be evaluated exactly, its integers being small."""
    if any(not _plain(v.dtype) for v in signed.signature.variables):
        return False
    for located in equations(signed.program):
        for expr in expressions(located.equation):
            for node in iter_expr(expr):
                match node:
                    case Call(function=function) if function not in _FUNCTIONS:
                        return False
                    case Binary(op="**", right=exponent) if not isinstance(exponent, Int):
                        return False
                    case Access(dtype=dtype) if not _plain(dtype):
                        return False
                    case _:
                        pass
    return True


def evaluate(signed: SignedProgram, inputs: Mapping[str, Sequence[Number]]) -> Results:
    """The elements of all outputs that were written; infinities and NaN as floats.

    ``inputs`` are in row-major order. Raises NotExact where ``is_rational`` says no, or where a
    number grows beyond what can be mixed with infinities.
    """
    if not is_rational(signed):
        raise NotExact("no program of rational operations")
    machine = _Machine(signed)
    for variable in signed.signature.sources:
        values = variable.values if variable.values is not None else inputs[variable.name]
        whole = not DTYPES[variable.dtype].is_float
        exact = [int(v) if whole else v if isinstance(v, Fraction) else _exact(v) for v in values]
        keys = product(*(range(extent) for extent in variable.shape))
        machine.cells[variable.name] = dict(zip(keys, exact, strict=True))
    try:
        for i, nest in enumerate(signed.program.nests):
            machine.launch = launch_loops(nest, (i,))
            machine.run(nest, (i,))
    except (OverflowError, KeyError) as error:
        raise NotExact(f"{type(error).__name__}: {error}") from error
    return {v.name: machine.cells.get(v.name, {}) for v in signed.signature.outputs}


@dataclass(slots=True)
class _Machine:
    """Cells by tensor and key; ``env`` holds the indices, ``axes`` the hardware coordinates."""

    signed: SignedProgram
    cells: dict[str, dict[tuple[int, ...], Number]] = field(default_factory=dict)
    env: dict[str, int] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)
    launch: tuple[Path, ...] = ()
    launched: list[int] = field(default_factory=list)
    updates: dict[Path, str | None] = field(default_factory=dict)

    def run(self, statement: Statement, path: Path) -> None:
        if isinstance(statement, Equation):
            self.store(statement, path)
        else:
            self.loop(statement, path, 0)

    def loop(self, nest: Nest, path: Path, k: int) -> None:
        if k == len(nest.loops):
            for i, statement in enumerate(nest.body):
                self.run(statement, (*path, i))
            return
        loop = nest.loops[k]
        # The first loops of a path are launches, as many as the path occurs among them.
        launches = k < self.launch.count(path)
        for value in range(loop.start, loop.start + loop.extent):
            self.env[loop.index] = value
            if loop.axis is not None:
                self.axes[loop.axis] = value
            if launches:
                self.launched.append(value)
            self.loop(nest, path, k + 1)
            if launches:
                self.launched.pop()
            if loop.axis is not None:
                del self.axes[loop.axis]

    def store(self, equation: Equation, path: Path) -> None:
        if equation.guard is not None and not self.value(equation.guard):
            return
        target = equation.target
        cells = self.cells.setdefault(target.name, {})
        key = self.key(target)
        if path not in self.updates:
            update = pure_update(equation, loops_around(self.signed.program, path))
            self.updates[path] = None if update is None else update.op
        op = self.updates[path]
        if op is not None and key not in cells:
            cells[key] = _IDENTITY[op]
        value = self.value(equation.value)
        dtype = DTYPES[target.dtype]
        if dtype.is_float:
            cells[key] = _exact(value)
        elif dtype.kind == "bool":
            cells[key] = int(value != 0)
        else:
            cells[key] = int(value)

    def key(self, access: Access) -> tuple[int, ...]:
        subscripts = tuple(int(self.value(s)) for s in access.subscripts)
        if access.scope == "g":
            return subscripts
        owners = tuple(self.axes.get(axis, -1) for axis in _OWNERS[access.scope])
        return (*self.launched, *owners, *subscripts)

    def value(self, expr: Expr) -> Number:
        match expr:
            case Int():
                return expr.value
            case Real():
                return Fraction(expr.text)
            case Inf():
                return math.inf
            case Index():
                return self.env[expr.name]
            case Access():
                return self.cells[expr.name][self.key(expr)]
            case Unary():
                return -self.value(expr.operand)
            case Compare():
                operands = [self.value(e) for e in expr.operands]
                pairs = zip(expr.ops, operands, operands[1:], strict=False)
                return int(all(_compared(op, a, b) for op, a, b in pairs))
            case Call():
                return self.call(expr)
            case Binary():
                left, right = self.value(expr.left), self.value(expr.right)
                if expr.op == "&":
                    return int(bool(left) and bool(right))
                if expr.op == "|":
                    return int(bool(left) or bool(right))
                return _operated(expr.op, left, right)

    def call(self, expr: Call) -> Number:
        if expr.function == "if_then_else":
            condition, yes, no = expr.arguments
            return self.value(yes if self.value(condition) else no)
        values = [self.value(e) for e in expr.arguments]
        if any(isinstance(v, float) and math.isnan(v) for v in values):
            return math.nan
        first = values[0]
        match expr.function:
            case "max":
                return first if first > values[1] else values[1]
            case "min":
                return first if first < values[1] else values[1]
            case "abs":
                return -first if first < 0 else first
        if isinstance(first, float):  # an infinity
            return first
        match expr.function:
            case "floor":
                return math.floor(first)
            case "ceil":
                return math.ceil(first)
            case _:
                return round(first)


def _operated(op: str, left: Number, right: Number) -> Number:
    if any(isinstance(v, float) and math.isnan(v) for v in (left, right)):
        return math.nan
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "**":
            if left == 0 and right < 0:
                return math.nan
            return left ** int(right)
    if right == 0:
        if op == "/" and left != 0:
            return math.inf if left > 0 else -math.inf
        return math.nan
    if op == "/":
        if isinstance(left, float) or isinstance(right, float):
            return _exact(left / right)
        return Fraction(left) / Fraction(right)
    if isinstance(left, float) or isinstance(right, float):
        return math.nan
    return left // right if op == "//" else left % right


def _compared(op: str, left: Number, right: Number) -> bool:
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
        case _:
            return left != right


def _exact(value: Number) -> Number:
    """Finite floats and integers as rationals; infinities and NaN stay."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return Fraction(value)


def _plain(dtype: str) -> bool:
    return DTYPES[dtype].is_float or dtype in _WHOLE
