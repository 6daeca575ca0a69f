"""The ``.leir`` file form: header lines that state the signature, then the program text.

A header line is ``# ROLE NAME DTYPE[EXTENTS]``, for an input or parameter optionally followed by
``in LOW..HIGH``, for a constant by ``= VALUE``, ``= [VALUE,...]`` (all elements, row-major) or
``= FILE.npy``. Other lines that start with ``#`` are comments.
"""

import re
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final, NoReturn, cast

from steptp_dagster.leir.arrays import ArrayError, read_npy
from steptp_dagster.leir.ast import InvalidNode, is_tensor_name
from steptp_dagster.leir.dtypes import DTYPES, DType
from steptp_dagster.leir.literals import MAX_DIGITS, spell
from steptp_dagster.leir.notes import Note
from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import Role, Scalar, Signature, SignedProgram, Variable
from steptp_dagster.leir.texterror import TextError

ROLES: Final = ("input", "param", "const", "output")

_COMMENT = re.compile(r"^[^\S\n]*#[^\n]*", re.MULTILINE)
_DECLARATION = re.compile(r"[^\S\n]*#\s*(input|param|const|output)\s+(?=[A-Z]\w*\b|\S+\s+\w+\s*\[)")
_HEAD = re.compile(r"(?P<name>\S*)(?:\s+(?P<dtype>[^\s\[]*)\s*)?(?P<bracket>\[)?")
_EXTENTS = re.compile(r"\s*(?:[0-9]+\s*(?:,\s*[0-9]+\s*)*)?\]")
_RANGE = re.compile(r"(?P<low>\S+?)\s*\.\.\s*(?P<high>\S+)\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf)\Z")
_EXAMPLE = "a header line such as '# output D f32[16,10]'"


class FileFormError(TextError):
    """A header that states no signature, with the position in the file."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A program with its signature, and notes on what was normalised while reading."""

    signed: SignedProgram
    notes: tuple[Note, ...] = ()


def read(text: str, *, inherit: Signature | None = None, base: Path | None = None) -> ReadFile:
    """Read the file form; positions in notes and errors are those in ``text``.

    ``inherit`` is the signature of a text without header lines (a candidate's original). ``base``
    is the folder that ``.npy`` files of constants are read from; without it none may be named.
    Raises FileFormError for the header, ParseError for the program.
    """
    signature = read_signature(text, base=base)
    if signature is None:
        signature = inherit
    if signature is None:
        raise FileFormError.at(f"expected {_EXAMPLE}, found none", text, 0, (_EXAMPLE,))
    parsed = parse(program_text(text), signature)
    return ReadFile(SignedProgram(parsed.program, signature), parsed.notes)


def program_text(text: str) -> str:
    """The text with comments and header lines blanked, so that offsets stay what they are."""
    if text.startswith("\ufeff"):
        text = f" {text[1:]}"
    return _COMMENT.sub(lambda match: " " * len(match[0]), text)


def read_signature(text: str, *, base: Path | None = None) -> Signature | None:
    """The signature that the header lines of a file state, or None if it has none.

    Raises FileFormError.
    """
    found: dict[str, Variable] = {}
    first = 0
    for comment in _COMMENT.finditer(text.replace("\ufeff", " ", 1)):
        match = _DECLARATION.match(comment[0])
        if match is None:
            continue
        line = _Line(text, comment.start() + match.end(), comment.end(), base)
        variable = line.variable(cast("Role", match[1]))
        if variable.name in found:
            line.fail(line.start, f"one declaration of {variable.name}", "a second one")
        first = first if found else comment.start()
        found[variable.name] = variable
    if not found:
        return None
    try:
        return Signature(tuple(found.values()))
    except InvalidNode as error:
        raise FileFormError.at(f"expected {_EXAMPLE}: {error}", text, first, (_EXAMPLE,)) from error


