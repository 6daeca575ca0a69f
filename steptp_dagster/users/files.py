"""The Python files of a folder: which are programs, how they are called, what identifies them.

Nothing is executed here. A file's *partition* is its name in the data set; it is made of letters
that are safe in paths, whatever the file is called, and no program of the library is called so.
"""

import ast
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from steptp_dagster.users.refusal import Refused, UserRefusal

#: What the partitions and programs of users start with.
PREFIX: Final = "user_"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST: Final = 60

#: Bytes of the largest file that is taken for a program, or for a part of one.
LARGEST: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class UserFile:
    """One file. ``partition`` names it (and, alone in its file, its program) in the data set."""

    path: Path
    partition: str

    @property
    def name(self) -> str:
        """The file's name in its folder, as errors and tables show it."""
        return self.path.name

    def program(self, name: str) -> str:
        """What a program of this file is called in the data set; ``""`` is the only or main one."""
        return f"{self.partition}.{safe(name)}" if name else self.partition


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a file, and the digest of it and of the files of its folder that it imports."""

    text: str
    code_hash: str


def safe(text: str) -> str:
    """``text`` where it is safe in a path; else its safe part and a digest that tells it apart.

    >>> safe("my-model_2"), safe("../x")
    ('my-model_2', '___x~cb309341')
    """
    plain = _UNSAFE.sub("_", text)[:_LONGEST]
    return plain if plain == text else f"{plain}~{_digest(text.encode())[:8]}"


def file_of(path: Path) -> UserFile:
    """The file at a path, whether it exists or not."""
    return UserFile(path, PREFIX + safe(path.stem))


def files_in(folder: Path) -> tuple[UserFile, ...]:
    """The program files of a folder, by name: ``*.py``, but none that starts with ``_`` or a dot.

    Folders in it are not searched. Raises OSError where the folder cannot be read.
    """
    paths = [
        path
        for path in folder.iterdir()
        if path.suffix == ".py" and path.name[0] not in "._" and _is_file(path)
    ]
    return tuple(file_of(path) for path in sorted(paths, key=lambda p: p.name))


def read(file: UserFile) -> Content | UserRefusal:
    """A file's text and digest, or why it cannot be read.

    The digest is that of the text alone unless the file imports files of its own folder; one of
    these that is too large to be read is a reason too, since a change in it would not be seen.
    """
    try:
        _check_size(file.path, file.name)
        text = file.path.read_bytes().decode("utf-8-sig")
        helpers = _helpers(text, file.path.parent, {file.path})
        if not helpers:
            return Content(text, _digest(text.encode()))
        parts = [[str(p.relative_to(file.path.parent)), _digest(p.read_bytes())] for p in helpers]
    except Refused as refused:
        return refused.refusal
    except (OSError, UnicodeDecodeError) as error:
        return UserRefusal("unreadable", f"cannot be read: {error}", file.name)
    return Content(text, _digest(repr([_digest(text.encode()), sorted(parts)]).encode()))


def _check_size(path: Path, name: str) -> None:
    """Raises Refused for a file that is no program by its size: it is never read into memory."""
    if (size := path.stat().st_size) > LARGEST:
        raise Refused("unreadable", f"is no program: {size} bytes, more than {LARGEST}", name)


def _is_file(path: Path) -> bool:
    """Files, and links that lead nowhere: those are reported, other things are passed over."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _helpers(text: str, folder: Path, seen: set[Path]) -> list[Path]:
    """Files of the folder that a text imports, directly or by way of others. Raises Refused."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[Path] = []
    for name in sorted(_imported(tree)):
        package = folder / name
        candidates = (
            sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]
        )
        for path in candidates:
            if path in seen or not path.is_file():
                continue
            _check_size(path, str(path.relative_to(folder)))
            seen.add(path)
            found.append(path)
            inner = path.read_bytes().decode("utf-8", "replace")
            found += _helpers(inner, folder, seen)
    return found


def _imported(tree: ast.AST) -> set[str]:
    """First parts of the names that are imported anywhere in a file."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
