"""Results that worker processes of one pool share, so that each is computed once.

A folder holds them, one file each, written aside and moved into place; a lock beside it is held
by whoever computes, so that two workers that need the same result at the same time compute it
once. A worker that dies frees its lock. The pool makes the folder, private to its user, and removes
it; processes without one share nothing.
"""

import fcntl
import os
import pickle
from collections.abc import Callable, Hashable
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Files that are kept, and bytes of the largest one.
_FILES: Final = 48
_LARGEST: Final = 64 * 2**20
_PREFIX: Final = "steptp-workers-"
_folder: list[Path] = []


def shared_folder(parent: str | Path | None) -> "TemporaryDirectory[str]":
    """A new folder for the workers of one pool, below ``parent`` or the system's temporary one.

    It is named after this process. Folders of processes that were killed are removed.
    """
    for left in Path(parent or gettempdir()).glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not _runs(int(owner)):
            rmtree(left, ignore_errors=True)
    name = f"{_PREFIX}{os.getpid()}-"
    return TemporaryDirectory(prefix=name, dir=parent, ignore_cleanup_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def use(folder: Path | None) -> None:
    """Share results in a folder from now on, or none."""
    _folder[:] = [] if folder is None else [folder]


def once(key: Hashable, make: Callable[[], T]) -> T:
    """The result for a key, from the folder or made now. Keys are told apart by their pickles."""
    if not _folder:
        return make()
    name = blake2b(pickle.dumps(key), digest_size=16).hexdigest()
    path = _folder[0] / name
    found = _read(path)
    if found is not None:
        return found[0]  # type: ignore[no-any-return]
    try:
        lock = path.with_suffix(".lock").open("w")
    except OSError:  # the pool is being closed
        return make()
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _read(path)
        if found is not None:
            return found[0]  # type: ignore[no-any-return]
        result = make()
        _write(path, result)
        return result


def _read(path: Path) -> tuple[Any] | None:
    try:
        return (pickle.loads(path.read_bytes()),)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _write(path: Path, result: object) -> None:
    """Keep a result, and drop the oldest; a full disk costs time, not the result."""
    content = pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)
    if len(content) > _LARGEST:
        return
    aside = path.with_suffix(f".{os.getpid()}")
    try:
        aside.write_bytes(content)
        os.replace(aside, path)
        files = [p for p in path.parent.iterdir() if not p.suffix]
        for old in sorted(files, key=_age)[:-_FILES]:
            old.unlink(missing_ok=True)
    except OSError:
        aside.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
