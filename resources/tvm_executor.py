"""The TVM executor: compiles and runs programs, judges pairs in isolated worker processes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import dagster as dg

from steptp_dagster.leir.signature import SignedProgram

if TYPE_CHECKING:
    from steptp_dagster.lowering.kernel import Array
    from steptp_dagster.lowering.precision import Precision
    from steptp_dagster.verify.pool import Verifier


class TvmExecutor(dg.ConfigurableResource[str]):
    """Where programs run: a target of ``verify.record.TARGETS``, with limits per worker process.

    ``timeout_s`` is in seconds per pair, ``memory_mb`` in MiB per worker on top of what it starts
    with, ``seed`` that of the input families. With ``rpc_tracker`` (``HOST:PORT``) pairs are
    judged by as many servers as there are ``workers``, which the tracker hands out for ``rpc_key``.
    """

    workers: int = 2
    timeout_s: float = 60.0
    memory_mb: int = 2048
    seed: int = 0
    target: str = "llvm"
    rpc_tracker: str = ""
    rpc_key: str = "steptp"

    @contextmanager
    def verifier(self) -> "Iterator[Verifier]":
        """A pool of worker processes, or of servers, that judges pairs, closed on leaving.

        Raises RemoteFailure where the tracker does not answer or has too few servers.
        """
        from steptp_dagster.verify.pool import Verifier

        if self.rpc_tracker:
            from steptp_dagster.verify.rpc import RemoteVerifier

            with RemoteVerifier(
                self.rpc_tracker,
                self.rpc_key,
                self.workers,
                timeout_s=self.timeout_s,
                memory_mb=self.memory_mb,
                seed=self.seed,
                target=self.target,
            ) as remote:
                yield cast("Verifier", remote)  # all that a build asks of a pool
            return
        with Verifier(
            self.workers,
            timeout_s=self.timeout_s,
            memory_mb=self.memory_mb,
            seed=self.seed,
            target=self.target,
        ) as pool:
            yield pool

    def run(
        self,
        signed: SignedProgram,
        inputs: "Mapping[str, Array]",
        precision: "Precision" = "working",
    ) -> "dict[str, Array]":
        """Outputs by name of one valid program, run in this process (``lowering.run``)."""
        from steptp_dagster.lowering import run

        return run(signed, inputs, precision)
