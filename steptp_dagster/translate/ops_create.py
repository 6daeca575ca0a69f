"""Tensors made from nothing: constants and index ramps, which stay expressions until stored."""

from typing import Any

from steptp_dagster.leir.ast import Binary, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Variable
from steptp_dagster.translate.coords import Coord
from steptp_dagster.translate.operators import Call, operator
from steptp_dagster.translate.ops_elementwise import holds
from steptp_dagster.translate.scalars import ONE, ZERO, Scalar, add, choose, compare, literal, mul
from steptp_dagster.translate.values import Value, filled


@operator("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full(call: Call, _like: Any, *arguments: Any) -> Value:  # noqa: ANN401
    """A constant tensor."""
    value = arguments[1] if call.name == "aten.new_full.default" else arguments[0]
    return _constant(call, value)


@operator("aten.scalar_tensor.default")
def scalar_tensor(call: Call, value: Scalar, *_options: Any) -> Value:  # noqa: ANN401
    """A constant scalar."""
    return _constant(call, value)


@operator(
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.empty_permuted.default",
    "aten.empty_strided.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
    "aten.new_zeros.default",
    "aten.zeros.default",
    "aten.zeros_like.default",
)
def zeros(call: Call, *_options: Any) -> Value:  # noqa: ANN401
    """Zeros, also where a program leaves the contents open."""
    return _constant(call, 0)


@operator("aten.ones_like.default", "aten.ones.default", "aten.new_ones.default")
def ones(call: Call, *_options: Any) -> Value:  # noqa: ANN401
    """Ones."""
    return _constant(call, 1)


def _constant(call: Call, value: Scalar) -> Value:
    if not DTYPES[call.dtype].is_float:
        value = bool(value) if call.dtype == "bool" else int(value)
    return filled(call.shape, call.dtype, literal(value))


@operator("aten.arange.start_step")
def arange(call: Call, start: Scalar, _end: Scalar, step: Scalar, *_options: Any) -> Value:  # noqa: ANN401
    """``start + i*step``."""
    integral = isinstance(start, int) and isinstance(step, int)

    def element(i: Coord) -> Expr:
        if integral:
            return (i * int(step) + int(start)).to_expr()
        scaled = i.to_expr() if step == 1 else mul(i.to_expr(), literal(step))
        return scaled if start == 0 else add(literal(start), scaled)

    ramp = Value(call.shape, call.dtype, lambda c: element(*c))
    return ramp if call.dtype == "i64" else call.builder.compute(call.shape, call.dtype, element)


@operator("aten.tril_indices.default", "aten.triu_indices.default")
def triangle_indices(call: Call, rows: int, columns: int, offset: int, *_options: Any) -> Value:  # noqa: ANN401
    """Rows and columns of the elements of a triangle: constants."""
    lower = "tril" in call.name
    places = [
        (i, j)
        for i in range(rows)
        for j in range(columns)
        if (j - i <= offset if lower else j - i >= offset)
    ]
    values = tuple(i for i, _ in places) + tuple(j for _, j in places)
    return call.builder.declare(
        lambda name: Variable("const", name, call.dtype, call.shape, values=values)
    )


def _triangle(call: Call, x: Value, diagonal: int, sign: str) -> Value:
    def element(*c: Coord) -> Expr:
        row, column = c[-2], c[-1]
        # column - row <= diagonal, written without a negative term
        left, right = (column, row + diagonal) if diagonal >= 0 else (column - diagonal, row)
        here = compare(left.to_expr(), sign, right.to_expr())
        if x.dtype != "bool":
            return choose(here, x(*c), ZERO)
        return here if x(*c) == ONE else Binary("&", here, holds(x(*c)))

    return call.builder.compute(call.shape, call.dtype, element)


@operator("aten.tril.default")
def tril(call: Call, x: Value, diagonal: int) -> Value:
    """The elements on and below a diagonal, zeros above."""
    return _triangle(call, x, diagonal, "<=")


@operator("aten.triu.default")
def triu(call: Call, x: Value, diagonal: int) -> Value:
    """The elements on and above a diagonal, zeros below."""
    return _triangle(call, x, diagonal, ">=")
