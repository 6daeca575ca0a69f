"""What a verdict was made with."""

from functools import cache
from importlib.metadata import version
from platform import machine
from typing import Final

#: Raise when families, thresholds or the lowering change what a verdict can say.
VERIFIER: Final = "1"


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Names and versions of verifier, toolchain and machine architecture."""
    return (
        ("verifier", VERIFIER),
        ("tvm", version("apache-tvm")),
        ("numpy", version("numpy")),
        ("architecture", machine()),
    )
