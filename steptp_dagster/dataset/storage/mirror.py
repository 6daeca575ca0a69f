"""A folder on a filesystem of fsspec's, and the copies of its files on this machine.

Whoever reads a file reads its copy, after ``bring`` has compared it with what the store tells of
the file (``stamps``) and fetched it where the two differ. Whoever writes one writes the copy, and
``put`` sends it, whole or not at all. So Parquet files have the bytes that they would have in a
local folder, and polars, DuckDB and digests know local files only. Copies may be deleted.

    <folder>/<table>/program=<p>/part.parquet          the copy
    <folder>/<table>/program=<p>/.part.parquet.stamp   what it is a copy of
"""

import os
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import md5
from pathlib import Path
from typing import Any, Final

from steptp_dagster.dataset.storage import address
from steptp_dagster.dataset.storage.stamps import Stamp

#: Requests that are on their way at a time, where the filesystem takes several.
_AT_ONCE: Final = 16
#: How often a file is fetched that is replaced while it is.
_TRIES: Final = 10
#: Seconds after which another file has another time, on filesystems that count whole seconds.
_COARSE: Final = 2.0


class StorageFailure(RuntimeError):
    """The store does not answer, or refuses; what was there before is whole."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """Of which file (``Stamp.text``) the local file with this identity is a copy.

    ``seen`` and ``fetched`` are seconds of this machine's clock: when the stamp was first seen,
    and when the copy was fetched.
    """

    stamp: str
    identity: str
    seen: float
    fetched: float

    def fits(self, stamp: Stamp, identity: str) -> bool:
        """Whether the local file is what the store has."""
        settled = stamp.sharp or self.fetched - self.seen >= _COARSE
        return settled and (self.stamp, self.identity) == (stamp.text, identity)


@dataclass(frozen=True, slots=True)
class Mirror:
    """The folder ``base`` of a filesystem, and the folder of its copies."""

    url: str = field(repr=False)  # it may have a password
    folder: Path
    _fs: Any
    base: str

    @classmethod
    def at(cls, url: str, folder: Path) -> "Mirror":
        """Connect. Raises whatever the filesystem raises."""
        return cls(url, folder, *address.filesystem(url))

    @property
    def fs(self) -> Any:  # noqa: ANN401 - fsspec has no types
        """The filesystem: those that block have a connection for each thread."""
        return self._fs if self._fs.async_impl else address.filesystem(self.url)[0]

    @property
    def puts_whole(self) -> bool:
        """Whether files are put as a whole, so that none is written aside."""
        return address.put_is_whole(self._fs)

    def remote(self, path: Path) -> str:
        """Where a copy's original lies."""
        return f"{self.base}/{path.relative_to(self.folder).as_posix()}"

    def bring(self, *paths: Path) -> None:
        """Make copies what the store has: fetch, keep, or remove each. Raises StorageFailure."""
        if len(paths) < 2 or not self._fs.async_impl:
            for path in paths:
                self._bring(path)
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(paths)), thread_name_prefix="fetch") as pool:
            list(pool.map(self._bring, paths))

    def _bring(self, path: Path) -> None:
        with self.told("read", path):
            copy = _copy_of(path)
            for _ in range(_TRIES):
                stamp = self._stamp(path)
                if stamp is None:
                    path.unlink(missing_ok=True)
                    _note(path).unlink(missing_ok=True)
                    return
                if copy is not None and copy.fits(stamp, _identity(path)):
                    return
                known = copy is not None and copy.stamp == stamp.text
                seen = copy.seen if copy is not None and known else time.time()
                if self._fetched(path, stamp, seen):
                    return
            raise OSError("the file is replaced again and again")

    def _stamp(self, path: Path) -> Stamp | None:
        """What the store tells of a file; None where there is none."""
        try:
            info = self.fs.info(self.remote(path))
        except FileNotFoundError:
            return None
        return Stamp.of(info) if info.get("type", "file") == "file" else None

    def _fetched(self, path: Path, stamp: Stamp, seen: float) -> bool:
        """Fetch a file; False where it was replaced or removed meanwhile."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside, begun = _aside(path), time.time()
        try:
            self.fs.get_file(self.remote(path), str(aside))
            if self._stamp(path) != stamp:
                return False
            _write_copy(path, _Copy(stamp.text, _identity(aside), seen, begun))
            os.replace(aside, path)
            return True
        except FileNotFoundError:
            return False
        finally:
            aside.unlink(missing_ok=True)

    def put(self, path: Path) -> None:
        """Send a copy that was just written. Raises StorageFailure; then the old file is there."""
        content = path.read_bytes()
        with self.told("write", path):
            self.write(self.remote(path), content)
            # Where the tag is the digest of what was sent, it need not be fetched back. Elsewhere
            # nobody can tell: another process may have written since.
            stamp = self._stamp(path)
            if stamp is not None and stamp.tag == md5(content, usedforsecurity=False).hexdigest():
                now = time.time()
                _write_copy(path, _Copy(stamp.text, _identity(path), now, now))

    def write(self, remote: str, content: bytes) -> None:
        """Replace a file as a whole. Raises whatever the filesystem raises."""
        fs = self.fs
        if address.put_is_whole(fs):
            fs.pipe_file(remote, content)
            return
        parent, _, name = remote.rpartition("/")
        aside = f"{parent}/.{name}.{secrets.token_hex(8)}"
        fs.makedirs(parent, exist_ok=True)
        try:
            fs.pipe_file(aside, content)
            try:
                fs.mv(aside, remote)
            except FileExistsError:  # a move that does not replace
                fs.rm_file(remote)
                fs.mv(aside, remote)
        except BaseException:
            with suppress(Exception):
                fs.rm_file(aside)
            raise

    def remove(self, path: Path) -> None:
        """Remove a file and its copy, where they are. Raises StorageFailure."""
        with self.told("remove", path):
            self.erase(self.remote(path))
        path.unlink(missing_ok=True)
        _note(path).unlink(missing_ok=True)

    def erase(self, remote: str) -> None:
        """Remove a file, where it is. Raises whatever the filesystem raises."""
        with suppress(FileNotFoundError):
            self.fs.rm_file(remote)

    def names(self, folder: str) -> tuple[str, ...]:
        """Names of the files right in a folder, sorted. Raises what the filesystem raises."""
        try:
            found = self.fs.ls(f"{self.base}/{folder}".rstrip("/"), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        paths = (str(each["name"]) for each in found if each["type"] == "file")
        return tuple(sorted(path.rpartition("/")[2] for path in paths))

    def files(self, folder: str, name: str) -> tuple[Path, ...]:
        """Where the copies belong of all files with names like ``name``, two folders deep.

        ``folder`` is that of a table, or ``*``. Raises StorageFailure.
        """
        fs = self.fs
        start, levels = (self.base, 3) if folder == "*" else (f"{self.base}/{folder}", 2)
        with self.told("list", self.folder / folder):
            try:
                whole = address.lists_all_at_once(fs)
                found = fs.find(start) if whole else _below(fs, start, levels)
            except FileNotFoundError:
                found = []
        root = f"{self.base.strip('/')}/"
        parts = (path.lstrip("/").removeprefix(root).split("/") for path in found)
        chosen = (p for p in parts if len(p) == 3 and fnmatchcase(p[-1], name))
        return tuple(sorted(self.folder.joinpath(*p) for p in chosen))

    @contextmanager
    def told(self, what: str, path: Path) -> Iterator[None]:
        """Say of a failure what was tried, and where. Raises StorageFailure."""
        try:
            yield
        except StorageFailure:
            raise
        # Every filesystem has exceptions of its own.
        except Exception as error:
            name = path.relative_to(self.folder).as_posix()
            where = f"{address.shown(self.url).rstrip('/')}/{name}"
            raise StorageFailure(
                f"cannot {what} {where}: {address.words(error)}; what was finished is kept, run "
                "again when that is mended"
            ) from error


def _below(fs: Any, folder: str, levels: int) -> list[str]:  # noqa: ANN401 - fsspec has no types
    """Paths of all files below a folder, in at most so many ``levels``."""
    found: list[str] = []
    for each in fs.ls(folder, detail=True):
        path = str(each["name"])
        if each["type"] == "file":
            found.append(path)
        elif levels > 1:
            with suppress(FileNotFoundError):  # gone since
                found += _below(fs, path, levels - 1)
    return found


def _identity(path: Path) -> str:
    """Of a local file, as long as nobody writes to it or replaces it; empty where there is none."""
    try:
        told = path.stat()
    except FileNotFoundError:
        return ""
    return f"{told.st_ino} {told.st_size} {told.st_mtime_ns}"


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.stamp")


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")


def _copy_of(path: Path) -> _Copy | None:
    try:
        stamp, identity, seen, fetched = _note(path).read_text(encoding="utf-8").splitlines()
        return _Copy(stamp, identity, float(seen), float(fetched))
    except (OSError, ValueError):
        return None


def _write_copy(path: Path, copy: _Copy) -> None:
    note = _note(path)
    aside = _aside(note)
    lines = (copy.stamp, copy.identity, repr(copy.seen), repr(copy.fetched))
    aside.write_text("\n".join(lines), encoding="utf-8")
    os.replace(aside, note)
