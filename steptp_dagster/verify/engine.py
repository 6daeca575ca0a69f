"""Where a verdict's programs run: what the numerical part asks of a target, and the llvm one."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import Unlowerable, compile_programs
from steptp_dagster.lowering.default_pipeline import build_by_default
from steptp_dagster.lowering.precision import Precision
from steptp_dagster.verify.compare import Array

_LOG: Final = logging.getLogger(__name__)


class Runner(Protocol):
    """A compiled program in one precision; ``lowering.Kernel`` is one."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name, as ``lowering.Kernel.run``."""

    def run_many(self, inputs: Mapping[str, Array], count: int) -> dict[str, Array]:
        """The same for ``count`` runs, as ``lowering.Kernel.run_many``."""


class Engine(Protocol):
    """Compiles programs for one target, so that they can run here."""

    @property
    def target(self) -> str:
        """Its name among ``record.TARGETS``."""

    def compile(self, programs: Sequence[SignedProgram], precision: Precision) -> Sequence[Runner]:
        """Runners of valid programs, in order. Raises Unlowerable."""


class _Llvm:
    """TVM's llvm target in this process."""

    target: Final = "llvm"

    def compile(self, programs: Sequence[SignedProgram], precision: Precision) -> Sequence[Runner]:
        """See ``Engine``. What TVM does not take in our form is built by its defaults."""
        try:
            return compile_programs(programs, precision)
        except (Unlowerable, MemoryError):
            raise
        except Exception as refused:  # noqa: BLE001  (TVM's internals; its defaults decide)
            _LOG.warning("TVM's default pipeline builds what ours could not: %r", refused)
            return DEFAULTS.compile(programs, precision)


class _Defaults:
    """TVM's llvm target through its default pipeline: the same bits, several times slower."""

    target: Final = "llvm"

    def compile(self, programs: Sequence[SignedProgram], precision: Precision) -> Sequence[Runner]:
        """See ``Engine``."""
        return [build_by_default(program, precision) for program in programs]


LLVM: Final[Engine] = _Llvm()
DEFAULTS: Final[Engine] = _Defaults()
