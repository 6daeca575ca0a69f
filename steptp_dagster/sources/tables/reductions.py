"""Reductions, softmaxes and running values."""

from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import (
    BATCH,
    LARGE_BATCH,
    LARGE_COLUMNS,
    LARGE_ROWS,
    MEDIUM,
    WIDE,
)

_MATRIX = {"rows": (1, *MEDIUM), "columns": WIDE}
_LARGE_MATRIX = {"rows": LARGE_ROWS, "columns": LARGE_COLUMNS}
_CUBE = {"batch": BATCH, "rows": MEDIUM, "columns": MEDIUM, "dim": (0, 1, 2)}
_LARGE_CUBE = {"batch": LARGE_BATCH, "rows": LARGE_ROWS, "columns": LARGE_ROWS, "dim": (1, 2)}
_X = (Input("x", ("rows", "columns")),)


def _rows_work(shape: Shape) -> int:
    return 3 * shape["rows"] * shape["columns"]


def _cube_work(shape: Shape) -> int:
    return 2 * prod(shape[n] for n in ("batch", "rows", "columns"))


def _rows(program: str, module: str, inputs: tuple[Input, ...] = _X) -> Source:
    family = "softmax" if "softmax" in program.lower() else "scan"
    return Source(
        program, 1, family, f"reductions:{module}", inputs, _MATRIX, _LARGE_MATRIX, _rows_work
    )


def _over(program: str, module: str) -> Source:
    return Source(
        program,
        1,
        "reduction",
        f"reductions:{module}",
        (Input("x", ("batch", "rows", "columns")),),
        _CUBE,
        _LARGE_CUBE,
        _cube_work,
        ("dim",),
        frozenset({"dim"}),
    )


SOURCES = (
    _rows("softmax", "Softmax"),
    _rows("LogSoftmax", "LogSoftmax"),
    _over("Sum_reduction_over_a_dimension", "Sum"),
    _over("Mean_reduction_over_a_dimension", "Mean"),
    _over("Max_reduction_over_a_dimension", "Max"),
    _over("Min_reduction_over_a_dimension", "Min"),
    _over("Product_reduction_over_a_dimension", "Prod"),
    _over("Argmax_over_a_dimension", "Argmax"),
    _over("Argmin_over_a_dimension", "Argmin"),
    _rows("cumsum", "CumSum"),
    _rows("cumprod", "CumProd"),
    _rows("cumsum_reverse", "ReverseCumSum"),
    _rows("cumsum_exclusive", "ExclusiveCumSum"),
    _rows("masked_cumsum", "MaskedCumSum", (*_X, Input("mask", ("rows", "columns"), "bool"))),
)
