"""Why a user's file, or a program in it, cannot be used: a named reason, words, a place."""

from dataclasses import dataclass
from typing import Final

#: Reason -> what the user can do about it.
REASONS: Final[dict[str, str]] = {
    "unreadable": "save it as UTF-8 text that you may read",
    "syntax-error": "correct that line",
    "raised": "correct that line, or rename the file so that it starts with _ if it is no program",
    "no-program": "see docs/your-programs.md for the forms that are read",
    "not-a-module": "return an instance of a subclass of torch.nn.Module",
    "bad-inputs": "give tensors, numbers, bools, texts, None, and lists, tuples or dicts of them",
    "bad-shapes": "correct SHAPES",
    "timed-out": "make it faster, or raise the time limit (timeout_s in the profile, --timeout)",
    "out-of-memory": "use smaller inputs, or raise the limit (memory_mb in the profile, --memory)",
    "too-many-processes": "start none: a program file only describes modules and their inputs",
    "exited": "remove the call that ends the process",
    "crashed": "run the file alone with `python -X faulthandler` to see the fault",
}


@dataclass(frozen=True, slots=True)
class UserRefusal:
    """A reason (a key of ``REASONS``), what happened, and ``file:line`` (or ``file``) of it."""

    reason: str
    message: str
    location: str

    @property
    def advice(self) -> str:
        """What the user can do."""
        return REASONS[self.reason]

    def __str__(self) -> str:
        """One line: where, what, what to do."""
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.message}; {self.advice}"


class Refused(Exception):
    """Carries a refusal out of the code that reads users' files."""

    def __init__(self, reason: str, message: str, location: str) -> None:
        super().__init__(message)
        self.refusal = UserRefusal(reason, message, location)
