"""Pairs of equal operators."""

from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import (
    BATCH,
    LARGE_BATCH,
    LARGE_CHANNELS,
    LARGE_COLUMNS,
    LARGE_ROWS,
    LARGE_SIDE,
    MEDIUM,
    SMALL,
    WIDE,
)

_POOLS = {"rows": (1, *MEDIUM), "columns": WIDE}
_LARGE = {"rows": LARGE_ROWS, "columns": LARGE_COLUMNS}


def _work(shape: Shape) -> int:
    return 3 * prod(shape.values())


def _elementwise(program: str, module: str, names: str = "ab", low: float | None = None) -> Source:
    high = None if low is None else 4.0
    inputs = tuple(Input(n, ("rows", "columns"), low=low, high=high) for n in names)
    return Source(program, 2, "pair", f"pairs:{module}", inputs, _POOLS, _LARGE, _work)


def _matmul(program: str, left: tuple[str, ...], right: tuple[str, ...]) -> Source:
    inputs = tuple(Input(n, left if n in "ac" else right) for n in "abcd")
    names = dict.fromkeys((*left, *right))
    pools = {n: BATCH if n == "batch" else SMALL for n in names}
    large = {n: LARGE_BATCH if n in ("batch", "rows") else LARGE_ROWS for n in names}
    return Source(program, 2, "pair", "pairs:MatMulMatMul", inputs, pools, large, _work)


_SIDES = ("depth", "height", "width")
_CHANNELS = {"channels": (1, 2, 3), "filters": (1, 2, 3)}


def _convolutions(program: str, rank: int, padded: bool) -> Source:
    sides = _SIDES[-rank:]
    small = {1: (7, 8, 11, 16), 2: (4, 5, 7, 8), 3: (3, 4, 5)}[rank]
    free = {"kernel": (2, 3), "padding": (1, 2), "stride": (1, 2)}
    arguments = free if padded else {"kernel": (3,) if rank > 1 else (3, 5)}

    def work(shape: Shape) -> int:
        positions = prod(shape[s] + 2 * shape.get("padding", 1) for s in sides)
        taps = int(shape["kernel"] ** rank)
        return 2 * shape["batch"] * positions * shape["channels"] * (shape["filters"] * taps + 1)

    return Source(
        program,
        2,
        "pair",
        f"pairs:{'Padded' if padded else ''}ConvConv{rank}d",
        tuple(Input(n, ("batch", "channels", *sides)) for n in "ab"),
        {"batch": BATCH, **_CHANNELS, **dict.fromkeys(sides, small), **arguments},
        {
            "batch": LARGE_BATCH,
            **dict.fromkeys(_CHANNELS, LARGE_CHANNELS),
            **dict.fromkeys(sides, LARGE_SIDE if rank < 3 else (16, 32)),
        },
        work,
        (*_CHANNELS, *arguments),
        frozenset(arguments) - {"kernel"},
    )


SOURCES = (
    *(
        _convolutions(f"conv{rank}d_conv{rank}d{'_padding' if padded else ''}", rank, padded)
        for padded in (False, True)
        for rank in (1, 2, 3)
    ),
    _elementwise("add_add", "AddAdd", "abcd"),
    _elementwise("exp_exp", "ExpExp"),
    _elementwise("abs_abs", "AbsAbs"),
    _elementwise("log_log", "LogLog", low=0.0625),
    _elementwise("log_log_add", "LogLogAdd", low=0.0625),
    _elementwise("sqrt_sqrt", "SqrtSqrt", low=0.0),
    _matmul("Gemm_Gemm", ("m", "k"), ("k", "n")),
    _matmul("Bmm_Bmm", ("batch", "m", "k"), ("batch", "k", "n")),
    _matmul("MatMul3D_MatMul3D", ("batch", "m", "k"), ("k", "n")),
    _matmul("MatMul4D_MatMul4D", ("batch", "rows", "m", "k"), ("k", "n")),
)
