"""Reading LEIR files, in either spelling, and telling what is wrong with them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from steptp_dagster.cli.output import Failure, read_text, say
from steptp_dagster.leir.compact_parser import is_compact, parse_compact, read_either
from steptp_dagster.leir.fileform import ReadFile, program_text, read_signature
from steptp_dagster.leir.parser import Parsed, parse
from steptp_dagster.leir.signature import Signature
from steptp_dagster.leir.texterror import TextError, excerpt, position
from steptp_dagster.leir.validity import check
from steptp_dagster.leir.violation import Violation

#: Longest text of a candidate, in characters: hundreds of times the longest program known.
MAX_CANDIDATE: Final = 4 * 2**20


def folder(name: str) -> Path | None:
    """The folder that a file's ``.npy`` constants are read from; none for standard input."""
    return None if name == "-" else Path(name).parent


def read_original(name: str) -> tuple[ReadFile, str]:
    """An original with its signature, and its text. Fails in words with exit code 2."""
    text = read_text(name)
    try:
        return read_either(text, base=folder(name)), text
    except TextError as error:
        raise Failure(f"{name}: {error}") from error


def read_candidate(name: str, inherit: Signature) -> tuple[ReadFile, str]:
    """A candidate; without a header it has its original's signature. Fails with exit code 2."""
    text = read_text(name)
    if len(text) > MAX_CANDIDATE:
        raise Failure(
            f"{name}: {len(text)} characters; a candidate has at most {MAX_CANDIDATE}: "
            "leave out what is not LEIR"
        )
    try:
        return read_either(text, inherit=inherit), text
    except TextError as error:
        raise Failure(f"{name}: {error}") from error


def read_any(name: str) -> tuple[Parsed, Signature | None, str]:
    """A program with or without a signature, and its text. Fails in words with exit code 2."""
    text = read_text(name)
    try:
        signature = read_signature(text, base=folder(name))
        reader = parse_compact if is_compact(text) else parse
        return reader(program_text(text), signature), signature, text
    except TextError as error:
        raise Failure(f"{name}: {error}") from error


def read_valid(name: str) -> ReadFile:
    """A valid original. Fails in words with exit code 2."""
    file, text = read_original(name)
    for note in file.notes:
        say(f"{name}: note: {note}")
    violations = check(file.signed)
    if violations:
        raise Failure(f"{name} is not valid LEIR:\n{report(violations, text)}")
    return file


def report(violations: Iterable[Violation], text: str) -> str:
    """Violations for people: kind, message, position in the file, and a caret."""
    return "\n".join(_told(v, text) for v in violations)


def as_data(violations: Iterable[Violation], text: str) -> list[dict[str, object]]:
    """Violations for machines; ``line`` and ``column`` count from 1 and are 0 where unknown."""
    rows: list[dict[str, object]] = []
    for violation in violations:
        line, column = position(text, violation.pos) if violation.pos >= 0 else (0, 0)
        rows.append(
            {
                "kind": violation.kind,
                "message": violation.message,
                "path": list(violation.path),
                "line": line,
                "column": column,
                "found": violation.found,
                "required": violation.required,
            }
        )
    return rows


def _told(violation: Violation, text: str) -> str:
    head = f"{violation.kind}: {violation.message}"
    if violation.pos < 0:
        return head
    line, column = position(text, violation.pos)
    return f"{head} (line {line}, column {column})\n{excerpt(text, violation.pos)}"
