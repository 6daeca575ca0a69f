"""Errors that point into a text: line, column, and a caret under the offending character."""

from typing import Final, NamedTuple, Self

_WINDOW: Final = 72


class Position(NamedTuple):
    """A place in a text; ``line`` and ``column`` count from 1, in characters."""

    line: int
    column: int


def position(text: str, offset: int) -> Position:
    """Line and column of the character at ``offset`` (the length of the text: just after it)."""
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def excerpt(text: str, offset: int, width: int = _WINDOW) -> str:
    """Two lines: a window of at most ``width`` characters around ``offset``, and a caret below.

    Programs often are one line of thousands of characters, so the line is cut on both sides,
    with ``...`` where something was left out. White space shows as blanks, unprintable
    characters as ``?``.
    """
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : len(text) if end < 0 else end]
    column = offset - start
    low = max(0, min(column - width // 2, len(line) - width))
    high = min(len(line), low + width)
    shown = "".join(
        c if c.isprintable() else " " if c.isspace() else "?" for c in line[low:high].rstrip()
    )
    head = "..." if low else ""
    tail = "..." if high < len(line) else ""
    return f"{head}{shown}{tail}\n{' ' * (len(head) + column - low)}^"


class TextError(ValueError):
    """A text that cannot be read.

    ``message`` starts with "expected"; ``line`` and ``column`` count from 1, ``offset`` from 0;
    ``excerpt`` shows the place; ``expected`` lists what could have stood there.
    """

    def __init__(
        self,
        message: str,
        line: int,
        column: int,
        offset: int,
        excerpt: str,
        expected: tuple[str, ...] = (),
    ) -> None:
        """Keep all parts as attributes (and as ``args``, so that the error can be pickled)."""
        super().__init__(message, line, column, offset, excerpt, expected)
        self.message = message
        self.line = line
        self.column = column
        self.offset = offset
        self.excerpt = excerpt
        self.expected = expected

    def __str__(self) -> str:
        """Message, position, and the excerpt with its caret."""
        return f"{self.message} (line {self.line}, column {self.column})\n{self.excerpt}"

    @classmethod
    def at(cls, message: str, text: str, offset: int, expected: tuple[str, ...] = ()) -> Self:
        """The error for ``text`` at ``offset``."""
        offset = max(0, min(offset, len(text)))
        line, column = position(text, offset)
        return cls(message, line, column, offset, excerpt(text, offset), expected)
