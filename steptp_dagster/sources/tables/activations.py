"""Element-wise activation functions of a matrix."""

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import FLAG, LARGE_COLUMNS, LARGE_ROWS, WIDE

_X = (Input("x", ("rows", "columns")),)
_POOLS = {"rows": (1, *WIDE), "columns": WIDE}
_LARGE = {"rows": LARGE_ROWS, "columns": LARGE_COLUMNS}
_CLASSES = {
    "ReLU": "ReLU",
    "LeakyReLU": "LeakyReLU",
    "Sigmoid": "Sigmoid",
    "Tanh": "Tanh",
    "Swish": "Swish",
    "SELU": "SELU",
    "HardSigmoid": "HardSigmoid",
    "Softplus": "Softplus",
    "Softsign": "Softsign",
    "ELU": "ELU",
    "HardTanh": "HardTanh",
    "MinGPTNewGelu": "NewGELU",
}


def _work(shape: Shape) -> int:
    return shape["rows"] * shape["columns"]


SOURCES = (
    *(
        Source(program, 1, "activation", f"activations:{name}", _X, _POOLS, _LARGE, _work)
        for program, name in _CLASSES.items()
    ),
    Source(
        "GELU",
        1,
        "activation",
        "activations:GELU",
        _X,
        {**_POOLS, "tanh": FLAG},
        _LARGE,
        _work,
        ("tanh",),
        frozenset({"tanh"}),
    ),
)
