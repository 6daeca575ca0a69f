"""Matrix products."""

from collections.abc import Mapping
from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import (
    BATCH,
    LARGE_BATCH,
    LARGE_COLUMNS,
    LARGE_ROWS,
    MEDIUM,
    SMALL,
    WIDE,
)


def _work(shape: Shape) -> int:
    return prod(shape.values()) * 2


def _square(shape: Shape) -> int:
    return shape["n"] ** 3


def _of(
    program: str,
    module: str,
    inputs: tuple[Input, ...],
    pools: Mapping[str, tuple[int, ...]],
    large: Mapping[str, tuple[int, ...]] | None = None,
) -> Source:
    sides = dict.fromkeys(pools, LARGE_ROWS)
    big = {**sides, **(large or {})}
    work = _square if set(pools) == {"n"} else _work
    return Source(program, 1, "matmul", f"matmul:{module}", inputs, pools, big, work)


_PLAIN = {"m": MEDIUM, "n": MEDIUM, "k": MEDIUM}
_AB = (Input("a", ("m", "k")), Input("b", ("k", "n")))
_SQUARE = (Input("a", ("n", "n")), Input("b", ("n", "n")))

SOURCES = (
    _of(
        "Matmul3D",
        "MatMul",
        (Input("a", ("batch", "m", "k")), Input("b", ("k", "n"))),
        {"batch": BATCH, **_PLAIN},
        {"batch": LARGE_BATCH},
    ),
    _of(
        "Matmul4D",
        "Einsum4D",
        (Input("a", ("batch", "rows", "m", "k")), Input("b", ("k", "n"))),
        {"batch": BATCH, "rows": SMALL, "m": SMALL, "n": SMALL, "k": MEDIUM},
        {"batch": LARGE_BATCH, "rows": (32, 64)},
    ),
    _of("Square_matrix_multiplication", "MatMul", _SQUARE, {"n": MEDIUM}),
    _of("Standard_matrix_multiplication", "MatMul", _AB, _PLAIN),
    _of(
        "Batched_matrix_multiplication",
        "BatchedMatMul",
        (Input("a", ("batch", "m", "k")), Input("b", ("batch", "k", "n"))),
        {"batch": BATCH, **_PLAIN},
        {"batch": LARGE_BATCH},
    ),
    _of(
        "Matrix_vector_multiplication",
        "MatMul",
        (Input("a", ("m", "k")), Input("b", ("k", 1))),
        {"m": WIDE, "k": WIDE},
        {"k": LARGE_COLUMNS},
    ),
    _of(
        "Matrix_scalar_multiplication",
        "MatrixScalar",
        (Input("a", ("m", "n")),),
        {"m": WIDE, "n": WIDE},
        {"n": LARGE_COLUMNS},
    ),
    _of(
        "Matmul_with_large_K_dimension",
        "MatMul",
        _AB,
        {"m": SMALL, "n": SMALL, "k": (97, 128, 257, 512)},
        {"k": LARGE_COLUMNS},
    ),
    _of(
        "Matmul_with_small_K_dimension",
        "MatMul",
        _AB,
        {"m": WIDE, "n": WIDE, "k": (1, 2, 3, 4)},
        {"n": LARGE_COLUMNS, "k": (32, 64)},
    ),
    _of(
        "Matmul_with_irregular_shapes",
        "MatMul",
        _AB,
        {"m": (7, 11, 13, 17), "n": (3, 5, 19, 23), "k": (9, 13, 29, 31)},
        {"m": (577, 803, 1021), "n": (1543, 2949), "k": (1237, 5921)},
    ),
    _of(
        "Tall_skinny_matrix_multiplication",
        "MatMul",
        _AB,
        {"m": (64, 97, 128), "n": (64, 96), "k": (2, 3, 4)},
        {"m": (512, 1024), "n": LARGE_COLUMNS, "k": (16, 32)},
    ),
    _of(
        "Matmul_with_diagonal_mat",
        "DiagonalMatMul",
        (Input("a", ("n",)), Input("b", ("n", "m"))),
        {"n": MEDIUM, "m": MEDIUM},
        {"m": LARGE_COLUMNS},
    ),
    _of("Matmul_for_symmetric_matrices", "MatMul", _SQUARE, {"n": MEDIUM}),
    _of("Matmul_for_upper_triangular_matrices", "UpperTriangularMatMul", _SQUARE, {"n": MEDIUM}),
    _of("Matmul_for_lower_triangular_matrices", "LowerTriangularMatMul", _SQUARE, {"n": MEDIUM}),
    _of(
        "Matmul_with_transposed_A",
        "TransposedLeftMatMul",
        (Input("a", ("k", "m")), Input("b", ("k", "n"))),
        _PLAIN,
    ),
    _of(
        "Matmul_with_transposed_B",
        "TransposedRightMatMul",
        (Input("a", ("m", "k")), Input("b", ("n", "k"))),
        _PLAIN,
    ),
    _of(
        "Matmul_with_transposed_both",
        "TransposedBothMatMul",
        (Input("a", ("k", "m")), Input("b", ("n", "k"))),
        _PLAIN,
    ),
    Source(
        "MatMul_and_Softmax",
        2,
        "matmul",
        "matmul:MatMulSoftmax",
        (Input("x", ("m", "k")),),
        _PLAIN,
        {"m": LARGE_ROWS, "n": LARGE_ROWS, "k": LARGE_ROWS},
        _work,
        ("k", "n"),
    ),
)
