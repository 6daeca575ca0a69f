"""Pools of extents from which samplers draw, shared by the tables."""

from typing import Final

#: Small extents: ones, primes, powers of two and their neighbours.
BATCH: Final = (1, 2, 3, 4)
SMALL: Final = (2, 3, 4, 5, 7, 8)
MEDIUM: Final = (3, 4, 5, 7, 8, 12, 13, 16)
WIDE: Final = (5, 8, 13, 16, 24, 31, 32, 48, 64)
FLAG: Final = (0, 1)

#: Paper-like extents. The leading ones stay within one block of threads, so that a small sibling
#: has the same loops.
LARGE_BATCH: Final = (8, 16, 32, 64, 128)
LARGE_CHANNELS: Final = (16, 32, 64, 128, 256)
LARGE_SIDE: Final = (32, 56, 64, 112, 128, 224)
LARGE_ROWS: Final = (128, 256, 512, 1024)
LARGE_COLUMNS: Final = (512, 1024, 2048, 4096, 16384)
