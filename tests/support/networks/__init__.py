"""Whole networks and public modules, written small: ``NETWORKS`` and ``built``."""

from tests.support.networks import (
    attention,
    blocks,
    convolutional,
    interfaces,
    recurrent,
    sequences,
    vision,
    windows,
)
from tests.support.networks.base import NETWORKS, built

__all__ = [
    "NETWORKS",
    "attention",
    "blocks",
    "built",
    "convolutional",
    "interfaces",
    "recurrent",
    "sequences",
    "vision",
    "windows",
]
