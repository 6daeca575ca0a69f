"""Normalisations and norms."""

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

_IMAGE = (Input("x", ("batch", "channels", "height", "width")),)
_IMAGE_POOLS = {"batch": BATCH, "channels": SMALL, "height": SMALL, "width": SMALL}
_LARGE_IMAGE = {
    "batch": LARGE_BATCH,
    "channels": LARGE_CHANNELS,
    "height": LARGE_SIDE,
    "width": LARGE_SIDE,
}
_MATRIX = (Input("x", ("rows", "columns")),)
_MATRIX_POOLS = {"rows": MEDIUM, "columns": WIDE}
_LARGE_MATRIX = {"rows": LARGE_ROWS, "columns": LARGE_COLUMNS}


def _work(shape: Shape) -> int:
    return 5 * prod(shape.values())


def _image(program: str, module: str, arguments: tuple[str, ...] = ()) -> Source:
    where = f"norms:{module}"
    return Source(program, 1, "norm", where, _IMAGE, _IMAGE_POOLS, _LARGE_IMAGE, _work, arguments)


def _matrix(program: str, module: str) -> Source:
    return Source(
        program, 1, "norm", f"norms:{module}", _MATRIX, _MATRIX_POOLS, _LARGE_MATRIX, _work
    )


SOURCES = (
    Source(
        "LayerNorm",
        1,
        "norm",
        "norms:LayerNorm",
        (Input("x", ("batch", "rows", "features")),),
        {"batch": BATCH, "rows": MEDIUM, "features": WIDE},
        {"batch": LARGE_BATCH, "rows": LARGE_ROWS, "features": (512, 768, 1024, 4096)},
        _work,
        ("features",),
    ),
    _image("BatchNorm", "BatchNorm", ("channels",)),
    _image("InstanceNorm", "InstanceNorm", ("channels",)),
    Source(
        "GroupNorm",
        1,
        "norm",
        "norms:GroupNorm",
        (Input("x", ("batch", "groups", "channels_per_group", "height", "width")),),
        {
            "batch": BATCH,
            "groups": (1, 2, 3),
            "channels_per_group": (2, 3, 4),
            "height": SMALL,
            "width": SMALL,
        },
        {"batch": LARGE_BATCH, "groups": (8, 16), "channels_per_group": (4, 8)},
        _work,
        ("groups", "channels_per_group"),
    ),
    _image("RMSNorm", "RMSNorm"),
    _matrix("FrobeniusNorm", "FrobeniusNorm"),
    _matrix("L1Norm", "L1Norm"),
    _matrix("L2Norm", "L2Norm"),
)
