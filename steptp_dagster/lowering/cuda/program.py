"""What a lowered CUDA program is: kernels, and when the host launches them."""

from dataclasses import dataclass

from steptp_dagster.lowering.arena import Layout


@dataclass(frozen=True, slots=True)
class Geometry:
    """Blocks and threads of a launch, each along x, y and z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """One kernel: the tensors it takes as pointers, in order, then launch indices as int64.

    ``nest`` is the number of the top-level nest that it runs (a part of), ``shared_bytes`` what it
    allocates statically per block, ``barriers`` how often ``__syncthreads`` stands in its text.
    """

    name: str
    nest: int
    tensors: tuple[str, ...]
    indices: tuple[str, ...]
    geometry: Geometry
    shared_bytes: int
    barriers: int


@dataclass(frozen=True, slots=True)
class Launch:
    """The host launches a kernel with the present values of its indices."""

    kernel: CudaKernel


@dataclass(frozen=True, slots=True)
class HostLoop:
    """The host repeats launches for index values start .. start + extent - 1."""

    index: str
    start: int
    extent: int
    body: tuple["HostStep", ...]


HostStep = Launch | HostLoop


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """The CUDA text of all kernels, the global tensors with their places, and the launches.

    ``source`` is the prologue and ``texts``, the definition of each kernel in turn.
    """

    source: str
    texts: tuple[str, ...]
    kernels: tuple[CudaKernel, ...]
    schedule: tuple[HostStep, ...]
    layout: Layout
