"""Expressions as TIR: typed node by node, branches lazy, memory accesses flat."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np
from tvm import tirx

from steptp_dagster.leir.ast import (
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
from steptp_dagster.leir.dtypes import DTYPES, DType
from steptp_dagster.leir.typing import Typed
from steptp_dagster.leir.walk import accesses_in
from steptp_dagster.lowering import scalar
from steptp_dagster.lowering.machine import LLVM, Machine
from steptp_dagster.lowering.storage import EVALUATED_AS, convert, is_float, widen
from steptp_dagster.lowering.tir import Buffer, Node, Variable, integer, real

_I64: Final = "int64"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's flat buffer, LEIR dtype, and shape with the axes of its instances in front."""

    buffer: Buffer
    dtype: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Emitter:
    """Emits typed expressions.

    ``indices`` maps loop indices to TIR variables (int64), ``axes`` hardware axes to those of the
    loops bound to them.
    """

    tensors: Mapping[str, Tensor]
    indices: Mapping[str, Variable]
    axes: Mapping[str, Variable]
    machine: Machine = LLVM

    def as_type(self, typed: Typed, dtype: DType) -> Node:
        """An expression evaluated in its own type, then converted to an evaluation type."""
        source, target = EVALUATED_AS[typed.dtype.name], EVALUATED_AS[dtype.name]
        return convert(self.value(typed), source, target, self.machine)

    def address(self, access: Typed) -> tuple[Tensor, Node]:
        """The tensor of a typed access and the flat index of its element (int64)."""
        expr = access.expr
        if not isinstance(expr, Access):
            raise TypeError(f"not a tensor access: {expr}")
        tensor = self.tensors[expr.name]
        coordinates = [self.axes[axis] for axis in tensor.axes]
        coordinates += [self._subscript(s) for s in access.operands]
        flat = integer(_I64, 0)
        for coordinate, extent in zip(coordinates, tensor.shape, strict=True):
            flat = _plus(_times(flat, extent), coordinate)
        return tensor, flat

    def value(self, typed: Typed) -> Node:
        """An expression in its own evaluation type."""
        expr, tir = typed.expr, EVALUATED_AS[typed.dtype.name]
        match expr:
            case Int() | Real() | Inf():
                return _literal(expr, tir)
            case Index():
                return self.indices[expr.name]
            case Access():
                tensor, flat = self.address(typed)
                return widen(tensor.dtype, tirx.BufferLoad(tensor.buffer, [flat]))
            case Unary():
                operand = self.as_type(typed.operands[0], typed.dtype)
                if _is_index_arithmetic(expr, tir):
                    return tirx.Sub(integer(tir, 0), operand)
                return scalar.negate(operand, tir, self.machine)
            case Binary():
                return self._binary(expr, typed, tir)
            case Compare():
                return self._chain(expr, typed)
            case Call():
                return self._call(expr, typed, tir)
        assert_never(expr)

    def _binary(self, expr: Binary, typed: Typed, tir: str) -> Node:
        if expr.op == "**" and not is_float(tir):
            if not isinstance(expr.right, Int):
                raise TypeError("an integer power has a literal exponent")
            base = self.as_type(typed.operands[0], typed.dtype)
            return scalar.integer_power(base, expr.right.value, tir, self.machine)
        left, right = (
            self.as_type(operand, dtype)
            for operand, dtype in zip(typed.operands, typed.converted, strict=True)
        )
        if expr.op in _TRUNCATING and tir == _I64 and _divides_naturals(expr):
            return _TRUNCATING[expr.op](left, right)
        match expr.op:
            case "&":
                return tirx.And(left, right)
            case "|":
                return tirx.Or(left, right)
            case "//":
                return scalar.floor_divide(left, right, tir, self.machine)
            case "%":
                return scalar.floor_modulo(left, right, tir, self.machine)
            case "**":
                return scalar.power(left, right, tir, self.machine)
        if _is_index_arithmetic(expr, tir):
            return _PLAIN[expr.op](left, right)
        return scalar.arithmetic(expr.op, left, right, tir, self.machine)

    def _chain(self, expr: Compare, typed: Typed) -> Node:
        conjunction = None
        pairs = zip(typed.operands, typed.operands[1:], strict=False)
        for op, dtype, (left, right) in zip(expr.ops, typed.comparisons, pairs, strict=True):
            link = scalar.compare(op, self.as_type(left, dtype), self.as_type(right, dtype))
            conjunction = link if conjunction is None else tirx.And(conjunction, link)
        return conjunction

    def _call(self, expr: Call, typed: Typed, tir: str) -> Node:
        operands = [
            self.as_type(operand, dtype)
            for operand, dtype in zip(typed.operands, typed.converted, strict=True)
        ]
        match expr.function:
            case "if_then_else":
                return tirx.if_then_else(*operands)
            case "max" | "min":
                return scalar.arithmetic(expr.function, operands[0], operands[1], tir, self.machine)
        return scalar.function(expr.function, operands[0], tir, self.machine)

    def _subscript(self, typed: Typed) -> Node:
        """A subscript as an int64; its arithmetic stays far from the ends of the type."""
        expr = typed.expr
        match expr:
            case Int():
                return _literal(expr, _I64)
            case Unary():
                return tirx.Sub(integer(_I64, 0), self._subscript(typed.operands[0]))
            case Binary(op="+" | "-" | "*" | "//" | "%"):
                left, right = (self._subscript(operand) for operand in typed.operands)
                if expr.op in _PLAIN:
                    return _PLAIN[expr.op](left, right)
                if _divides_naturals(expr):
                    return _TRUNCATING[expr.op](left, right)
                divide = scalar.floor_divide if expr.op == "//" else scalar.floor_modulo
                return divide(left, right, _I64, self.machine)
            case _:
                return self.as_type(typed, DTYPES["i64"])


