"""Convolutions and what follows them. The class of a program is its name without underscores."""

from math import prod

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import BATCH, LARGE_BATCH, LARGE_CHANNELS, LARGE_SIDE

_SIDES = ("depth", "height", "width")
_PLANE = 2
#: Scalar iterations per result of the convolution that all later operators together may take.
_AFTER = 12


def _source(program: str, smallest: int = 4, grouped: bool = False) -> Source:
    """A row; ``smallest`` is the least side that leaves something to every pool."""
    rank = 3 if program.startswith("Conv3d") else 2
    sides = _SIDES[-rank:]
    filters = (
        {"groups": (1, 2), "filters_per_group": (2, 3)} if grouped else {"filters": (2, 3, 4, 5)}
    )
    arguments = {"channels": (1, 2, 3), **filters, "kernel": (2, 3) if rank == _PLANE else (2,)}
    extents = range(smallest, smallest + (5 if rank == _PLANE else 3))

    def work(shape: Shape) -> int:
        outs = prod(shape[name] for name in filters)
        positions = prod(shape[side] - shape["kernel"] + 1 for side in sides)
        taps = int(shape["kernel"] ** rank)
        return shape["batch"] * outs * positions * (shape["channels"] * taps + _AFTER)

    large = (8, 16, 32) if grouped else LARGE_CHANNELS
    return Source(
        program,
        2,
        f"conv{rank}d",
        f"conv{rank}d:{program.replace('_', '')}",
        (Input("x", ("batch", "channels", *sides)),),
        {"batch": BATCH[:3], **arguments, **dict.fromkeys(sides, tuple(extents))},
        {
            "batch": LARGE_BATCH,
            "channels": (8, 16, 32, 64),
            **dict.fromkeys(filters, large),
            "kernel": (3,),
            **dict.fromkeys(sides, LARGE_SIDE if rank == _PLANE else (16, 32, 64)),
        },
        work,
        tuple(arguments),
    )


SOURCES = (
    _source("Conv2D_ReLU_BiasAdd"),
    _source("Conv2d_InstanceNorm_Divide"),
    _source("Conv2d_Add_Scale_Sigmoid_GroupNorm", grouped=True),
    _source("Conv2d_Min_Tanh_Tanh"),
    _source("Conv2d_Min_Add_Multiply"),
    _source("Conv2d_Scaling_Min"),
    _source("Conv2d_Subtract_HardSwish_MaxPool_Mish", 5),
    _source("Conv2d_Subtract_Tanh_Subtract_AvgPool", 5),
    _source("Conv2d_Mish_Mish"),
    _source("Conv2d_Activation_BatchNorm"),
    _source("Conv2d_Multiply_LeakyReLU_GELU"),
    _source("Conv2d_ReLU_HardSwish"),
    _source("Conv2d_HardSwish_ReLU"),
    _source("Conv2d_AvgPool_Sigmoid_Sum", 5),
    _source("Conv2d_GELU_GlobalAvgPool"),
    _source("Conv2d_Divide_LeakyReLU"),
    _source("Conv2d_BatchNorm_Scaling"),
    _source("Conv2d_Tanh_Scaling_BiasAdd_Max", 5),
    _source("Conv2d_GroupNorm_Scale_MaxPool_Clamp", 5, grouped=True),
    _source("Conv2d_Subtract_Subtract_Mish"),
    _source("Conv2d_GroupNorm_Tanh_HardSwish_ResidualAdd_LogSumExp", grouped=True),
    _source("Conv3d_GroupNorm_Mean", 3, grouped=True),
    _source("Conv3d_Min_Softmax", 3),
    _source("Conv3d_HardSwish_ReLU_Softmax_Mean", 3),
    _source("Conv3d_Max_LogSumExp_ReLU", 4),
    _source("Conv3d_Mish_Tanh", 3),
    _source("Conv3d_Scaling_Tanh_Multiply_Sigmoid", 3),
    _source("Conv3d_Softmax_MaxPool_MaxPool", 6),
    _source("Conv3d_Multiply_InstanceNorm_Clamp_Multiply_Max", 3),
    _source("Conv3d_ReLU_LeakyReLU_GELU_Sigmoid_BiasAdd", 3),
    _source("Conv3d_GroupNorm_Min_Clamp", 3, grouped=True),
    _source("Conv3d_Divide_Max_GlobalAvgPool_BiasAdd_Sum", 4),
    _source("Conv3d_LeakyReLU_Sum_Clamp_GELU", 3),
)
