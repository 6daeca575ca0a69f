"""A second opinion on LEIR programs: what they compute and what they touch, by running them.

Programs become plain Python: nested ``for`` loops over dictionaries of cells, floats in binary64
(or rounded to binary32 after every operation). A run can log the element of every access; the
logs say whether iterations of ``P``, ``V`` and ``B`` loops are independent, whether data passes
between blocks or threads, and whether sums that start by themselves may. It shares nothing with
the static checker, the reference interpreter or the strategies but the syntax tree.
"""

from benchmarks.oracle.cells import Array, Cells, cells_of
from benchmarks.oracle.legality import Key, doubtful, illegal
from benchmarks.oracle.programs import compiled, outputs
from benchmarks.oracle.running import Compiled, Meaningless, Outcome
from benchmarks.oracle.structure import lanes
from benchmarks.oracle.trees import size_of

__all__ = [
    "Array",
    "Cells",
    "Compiled",
    "Key",
    "Meaningless",
    "Outcome",
    "cells_of",
    "compiled",
    "doubtful",
    "illegal",
    "lanes",
    "outputs",
    "size_of",
]
