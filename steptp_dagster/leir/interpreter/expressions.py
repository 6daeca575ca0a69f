"""Expressions as closures over the loop indices' values.

``Compiler`` turns an expression into a function of the environment (a list of index values) that
evaluates it node by node in its evaluation types. Reading a tensor goes through ``reader``, which
the caller supplies.
"""

import math
import operator
from collections.abc import Callable
from typing import Final, assert_never

from steptp_dagster.leir.ast import (
    LOGICAL,
    Access,
    Binary,
    Call,
    Compare,
    Expr,
    Index,
    Inf,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.interpreter.types import Types
from steptp_dagster.leir.interpreter.values import (
    FLOAT_FUNCTIONS,
    Rounding,
    Value,
    divide,
    maximum,
    minimum,
    power,
    rounding,
    wrapping,
)

Env = list[int]
Closure = Callable[[Env], Value]
#: Called with a kind and a message when an evaluation has no defined result.
Complaint = Callable[[str, str], None]

_COMPARE: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Compiler:
    """Makes closures for the expressions of one equation.

    ``slots`` maps loop indices to places in the environment; ``reader(access)`` gives a closure
    that reads a tensor element as it lies in memory.
    """

    def __init__(
        self,
        types: Types,
        slots: dict[str, int],
        reader: Callable[[Access], Closure],
        complain: Complaint,
    ) -> None:
        """Prepare the roundings; nothing is compiled yet."""
        self.types = types
        self.slots = slots
        self.reader = reader
        self.complain = complain
        self.round: dict[str, Rounding] = {"f32": rounding("f32"), "f64": rounding("f64")}

    def typed(self, expr: Expr, wanted: str | None = None) -> tuple[Closure, str]:
        """``expr`` and the type it is evaluated in; a free type becomes ``wanted`` (a dtype)."""
        dtype = self.types.settled(self.types.of(expr), wanted)
        return self._node(expr, dtype), dtype

    def as_type(self, expr: Expr, dtype: str) -> Closure:
        """``expr`` evaluated in its own type, then converted to ``dtype``."""
        closure, own = self.typed(expr, dtype)
        return self.converted(closure, own, dtype)

    def condition(self, expr: Expr) -> Closure:
        """A condition: its open types are f64, wherever it stands."""
        return self._apart().as_type(expr, "bool")

    def _apart(self) -> "Compiler":
        """A compiler for conditions and comparisons, which the target's type does not reach."""
        if self.types.context == "f64":
            return self
        types = Types("f64", doubles=self.types.doubles)
        return Compiler(types, self.slots, self.reader, self.complain)

    def subscript(self, expr: Expr) -> Closure:
        """A subscript, in i64."""
        return self.as_type(expr, "i64")

    def converted(self, closure: Closure, source: str, dtype: str) -> Closure:
        """The conversion of a value from one dtype to another, as a store makes it."""
        if source == dtype:
            return closure
        to, kind = DTYPES[dtype], DTYPES[source]
        if to.is_float:
            if kind.is_float and to.bits >= kind.bits:
                return closure
            rounded = self.round.get(dtype) or rounding(dtype)
            return lambda env: rounded(float(closure(env)))
        if to.kind == "bool":
            return lambda env: closure(env) != 0
        wrap = wrapping(dtype)
        if not kind.is_float:
            return lambda env: wrap(int(closure(env)))

        def truncated(env: Env) -> int:
            value = closure(env)
            if math.isfinite(value):
                whole = int(value)
                if wrap(whole) == whole:
                    return whole
            self.complain("undefined-conversion", f"{value} has no counterpart in {dtype}")
            return 0

        return truncated

    def _node(self, expr: Expr, dtype: str) -> Closure:
        match expr:
            case Int():
                value: Value = self._literal(expr.value, dtype)
                return lambda env: value
            case Real():
                number = self._literal(expr.value, dtype)
                return lambda env: number
            case Inf():
                return lambda env: math.inf
            case Index():
                slot = self.slots[expr.name]
                return lambda env: env[slot]
            case Access():
                return self.reader(expr)
            case Unary():
                operand = self.as_type(expr.operand, dtype)
                if DTYPES[dtype].is_float:
                    return lambda env: -operand(env)
                wrap = wrapping(dtype)
                return lambda env: wrap(-int(operand(env)))
            case Binary():
                if expr.op in LOGICAL:
                    return self._apart()._logical(expr)
                left, right = self.as_type(expr.left, dtype), self.as_type(expr.right, dtype)
                if DTYPES[dtype].is_float:
                    return self._real(expr.op, left, right, dtype)
                return self._whole(expr, left, right, dtype)
            case Compare():
                return self._apart()._chain(expr)
            case Call():
                return self._call(expr, dtype)
        assert_never(expr)

    def _literal(self, value: float, dtype: str) -> Value:
        if DTYPES[dtype].is_float:
            return self.round[dtype](float(value))
        return wrapping(dtype)(int(value))

    def _logical(self, expr: Binary) -> Closure:
        left, right = self.as_type(expr.left, "bool"), self.as_type(expr.right, "bool")
        if expr.op == "&":
            return lambda env: bool(left(env)) & bool(right(env))
        return lambda env: bool(left(env)) | bool(right(env))

    def _chain(self, expr: Compare) -> Closure:
        links = []
        for op, left, right in zip(expr.ops, expr.operands, expr.operands[1:], strict=False):
            both = self.types.joined(self.types.of(left), self.types.of(right))
            joined = self.types.settled(both)
            links.append((_COMPARE[op], self.as_type(left, joined), self.as_type(right, joined)))
        if len(links) == 1:
            compare, first, second = links[0]
            return lambda env: compare(first(env), second(env))

        def conjunction(env: Env) -> bool:
            results = [holds(a(env), b(env)) for holds, a, b in links]  # strict, as `&` is
            return all(results)

        return conjunction

    def _real(self, op: str, left: Closure, right: Closure, dtype: str) -> Closure:
        to = self.round[dtype]
        match op:
            case "+":
                return lambda env: to(left(env) + right(env))
            case "-":
                return lambda env: to(left(env) - right(env))
            case "*":
                return lambda env: to(left(env) * right(env))
            case "/":
                return lambda env: to(divide(left(env), right(env)))
            case "**":
                return lambda env: to(power(left(env), right(env)))
        floor = FLOAT_FUNCTIONS["floor"]
        if op == "//":
            return lambda env: floor(to(divide(left(env), right(env))))

        def modulo(env: Env) -> Value:
            a, b = left(env), right(env)
            return to(a - to(floor(to(divide(a, b))) * b))

        return modulo

    def _whole(self, expr: Binary, left: Closure, right: Closure, dtype: str) -> Closure:
        wrap = wrapping(dtype)
        match expr.op:
            case "+":
                return lambda env: wrap(int(left(env) + right(env)))
            case "-":
                return lambda env: wrap(int(left(env) - right(env)))
            case "*":
                return lambda env: wrap(int(left(env) * right(env)))
            case "**":
                return lambda env: wrap(int(left(env)) ** int(right(env)))
        divides = operator.floordiv if expr.op == "//" else operator.mod

        def divided(env: Env) -> Value:
            a, b = int(left(env)), int(right(env))
            if b == 0:
                self.complain("integer-division-by-zero", f"{a} {expr.op} 0")
                return 0
            return wrap(divides(a, b))

        return divided

    def _call(self, expr: Call, dtype: str) -> Closure:
        if expr.function == "if_then_else":
            condition = self.condition(expr.arguments[0])
            yes, no = (self.as_type(a, dtype) for a in expr.arguments[1:])
            return lambda env: yes(env) if condition(env) else no(env)
        first = self.as_type(expr.arguments[0], dtype)
        if expr.function in ("max", "min"):
            pick = maximum if expr.function == "max" else minimum
            second = self.as_type(expr.arguments[1], dtype)
            return lambda env: pick(first(env), second(env))
        if DTYPES[dtype].is_float:
            function, to = FLOAT_FUNCTIONS[expr.function], self.round[dtype]
            return lambda env: to(function(first(env)))
        if expr.function == "abs":
            wrap = wrapping(dtype)
            return lambda env: wrap(abs(int(first(env))))
        return first  # floor, ceil and round of a whole number
