"""Near misses of a pattern: a place that looks like one and breaks a precondition."""

from dataclasses import dataclass

from steptp_dagster.leir.walk import Path


@dataclass(frozen=True, slots=True)
class Miss:
    """A place that is no candidate: where, the named reason, and words for people."""

    path: Path
    reason: str
    message: str


class Reject(Exception):
    """Carries a reason out of the checks of one candidate; whoever runs them makes it a Miss."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
