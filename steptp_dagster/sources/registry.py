"""All source programs, in the order of their tables."""

from typing import Final

from steptp_dagster.sources.base import Source
from steptp_dagster.sources.tables import (
    activations,
    attention,
    convolutions,
    gemm,
    layered,
    losses,
    mathematical,
    matmul,
    norms,
    pairs,
    pools,
    reductions,
)

#: Program name -> source. A name that occurs twice is an error of the tables.
SOURCES: Final[dict[str, Source]] = {}
for _table in (
    matmul.SOURCES,
    activations.SOURCES,
    reductions.SOURCES,
    norms.SOURCES,
    pools.SOURCES,
    convolutions.SOURCES,
    losses.SOURCES,
    attention.SOURCES,
    pairs.SOURCES,
    gemm.SOURCES,
    layered.SOURCES,
    mathematical.SOURCES,
):
    for _source in _table:
        if _source.program in SOURCES:
            raise ValueError(f"two sources are called {_source.program}")
        SOURCES[_source.program] = _source
#: The published workloads among them.
WORKLOADS: Final = tuple(name for name, s in SOURCES.items() if s.origin == "published")
