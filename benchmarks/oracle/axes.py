"""Axes of blocks and threads."""

from typing import Final

BLOCKS: Final = ("bx", "by", "bz")
THREADS: Final = ("tx", "ty", "tz")
