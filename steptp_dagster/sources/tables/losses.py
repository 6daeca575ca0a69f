"""Losses."""

from steptp_dagster.sources.base import Input, Shape, Source
from steptp_dagster.sources.pools import LARGE_COLUMNS, LARGE_ROWS, MEDIUM, WIDE

_POOLS = {"rows": (1, *MEDIUM), "columns": WIDE}
_LARGE = {"rows": LARGE_ROWS, "columns": LARGE_COLUMNS}
_PAIR = ("predictions", "targets")


def _work(shape: Shape) -> int:
    return 8 * shape["rows"] * shape["columns"]


def _source(program: str, module: str, names: tuple[str, ...] = _PAIR) -> Source:
    inputs = tuple(Input(name, ("rows", "columns")) for name in names)
    return Source(program, 1, "loss", f"losses:{module}", inputs, _POOLS, _LARGE, _work)


SOURCES = (
    _source("MSELoss", "MSELoss"),
    _source("HuberLoss", "HuberLoss"),
    _source("Hingeloss", "HingeLoss"),
    _source("CosineSimilarityLoss", "CosineSimilarityLoss"),
    _source("KLDivLoss", "KLDivLoss"),
    Source(
        "CrossEntropyLoss",
        1,
        "loss",
        "losses:CrossEntropyLoss",
        (
            Input("predictions", ("rows", "columns")),
            Input("classes", ("rows",), "i64", 0, "columns"),
        ),
        _POOLS,
        {"rows": LARGE_ROWS, "columns": (10, 100, 1000)},
        _work,
    ),
    _source("TripletMarginLoss", "TripletMarginLoss", ("anchor", "positive", "negative")),
)
