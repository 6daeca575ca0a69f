"""How commands speak: results on standard output, talk and errors on standard error, in words."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

#: Exit codes of the contract: rejected or failed; wrong usage or input; a defect of ours.
REJECTED = 1
BAD_INPUT = 2
DEFECT = 70


class Failure(click.ClickException):
    """Ends a command with a message for people and an exit code, never with a traceback."""

    exit_code: int = BAD_INPUT  # type: ignore[misc]  # a class variable in click's own type

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def show(self, file: Any = None) -> None:  # noqa: ANN401 - click's own signature
        """Print ``steptp: message`` on standard error."""
        click.echo(f"steptp: {self.message}", err=True)


class NamedPath(click.Path):
    """A path that is named: the empty text, as of a variable that is not set, is none."""

    def __init__(self, *, exists: bool = False, file_okay: bool = True) -> None:
        super().__init__(exists=exists, file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's own signature
        """The path; Python would take the empty text for the current folder."""
        if value == "":
            self.fail("the name is empty; leave the option out, or name a folder", param, ctx)
        return super().convert(value, param, ctx)


def unwritten(target: Path, error: OSError) -> Failure:
    """Why a file or folder that a command should write is not there, and what to do."""
    advice = "make room, change the mode of the folder, or name another with --to"
    return Failure(f"{target} is not written: {error.strerror or error}; {advice}", REJECTED)


def json_option(command: F) -> F:
    """Add ``--json`` (parameter ``as_json``) to a command."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print the result as JSON for machines."
    )(command)


def spelling_option(command: F) -> F:
    """Add ``--spelling`` (parameter ``spelling``) to a command that prints LEIR."""
    return click.option(
        "--spelling",
        type=click.Choice(["paper", "compact"]),
        default="paper",
        show_default=True,
        help="How programs are written.",
    )(command)


def emit(data: object, text: str | Callable[[], str], *, as_json: bool) -> None:
    """Print a result: ``data`` as JSON, or the text made for people."""
    if as_json:
        told = json.dumps(data, indent=1, ensure_ascii=False, default=str)
    else:
        told = text if isinstance(text, str) else text()
    try:
        click.echo(told)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"standard output: {error.strerror or error}") from error


def say(message: str) -> None:
    """Print a line of talk on standard error."""
    click.echo(message, err=True)


def read_text(name: str) -> str:
    """The text of a file, or of standard input for ``-``. Fails in words with exit code 2."""
    # Python has no stream at all where the caller closed it.
    if name == "-" and sys.stdin is None:
        raise Failure("standard input is closed")
    try:
        held = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return held.decode("utf-8")
    except OSError as error:
        raise Failure(f"{name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{name}: not UTF-8 text (byte {error.start})") from error


def table(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Rows as aligned text; numbers to the right.

    >>> print(table([{"name": "a", "n": 1}, {"name": "bb", "n": 10}]))
    name   n
    a      1
    bb    10
    """
    names = list(columns) or (list(rows[0]) if rows else [])
    cells = [["" if row.get(n) is None else str(row.get(n)) for n in names] for row in rows]
    widths = [max([len(n), *(len(c[i]) for c in cells)]) for i, n in enumerate(names)]
    right = [bool(rows) and all(_is_number(row.get(n)) for row in rows) for n in names]

    def line(parts: Sequence[str]) -> str:
        placed = [
            p.rjust(w) if r else p.ljust(w) for p, w, r in zip(parts, widths, right, strict=True)
        ]
        return "  ".join(placed).rstrip()

    return "\n".join([line(names), *(line(c) for c in cells)])


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
