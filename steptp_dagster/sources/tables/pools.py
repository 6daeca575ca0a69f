"""Pooling."""

from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import BATCH, LARGE_BATCH, LARGE_CHANNELS, LARGE_SIDE

_SIDES = ("depth", "height", "width")
_WINDOW = {"kernel": (2, 3), "stride": (1, 2, 3), "padding": (0, 1)}


def _source(program: str, module: str, rank: int, padding: tuple[int, ...]) -> Source:
    sides = _SIDES[-rank:]
    small = dict.fromkeys(sides, (5, 6, 7, 8, 11))
    largest = module.startswith("Max")
    window = {**_WINDOW, "padding": padding, **({"dilation": (1, 2)} if largest else {})}

    def extent(shape: Shape, side: str) -> int:
        reach = shape.get("dilation", 1) * (shape["kernel"] - 1) + 1
        return (shape[side] + 2 * shape["padding"] - reach) // shape["stride"] + 1

    def admits(shape: Shape) -> bool:
        within = 2 * shape["padding"] <= shape["kernel"]
        return within and all(extent(shape, side) >= 1 for side in sides)

    def work(shape: Shape) -> int:
        positions = prod(extent(shape, side) for side in sides)
        copies = prod(shape[side] + 2 * shape["padding"] for side in sides)
        taps = int(shape["kernel"] ** rank)
        return shape["batch"] * shape["channels"] * (positions * taps + copies)

    return Source(
        program,
        1,
        "pool",
        f"pools:{module}",
        (Input("x", ("batch", "channels", *sides)),),
        {
            "batch": BATCH,
            "channels": (1, 2, 3, 5),
            **small,
            **window,
        },
        {"batch": LARGE_BATCH, "channels": LARGE_CHANNELS, **dict.fromkeys(sides, LARGE_SIDE)},
        work,
        tuple(window),
        frozenset(window) - {"kernel"},
        admits,
    )


SOURCES = (
    _source("Max_Pooling_1D", "MaxPool1d", 1, (0, 1)),
    _source("Max_Pooling_2D", "MaxPool2d", 2, (1,)),
    _source("Max_Pooling_3D", "MaxPool3d", 3, (0, 1)),
    _source("Average_Pooling_1D", "AvgPool1d", 1, (0, 1)),
    _source("Average_Pooling_2D", "AvgPool2d", 2, (0, 1)),
    _source("Average_Pooling_3D", "AvgPool3d", 3, (0, 1)),
)
