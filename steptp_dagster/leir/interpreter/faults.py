"""What the interpreter finds wrong with a program, and what it gives back."""

from dataclasses import dataclass, field

import numpy as np

from steptp_dagster.leir.walk import Path


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong.

    ``kind`` is a kebab-case name, the same as the static checker's for the same rule. ``path`` is
    the statement, ``iteration`` the values of its enclosing loops, outermost first (empty for
    faults of the structure). For a conflict it is the later of the two iterations.
    """

    kind: str
    message: str
    path: Path
    iteration: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Run:
    """The outputs by name, and the faults, the first of each kind, statement and tensor."""

    outputs: dict[str, np.ndarray]
    faults: tuple[Fault, ...]


class InputError(ValueError):
    """The caller's inputs do not fit the signature: missing, wrong shape, out of their range."""


@dataclass(slots=True)
class Log:
    """Collects faults: one per kind, path and subject, ``limit`` in all."""

    limit: int
    found: list[Fault] = field(default_factory=list)
    seen: set[tuple[str, Path, str]] = field(default_factory=set)

    def new(self, kind: str, path: Path, subject: str) -> bool:
        """Whether this fault is to be recorded; the caller then calls ``add``."""
        key = (kind, path, subject)
        if key in self.seen or len(self.found) >= self.limit:
            return False
        self.seen.add(key)
        return True

    def add(self, fault: Fault) -> None:
        """Record a fault."""
        self.found.append(fault)

    def report(self, kind: str, message: str, path: Path, subject: str) -> None:
        """Record a fault of the structure, once."""
        if self.new(kind, path, subject):
            self.add(Fault(kind, message, path))
