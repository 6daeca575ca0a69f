"""What the assets share, gathered: partitions, how a stage is run, how tables show in the UI."""

from typing import Final

from assets.display import Metadata, bars, share, shown, tally
from assets.partitions import BACKFILL, DUE, PROGRAMS
from assets.running import Result, by_program, counts, schema_spec, whole

#: Who answers for the assets, as the UI shows it.
OWNERS: Final = ["team:steptp"]

__all__ = [
    "BACKFILL",
    "DUE",
    "OWNERS",
    "PROGRAMS",
    "Metadata",
    "Result",
    "bars",
    "by_program",
    "counts",
    "schema_spec",
    "share",
    "shown",
    "tally",
    "whole",
]