class _Line:
    """One header line behind its role: ``text[start:end]``."""

    def __init__(self, text: str, start: int, end: int, base: Path | None) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.base = base

    def fail(self, offset: int, expected: str, found: str | None = None) -> NoReturn:
        """Raise at ``offset``; what was found is, unless given, the word that stands there."""
        if found is None:
            words = self.text[offset : self.end].split()
            found = repr(words[0][:24]) if words else "the end of the line"
        message = f"expected {expected}, found {found}"
        raise FileFormError.at(message, self.text, offset, (expected,))

    def variable(self, role: Role) -> Variable:
        """The declared variable."""
        match = _HEAD.match(self.text, self.start, self.end)
        assert match is not None  # the pattern matches any text, also none
        name, dtype = match["name"], match["dtype"] or ""
        if not is_tensor_name(name):
            self.fail(
                self.start, "a tensor name (a capital other than B L P T U V, then lower-case)"
            )
        if dtype not in DTYPES:
            at = match.start("dtype") if match["dtype"] else match.end()
            self.fail(at, f"a dtype, one of {' '.join(DTYPES)}", repr(dtype) if dtype else None)
        if match["bracket"] is None:
            self.fail(match.end(), f"a shape such as {dtype}[16,64] or {dtype}[] for a scalar")
        closed = _EXTENTS.match(self.text, match.end(), self.end)
        if closed is None:
            self.fail(match.end(), "positive integers, separated by commas, and ']'")
        shape = self.shape(match.end(), closed[0])
        rest = self.text[closed.end() : self.end]
        at = closed.end() + len(rest) - len(rest.lstrip())
        return self.completed(role, name, DTYPES[dtype], shape, rest.strip(), at)

    def shape(self, offset: int, text: str) -> tuple[int, ...]:
        """The extents in ``16,64]``."""
        words = text.rstrip("]").split(",")
        if not words[-1].strip():
            return ()
        for word in words:
            if len(word) > MAX_DIGITS or int(word) < 1:
                self.fail(offset, "extents of at least 1", repr(word.strip()[:24]))
            offset += len(word) + 1
        return tuple(map(int, words))

    def completed(
        self, role: Role, name: str, dtype: DType, shape: tuple[int, ...], rest: str, at: int
    ) -> Variable:
        """The variable with what follows its shape: a value range, or a constant's values."""
        if role == "const":
            if not rest.startswith("="):
                self.fail(at, "'=' and the value of the constant")
            stated = rest[1:].lstrip()
            values = self.values(dtype, shape, stated, at + len(rest) - len(stated))
            return Variable(role, name, dtype.name, shape, values=values)
        if not rest:
            return Variable(role, name, dtype.name, shape)
        if role == "output":
            self.fail(at, "the end of the line (only inputs and parameters have a value range)")
        match = _RANGE.match(rest[2:].lstrip()) if re.match(r"in\s", rest) else None
        if match is None:
            self.fail(at, "'in LOW..HIGH'")
        offset = at + len(rest) - len(match.string)
        low = self.number(dtype, match["low"], offset, finite=True)
        high = self.number(dtype, match["high"], offset + match.start("high"), finite=True)
        if low > high:
            self.fail(offset, "a lower end that is not above the upper one", f"{rest[2:].strip()}")
        return Variable(role, name, dtype.name, shape, low=low, high=high)

    def values(
        self, dtype: DType, shape: tuple[int, ...], stated: str, at: int
    ) -> tuple[Scalar, ...]:
        """The values of a constant in row-major order."""
        count = 1
        for extent in shape:
            count *= extent
        if stated.endswith(".npy"):
            return self.file(dtype, shape, stated, at)
        if not stated.startswith("["):
            if count != 1:
                self.fail(at, f"'[' and {count} values, or a .npy file")
            return (self.number(dtype, stated, at),)
        if not stated.endswith("]"):
            self.fail(at + len(stated), "']' after the last value")
        words = stated[1:-1].split(",")
        if len(words) != count:
            self.fail(at, f"{count} value{'s' if count > 1 else ''}", f"{len(words)}")
        found: list[Scalar] = []
        offset = at + 1
        for word in words:
            lead = len(word) - len(word.lstrip())
            found.append(self.number(dtype, word.strip(), offset + lead))
            offset += len(word) + 1
        return tuple(found)

    def number(self, dtype: DType, word: str, at: int, *, finite: bool = False) -> Scalar:
        """One value of a dtype: false or true (or 0, 1), an integer in range, a float."""
        if dtype.kind == "bool":
            if word not in ("0", "1", "false", "true"):
                self.fail(at, "false or true", repr(word[:24]))
            return word in ("1", "true")
        if _NUMBER.match(word) is None or len(word) > MAX_DIGITS:
            self.fail(at, f"a number of dtype {dtype.name}", repr(word[:24]))
        if dtype.is_float:
            value = float(word)
            if not isfinite(value) and (finite or "inf" not in word):
                self.fail(at, "a finite number", repr(word[:24]))
            return value
        if not word.lstrip("+-").isdigit():
            self.fail(at, f"an integer of dtype {dtype.name}", repr(word[:24]))
        low, high = integer_range(dtype)
        if not low <= int(word) <= high:
            self.fail(at, f"an integer from {low} to {high}", repr(word[:24]))
        return int(word)

    def file(
        self, dtype: DType, shape: tuple[int, ...], stated: str, at: int
    ) -> tuple[Scalar, ...]:
        """The values in a ``.npy`` file below ``base``."""
        if self.base is None:
            self.fail(at, "values (only an original's header may name a file)")
        try:
            return read_npy(self.base, stated, dtype, shape)
        except ArrayError as error:
            self.fail(at, f"a .npy file of dtype {dtype.name} and that shape", str(error))


def integer_range(dtype: DType) -> tuple[int, int]:
    """Lowest and highest value of an integer dtype."""
    if dtype.signed:
        return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    return 0, 2**dtype.bits - 1


def value_text(value: Scalar) -> str:
    """The spelling of a value in a header; floats without a needless point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    sign = "-" if str(value).startswith("-") else ""
    if not isfinite(value):
        return f"{sign}inf"
    return f"{sign}{spell(abs(value)).removesuffix('.0')}"


def variable_text(variable: Variable) -> str:
    """One header line, without a line break."""
    shape = ",".join(map(str, variable.shape))
    head = f"# {variable.role} {variable.name} {variable.dtype}[{shape}]"
    if variable.low is not None and variable.high is not None:
        return f"{head} in {value_text(variable.low)}..{value_text(variable.high)}"
    if variable.values is None:
        return head
    listed = ",".join(map(value_text, variable.values))
    return f"{head} = {listed if variable.shape == () else f'[{listed}]'}"


def header_text(signature: Signature) -> str:
    """All header lines, each with its line break. ``.npy`` constants are written out."""
    return "".join(f"{variable_text(variable)}\n" for variable in signature.variables)


def write(signed: SignedProgram) -> str:
    """The file form: the header, then the canonical text on one line."""
    return f"{header_text(signed.signature)}{to_text(signed.program)}\n"
