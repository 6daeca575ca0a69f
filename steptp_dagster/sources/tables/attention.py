"""Attention."""

from steptp_dagster.sources.base import Input, Shape, Source


def _work(shape: Shape) -> int:
    size = shape["heads"] * shape["head_size"]
    tokens = shape["batch"] * shape["length"]
    return tokens * (4 * size * size + 2 * shape["length"] * size + 6 * shape["length"])


SOURCES = (
    Source(
        "MinGPTCausalAttention",
        2,
        "attention",
        "attention:CausalSelfAttention",
        (Input("x", ("batch", "length", "width")),),
        {
            "batch": (1, 2, 3),
            "length": (3, 4, 5, 7, 8),
            "heads": (1, 2, 3),
            "head_size": (2, 3, 4),
            "width": (2, 3, 4, 6, 8, 9, 12),
        },
        {
            "batch": (8, 16),
            "length": (128, 256, 512),
            "heads": (8, 12),
            "head_size": (64,),
            "width": (512, 768),
        },
        _work,
        ("heads", "head_size"),
        admits=lambda s: s["width"] == s["heads"] * s["head_size"],
    ),
)
