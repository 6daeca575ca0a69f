"""Attention: MHA has keys and values for each head, MQA one for all, GQA one for a group."""

from steptp_dagster.sources.base import Input, Shape, Source

_X = (Input("x", ("batch", "length", "width")),)
_POOLS = {
    "batch": (1, 2, 3),
    "length": (3, 4, 5, 7, 8),
    "heads": (1, 2, 3),
    "head_size": (2, 3, 4),
    "width": (2, 3, 4, 6, 8, 9, 12, 16, 18, 24),
}
_LARGE = {
    "batch": (8, 16),
    "length": (128, 256, 512),
    "heads": (8, 12),
    "head_size": (64,),
    "width": (512, 768),
}
#: Numbers of heads, and of heads with keys and values.
_HEADS = {
    "MHA": ((2, 3), (2, 3)),
    "MQA": ((2, 3, 4), (1,)),
    "GQA": ((4, 6), (2, 3)),
}
_LARGE_HEADS = {"MHA": ((8, 12), (8, 12)), "MQA": ((8, 12), (1,)), "GQA": ((8, 12), (2, 4))}


def _work(shape: Shape) -> int:
    size = shape["heads"] * shape["head_size"]
    tokens = shape["batch"] * shape["length"]
    after = size * shape.get("features", 0)
    return int(tokens * (4 * size * size + 2 * shape["length"] * (size + 3) + after))


def _whole(shape: Shape) -> bool:
    return shape["width"] == shape["heads"] * shape["head_size"]


def _block(program: str) -> Source:
    """An attention block; what follows it is in the name."""
    kind, *after = program.split("_")
    heads, shared = _HEADS[kind]
    large_heads, large_shared = _LARGE_HEADS[kind]
    features = {"features": (3, 5, 8)} if "Gemm" in after else {}
    suffix = "".join("GELU" if a == "GeLU" else a[0].upper() + a[1:] for a in after)

    def admits(shape: Shape) -> bool:
        h, kv = shape["heads"], shape["kv_heads"]
        fits = kv == h if kind == "MHA" else h % kv == 0 and kv < h
        return _whole(shape) and fits

    name = f"Attention{suffix}" if suffix else "GroupedQueryAttention"
    arguments = ("heads", "kv_heads", "head_size", *features)
    return Source(
        program,
        2,
        "attention",
        f"attention:{name}",
        _X,
        {**_POOLS, "heads": heads, "kv_heads": shared, **features},
        {
            **_LARGE,
            "heads": large_heads,
            "kv_heads": large_shared,
            **({"features": (256, 512)} if features else {}),
        },
        _work,
        arguments,
        admits=admits,
    )


_BLOCKS = (
    "MQA",
    "GQA",
    *(f"{kind}_{last}" for kind in _HEADS for last in ("sum", "max", "mean")),
    *(f"{kind}_Gemm" for kind in _HEADS),
    *(f"{kind}_Gemm_{activation}" for activation in ("ReLU", "GeLU", "Tanh") for kind in _HEADS),
    "MHA_Gemm_ReLU_sum",
    "MQA_Gemm_ReLU_max",
    "GQA_Gemm_ReLU_mean",
    "MHA_Gemm_Tanh_max",
    "MQA_Gemm_Tanh_mean",
    "GQA_Gemm_Tanh_sum",
    "MHA_Gemm_GeLU_mean",
    "MQA_Gemm_GeLU_sum",
    "GQA_Gemm_GeLU_max",
)

SOURCES = (
    Source(
        "MinGPTCausalAttention",
        2,
        "attention",
        "attention:CausalSelfAttention",
        _X,
        _POOLS,
        _LARGE,
        _work,
        ("heads", "head_size"),
        admits=_whole,
    ),
    *map(_block, _BLOCKS),
)
