"""What a verdict was made with."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from platform import machine
from typing import Final

from steptp_dagster.verify.gpu import gpu_here

__all__ = ["VERIFIER", "gpu_here", "nvrtc_available", "versions"]

#: Raise when families, thresholds or the lowering change what a verdict can say.
VERIFIER: Final = "6"


def nvrtc_available() -> bool:
    """Whether CUDA targets can be built here, without loading TVM to find out."""
    return find_spec("cuda") is not None and find_spec("nvidia") is not None


@cache
def versions(target: str = "llvm") -> tuple[tuple[str, str], ...]:
    """Names and versions of verifier, toolchain and machine architecture.

    Of a CUDA target the compiler's release too, ``absent`` where it is not installed.
    """
    own = (
        ("verifier", VERIFIER),
        ("tvm", version("apache-tvm")),
        ("numpy", version("numpy")),
        ("architecture", machine()),
    )
    if not target.startswith("cuda:"):
        return own
    try:
        return (*own, ("nvrtc", version("nvidia-cuda-nvrtc")))
    except PackageNotFoundError:
        return (*own, ("nvrtc", "absent"))
