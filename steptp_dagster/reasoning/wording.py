"""How paths, names and lists are written in the reasoning text.

Every name and piece of LEIR stands in backticks, every statement is named by its number
(``2.1`` is the first statement of the second nest); ``check`` relies on both.
"""

from collections.abc import Iterable

from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.facts import Value


def code(text: str) -> str:
    """A name or a piece of LEIR, marked as such."""
    return f"`{text}`"


def number(path: Path) -> str:
    """The number of a statement: positions from 1, joined by dots."""
    return ".".join(str(i + 1) for i in path)


def statement(path: Path) -> str:
    """``statement 2.1``; the whole program for the empty path."""
    return f"statement {number(path)}" if path else "the program"


def statements(paths: Iterable[Path]) -> str:
    """``statement 2``, ``statements 2 and 3``, ``no statement``."""
    found = [number(path) for path in paths]
    if not found:
        return "no statement"
    return f"statement{'s' if len(found) > 1 else ''} {listed(found)}"


def listed(items: Iterable[str]) -> str:
    """``x``, ``x and y``, ``x, y and z``; ``nothing`` for none."""
    found = list(items)
    if len(found) < 2:
        return found[0] if found else "nothing"
    return f"{', '.join(found[:-1])} and {found[-1]}"


def codes(value: Value) -> str:
    """A list of names or texts, each marked."""
    if not isinstance(value, tuple):
        return code(str(value))
    return listed(code(str(item)) for item in value)


def sentence(text: str) -> str:
    """The text with a capital (unless it starts with code) and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def plain(value: Value) -> str:
    """A parameter's value: numbers bare, text marked, sequences listed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple):
        return listed(plain(item) for item in value)
    return code(value)
