"""Digests of files, each read once a process as long as it stays as it is."""

import os
from hashlib import blake2b
from pathlib import Path

#: Path -> what the system says of the file (identity, size, times), and its digest.
_known: dict[Path, tuple[tuple[int, ...], str]] = {}


def file_digest(path: Path) -> str | None:
    """BLAKE2b digest of a file's bytes, 32 hexadecimal digits; None where there is no file.

    A file that was replaced or written to since it was read, by whom ever, is read again.
    """
    try:
        with path.open("rb") as file:
            told = os.fstat(file.fileno())
            stamp = (told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns)
            known = _known.get(path)
            if known is None or known[0] != stamp:
                known = stamp, blake2b(file.read(), digest_size=16).hexdigest()
                _known[path] = known
            return known[1]
    except FileNotFoundError:
        return None


def forget(path: Path) -> None:
    """Read a file again when it is asked for: this process has just written it."""
    _known.pop(path, None)
