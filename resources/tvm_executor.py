"""The TVM executor: compiles and runs programs, judges pairs in isolated worker processes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

import dagster as dg
from pydantic import ModelWrapValidatorHandler, model_validator

from steptp_dagster.leir.signature import SignedProgram

if TYPE_CHECKING:
    from steptp_dagster.lowering.kernel import Array
    from steptp_dagster.lowering.precision import Precision
    from steptp_dagster.verify.pool import Verifier


#: Least and greatest value of each number; below this memory no program runs at all.
LIMITS: Final = {
    "workers": (1, 1024),
    "timeout_s": (0.1, 86400.0),
    "memory_mb": (256, 1 << 20),
    "seed": (0, (1 << 31) - 1),
}


#: Dagster's placeholders for variables of the environment.
_LATE: Final = ("EnvVar", "IntEnvVar")


class WrongSettings(RuntimeError):
    """Settings with which no pair could be judged; one line for each that is wrong."""


class TvmExecutor(dg.ConfigurableResource[str]):
    """Where programs run: a target of ``verify.record.TARGETS``, with limits per worker process.

    ``timeout_s`` is in seconds per pair, ``memory_mb`` in MiB per worker on top of what it starts
    with, ``seed`` that of the input families. With ``rpc_tracker`` (``HOST:PORT``) pairs are
    judged by as many servers as there are ``workers``, which the tracker hands out for ``rpc_key``.
    ``cache_dir`` is an existing folder in which workers share what originals compute (empty: the
    system's for temporary files). Raises WrongSettings when it is made, not in the middle of a run.
    """

    workers: int = 2
    timeout_s: float = 60.0
    memory_mb: int = 2048
    seed: int = 0
    target: str = "llvm"
    rpc_tracker: str = ""
    rpc_key: str = "steptp"
    cache_dir: str = ""

    @model_validator(mode="wrap")
    @classmethod
    def _sound(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        """Refuse settings that cannot be meant."""
        made = handler(data)
        # What stands for a variable of the environment has no value yet; Dagster makes the resource
        # once more when it has.
        late = {name for name, value in dict(data).items() if type(value).__name__ in _LATE}
        given = {name: getattr(made, name) for name in cls.model_fields if name not in late}
        if found := wrong(given):
            raise WrongSettings("\n".join(found))
        return made

    @contextmanager
    def verifier(self, *, seed: int, target: str) -> "Iterator[Verifier]":
        """A pool of worker processes, or of servers, that judges pairs, closed on leaving.

        ``seed`` and ``target`` are those that the caller stores its verdicts under. Raises
        WrongSettings where this resource has others, RemoteFailure where the tracker does not
        answer or has too few servers.
        """
        wanted = {"seed": seed, "target": target}
        found = [
            f"{name} is {getattr(self, name)!r} here and {value!r} in the profile: "
            "they must be the same"
            for name, value in wanted.items()
            if getattr(self, name) != value
        ]
        if found:
            raise WrongSettings("\n".join(found))
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
            cache_dir=self.cache_dir or None,
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


def wrong(settings: Mapping[str, Any]) -> list[str]:
    """What is wrong with settings, a sentence each; those that are missing are not judged."""
    from steptp_dagster.verify.record import TARGETS

    found = [
        f"{name} must be between {least} and {most}, not {settings[name]}"
        for name, (least, most) in LIMITS.items()
        if name in settings and not least <= settings[name] <= most  # true for NaN too
    ]
    target, tracker = settings.get("target", "llvm"), settings.get("rpc_tracker", "")
    if target not in TARGETS:
        found.append(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    host, _, port = tracker.rpartition(":")
    numbered = port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16
    if tracker and not (host and numbered):
        found.append(
            f"rpc_tracker must be empty, or HOST:PORT with a port up to 65535, not {tracker!r}"
        )
    if tracker and not settings.get("rpc_key", "steptp"):
        found.append("rpc_key must not be empty where rpc_tracker is given")
    folder = settings.get("cache_dir", "")
    if folder and not Path(folder).is_dir():
        found.append(f"cache_dir must be empty, or an existing folder, not {folder!r}")
    return found
