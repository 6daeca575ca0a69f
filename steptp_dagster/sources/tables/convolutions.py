"""Convolutions. Every one is sampled with and without a bias (``bias`` 1 or 0)."""

from collections.abc import Mapping
from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import (
    BATCH,
    FLAG,
    LARGE_BATCH,
    LARGE_CHANNELS,
    LARGE_SIDE,
)

_CHANNELS = (1, 2, 3, 4)
_SIDE = (4, 5, 6, 7, 8)
_SQUARE = {"size": _SIDE}
_FLAT = {"height": _SIDE, "width": _SIDE}
_CUBE = {"size": (3, 4, 5)}
_BOX = {"depth": (3, 4, 5), "height": (3, 4, 5), "width": (3, 4, 5)}
_KERNEL = {"kernel": (2, 3)}
_MOVED = {"kernel": (1, 2, 3), "stride": (1, 2), "padding": (0, 1)}
_RECTANGLE = {"kernel_height": (1, 2, 3), "kernel_width": (2, 3)}
_BRICK = {"kernel_depth": (1, 2), "kernel_height": (1, 2, 3), "kernel_width": (2, 3)}


_PLANE, _SPACE = 2, 3


def _taps(shape: Shape) -> int:
    if "kernel_width" in shape:
        return prod(v for k, v in shape.items() if k.startswith("kernel_"))
    return int(shape.get("kernel", 1) ** 2)


def _source(  # a row of the table
    program: str,
    module: str,
    extents: Mapping[str, tuple[int, ...]],
    arguments: Mapping[str, tuple[int, ...]],
    rank: int = 2,
    filters: bool = True,
) -> Source:
    sides = tuple(extents) if len(extents) == rank else tuple(extents) * rank
    channels = {"channels": _CHANNELS, **({"filters": _CHANNELS} if filters else {})}
    settings = {**arguments, "bias": FLAG}

    def work(shape: Shape) -> int:
        positions = prod(shape[s] + 2 * shape.get("padding", 0) for s in sides)
        mixed = shape["channels"] * shape.get("filters", 1)
        taps = _taps(shape) if rank < _SPACE else max(_taps(shape), shape.get("kernel", 1) ** 3)
        return int(shape["batch"] * positions * (mixed * taps + mixed + shape["channels"]))

    def admits(shape: Shape) -> bool:
        if "height" in extents and rank == _PLANE and shape["height"] == shape["width"]:
            return False
        reach = max(v for k, v in shape.items() if k.startswith("kernel")) if arguments else 1
        reach = shape.get("dilation", 1) * (reach - 1) + 1
        return all(shape[s] + 2 * shape.get("padding", 0) >= reach for s in sides)

    return Source(
        program,
        1,
        "convolution",
        f"convolutions:{module}",
        (Input("x", ("batch", "channels", *sides)),),
        {"batch": BATCH, **channels, **extents, **settings},
        {
            "batch": LARGE_BATCH,
            **dict.fromkeys(channels, LARGE_CHANNELS),
            **dict.fromkeys(extents, LARGE_SIDE if rank < _SPACE else (16, 32, 64)),
            **{name: (3, 5, 7) for name in settings if name.startswith("kernel")},
        },
        work,
        (*channels, *settings),
        frozenset(n for n in settings if not n.startswith("kernel")),
        admits,
    )


_STRIDED_1D = {"kernel": (2, 3), "stride": (2, 3), "dilation": (2, 3)}
_PLAIN_1D = {"kernel": (2, 3, 4), "stride": (1,), "dilation": (1,)}
_PLAIN_RECTANGLE = {**_RECTANGLE, "padding": (0,), "dilation": (1,)}
_DILATED = {**_RECTANGLE, "padding": (1, 2), "dilation": (1, 2)}

SOURCES = (
    _source("conv_standard_2D__square_input__square_kernel", "Conv2d", _SQUARE, _MOVED),
    _source("conv_standard_2D__asymmetric_input__square_kernel", "Conv2d", _FLAT, _MOVED),
    _source(
        "conv_standard_2D__square_input__asymmetric_kernel",
        "AsymmetricConv2d",
        _SQUARE,
        _PLAIN_RECTANGLE,
    ),
    _source(
        "conv_standard_2D__asymmetric_input__asymmetric_kernel",
        "AsymmetricConv2d",
        _FLAT,
        _PLAIN_RECTANGLE,
    ),
    _source(
        "conv_standard_2D_square_input_asymmetric_kernel___dilated____padded",
        "AsymmetricConv2d",
        _SQUARE,
        _DILATED,
    ),
    _source("conv_standard_1D", "Conv1d", {"length": (8, 11, 16)}, _PLAIN_1D, 1),
    _source("conv_standard_1D_dilated_strided", "Conv1d", {"length": (11, 16, 23)}, _STRIDED_1D, 1),
    _source("conv_standard_3D__square_input__square_kernel", "Conv3d", _CUBE, _KERNEL, 3),
    _source("conv_standard_3D__asymmetric_input__square_kernel", "Conv3d", _BOX, _KERNEL, 3),
    _source(
        "conv_standard_3D__square_input__asymmetric_kernel", "AsymmetricConv3d", _CUBE, _BRICK, 3
    ),
    _source(
        "conv_standard_3D__asymmetric_input__asymmetric_kernel", "AsymmetricConv3d", _BOX, _BRICK, 3
    ),
    _source(
        "conv_depthwise_2D_square_input_square_kernel",
        "DepthwiseConv2d",
        _SQUARE,
        _MOVED,
        filters=False,
    ),
    _source(
        "conv_depthwise_2D_asymmetric_input_square_kernel",
        "DepthwiseConv2d",
        _FLAT,
        _MOVED,
        filters=False,
    ),
    _source(
        "conv_depthwise_2D_square_input_asymmetric_kernel",
        "AsymmetricDepthwiseConv2d",
        _SQUARE,
        _RECTANGLE,
        filters=False,
    ),
    _source(
        "conv_depthwise_2D_asymmetric_input_asymmetric_kernel",
        "AsymmetricDepthwiseConv2d",
        _FLAT,
        _RECTANGLE,
        filters=False,
    ),
    _source(
        "conv_depthwise_separable_2D",
        "DepthwiseSeparableConv2d",
        _SQUARE,
        {"kernel": (2, 3), "padding": (0, 1)},
    ),
    _source("conv_pointwise_2D", "PointwiseConv2d", _SQUARE, {}),
)