_PLAIN: Final = {"+": tirx.Add, "-": tirx.Sub, "*": tirx.Mul}
_TRUNCATING: Final = {"//": tirx.Div, "%": tirx.Mod}


def _literal(expr: Int | Real | Inf, tir: str) -> Node:
    """A literal in a TIR dtype: rounded to a float, wrapped to an integer."""
    if is_float(tir):
        value = float("inf") if isinstance(expr, Inf) else float(expr.value)
        if tir == "float32":
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
        return real(tir, value)
    if not isinstance(expr, Int):
        raise TypeError(f"a decimal literal cannot be evaluated as {tir}")
    bits = np.iinfo(tir).bits
    wrapped = expr.value % (1 << bits)
    if not tir.startswith("u") and wrapped >= 1 << (bits - 1):
        wrapped -= 1 << bits
    return integer(tir, wrapped)


def _is_index_arithmetic(expr: Unary | Binary, tir: str) -> bool:
    """Whether an int64 operation sees loop indices and literals only, so that it cannot wrap."""
    return (
        tir == _I64
        and (isinstance(expr, Unary) or expr.op in _PLAIN)
        and next(accesses_in(expr), None) is None
    )


def _divides_naturals(expr: Binary) -> bool:
    """Whether a division rounds down if it rounds toward zero, by its form alone."""
    return isinstance(expr.right, Int) and expr.right.value > 0 and _never_negative(expr.left)


def _never_negative(expr: Expr) -> bool:
    """Whether index arithmetic is non-negative by its form alone."""
    match expr:
        case Int() | Index():
            return True
        case Binary(op="+" | "*" | "//"):
            return _never_negative(expr.left) and _never_negative(expr.right)
        case Binary(op="%", right=Int()):
            return True
        case _:
            return False


def _plus(left: Node, right: Node) -> Node:
    if isinstance(left, tirx.IntImm) and int(left.value) == 0:
        return right
    return tirx.Add(left, right)


def _times(value: Node, factor: int) -> Node:
    if isinstance(value, tirx.IntImm) and int(value.value) == 0:
        return value
    return tirx.Mul(value, integer(_I64, factor))
