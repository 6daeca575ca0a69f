"""Notes: what a reader should know about how a text was read, though it is no error."""

from dataclasses import dataclass
from typing import Self

from steptp_dagster.leir.texterror import position


@dataclass(frozen=True, slots=True)
class Note:
    """One remark at one place of the text; ``line`` and ``column`` count from 1, ``pos`` from 0."""

    message: str
    line: int
    column: int
    pos: int

    def __str__(self) -> str:
        """Message and position."""
        return f"{self.message} (line {self.line}, column {self.column})"

    @classmethod
    def at(cls, message: str, text: str, offset: int) -> Self:
        """The note for ``text`` at ``offset``."""
        line, column = position(text, offset)
        return cls(message, line, column, offset)
