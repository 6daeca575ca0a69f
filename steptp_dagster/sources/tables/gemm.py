"""Linear layers and what follows them. The class of a program is its name without underscores."""

from collections.abc import Callable, Mapping
from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import BATCH, LARGE_BATCH, LARGE_ROWS, MEDIUM, WIDE

_POSITIONS = (2, 3, 4, 5, 7)
_GROUPS = {"groups": (1, 2, 3), "features_per_group": (3, 4, 5, 7)}
_MATRIX = (Input("x", ("rows", "k")),)
_TOKENS = (Input("x", ("batch", "positions", "k")),)
#: Scalar iterations per result of the layer that all later operators together may take.
_AFTER = 12


def _work(shape: Shape) -> int:
    features = shape.get("n", shape["k"])
    if "groups" in shape:
        features = shape["groups"] * shape["features_per_group"]
    rows = prod(shape.get(name, 1) for name in ("rows", "batch", "positions", "depth", "columns"))
    return int(rows * features * (shape["k"] + _AFTER))


def _everything(_: Shape) -> bool:
    return True


def _source(
    program: str,
    inputs: tuple[Input, ...],
    pools: Mapping[str, tuple[int, ...]],
    arguments: tuple[str, ...],
    admits: Callable[[Shape], bool] = _everything,
    work: Callable[[Shape], int] = _work,
) -> Source:
    sides = {name: LARGE_ROWS for name in ("rows", "k", "n", "positions", "m") if name in pools}
    few = {name: LARGE_BATCH for name in ("batch",) if name in pools}
    groups = {"groups": (8, 16), "features_per_group": (16, 32)} if "groups" in pools else {}
    return Source(
        program,
        2,
        "gemm",
        f"gemm:{program.replace('_', '')}",
        inputs,
        pools,
        {**sides, **few, **groups},
        work,
        arguments,
        frozenset({"kernel"} & set(pools)),
        admits,
    )


def _plain(program: str) -> Source:
    pools = {"rows": (1, *MEDIUM), "k": MEDIUM, "n": WIDE}
    return _source(program, _MATRIX, pools, ("k", "n"))


def _grouped(program: str, rows: tuple[int, ...] = (1, *MEDIUM)) -> Source:
    pools = {"rows": rows, "k": MEDIUM, **_GROUPS}
    return _source(program, _MATRIX, pools, ("k", *_GROUPS))


def _over_positions(program: str) -> Source:
    pools = {"batch": BATCH, "positions": _POSITIONS, "k": MEDIUM, "n": MEDIUM}
    return _source(program, _TOKENS, pools, ("k", "n"))


def _pooled(program: str) -> Source:
    # fewer columns than two kernels leave nothing to reduce after the pooling
    columns = tuple(n for n in WIDE if n >= 2 * 3)
    pools = {"rows": (1, *MEDIUM), "k": MEDIUM, "n": columns, "kernel": (2, 3)}
    return _source(program, _MATRIX, pools, ("k", "n", "kernel"))


SOURCES = (
    *map(
        _plain,
        (
            "Gemm_Multiply_LeakyReLU",
            "Gemm_Divide_Sum_Scaling",
            "Gemm_Scale_BatchNorm",
            "Gemm_BatchNorm_Scaling_Softmax",
            "Gemm_Sigmoid_Sum_LogSumExp",
            "Gemm_Scaling_Hardtanh_GELU",
            "Gemm_ReLU_Divide",
            "Gemm_LogSumExp_LeakyReLU_LeakyReLU_GELU_GELU",
            "Gemm_Sigmoid_Scaling_ResidualAdd",
            "Gemm_Add_ReLU",
            "Gemm_Swish_Divide_Clamp_Tanh_Clamp",
            "Matmul_Mish_Mish",
            "Matmul_Scaling_ResidualAdd",
            "Matmul_Sigmoid_Sum",
            "Matmul_Swish_Scaling",
            "Matmul_Min_Subtract",
            "Matmul_Divide_GELU",
            "Matmul_Add_Swish_Tanh_GELU_Hardtanh",
            "Matmul_BatchNorm_BiasAdd_Divide_Swish",
            "Matmul_GELU_Softmax",
            "Matmul_Subtract_Multiply_ReLU",
        ),
    ),
    *map(
        _grouped,
        (
            "Gemm_GroupNorm_Hardtanh",
            "Gemm_GroupNorm_Min_BiasAdd",
            "Gemm_GroupNorm_Swish_Multiply_Swish",
            "Gemm_BiasAdd_Hardtanh_Mish_GroupNorm",
            "Matmul_Swish_Sum_GroupNorm",
            "Matmul_GroupNorm_LeakyReLU_Sum",
        ),
    ),
    _grouped("Gemm_BatchNorm_GELU_GroupNorm_Mean_ReLU", MEDIUM),
    *map(
        _over_positions,
        (
            "Gemm_Subtract_GlobalAvgPool_LogSumExp_GELU_ResidualAdd",
            "Gemm_Max_Subtract_GELU",
            "Matmul_Mean_Softmax",
        ),
    ),
    _pooled("Matmul_MaxPool_Sum_Scale"),
    _pooled("Matmul_AvgPool_GELU_Scale_Max"),
    _source(
        "Matmul_Sum_Max_AvgPool_LogSumExp_LogSumExp",
        (Input("x", ("batch", "depth", "rows", "columns", "k")),),
        {
            "batch": BATCH,
            "depth": (2, 3, 4),
            "rows": (2, 3, 5),
            "columns": (4, 5, 7),
            "k": (3, 4, 7),
            "n": (3, 5, 8),
        },
        ("k", "n"),
    ),
    _source(
        "Matmul_Scale_ResidualAdd_Clamp_LogSumExp_Mish",
        _MATRIX,
        {"rows": (1, *MEDIUM), "k": WIDE},
        ("k",),
    ),
    _source(
        "BMM_InstanceNorm_Sum_ResidualAdd_Multiply",
        (
            Input("a", ("batch", "m", "k")),
            Input("b", ("batch", "k", "n")),
            Input("y", ("batch", "n")),
        ),
        {"batch": BATCH, "m": MEDIUM, "n": MEDIUM, "k": MEDIUM},
        ("m",),
        work=lambda s: s["batch"] * s["m"] * s["n"] * (s["k"] + _AFTER),
    ),
)
