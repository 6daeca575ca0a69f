"""Stage files: one Parquet file per table and program, batches beside it while it is made.

    stages/<table>/program=<p>/part.parquet      the finished rows, sorted; replaced as a whole
    stages/<table>/program=<p>/batch-00001...    rows of an unfinished run
    stages/<stage>.lock/<p>                      held (flock) while a stage writes a partition

Files are written aside and moved into place, so readers see the old file or the new one. A kill
frees the lock and loses at most the batch in flight. The folder is local, or that of the copies of
what lies elsewhere (``storage.mirror``).
"""

import errno
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandera.polars as pa
import polars as pl

from steptp_dagster.dataset.file_digests import file_digest, forget
from steptp_dagster.dataset.schemas import empty

if TYPE_CHECKING:
    from steptp_dagster.dataset.storage.mirror import Mirror

#: The partition of tables that are not cut by program.
WHOLE = "all"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_IN_THE_WAY: Final = (errno.ENOTDIR, errno.EEXIST)
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


class PartitionBusy(RuntimeError):
    """Another process is writing the same partition of the same stage."""


class NotWritten(RuntimeError):
    """The disk is full, or the folder may not be written to; what was there before is whole."""


class SpoiltFile(RuntimeError):
    """A finished file that cannot be read: cut short, not Parquet, or not ours to read."""


def write_aside(path: Path, frame: pl.DataFrame, metadata: dict[str, str] | None = None) -> None:
    """Write a Parquet file (zstd) under a temporary name and move it into place.

    Raises NotWritten; then the file that was there before is untouched.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # By way of memory: of a full disk polars says now this, now that.
            content = BytesIO()
            frame.write_parquet(content, compression="zstd", metadata=metadata)
            aside.write_bytes(content.getbuffer())
            os.replace(aside, path)
            forget(path)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say of a failure to write what to do about it. Raises NotWritten."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        said = " ".join(str(error).split())
        # DuckDB tells the number of the system's error in words only.
        number = error.errno if isinstance(error, OSError) else None
        if number in _FULL or "No space left" in said:
            advice = "the disk is full; make room and run again: what was finished is kept"
        elif number in _FORBIDDEN or "Permission denied" in said or "Read-only file" in said:
            advice = "the folder may not be written to; change its owner or mode, or --data"
        elif number == errno.EFBIG:
            advice = "no file may be that large (ulimit -f); raise that: what was finished is kept"
        elif number in _IN_THE_WAY:
            advice = "a file is where a folder should be; move it elsewhere, or name another --data"
        elif number == errno.EISDIR:
            advice = "a folder is where the file should be; move it elsewhere"
        else:
            advice = "nothing was replaced; run again, what was finished is kept"
        raise NotWritten(f"cannot write {path}: {advice} ({said})") from None


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of stage files; with a ``remote``, that of their copies on this machine.

    Whoever reads files by their paths calls ``bring`` first; whoever writes or removes them does
    so by ``write``, ``write_bytes`` and ``remove``. Of a local folder ``bring`` does nothing.
    """

    root: Path
    remote: "Mirror | None" = None

    def part(self, table: str, program: str) -> Path:
        """Path of the finished rows of one table and program."""
        return self.root / table / f"program={program}" / "part.parquet"

    def batches(self, table: str, program: str) -> tuple[Path, ...]:
        """Paths of the batches that an unfinished run left, in the order of writing."""
        folder = self.part(table, program).parent
        return self._called(folder, "batch-*.parquet")

    def asides(self, table: str, program: str) -> tuple[Path, ...]:
        """Paths of files that somebody has begun to write, or had when he was killed."""
        if self.remote is not None and self.remote.puts_whole:
            return ()  # there are none, and asking costs a request
        return self._called(self.part(table, program).parent, ".*.parquet.*")

    def _called(self, folder: Path, pattern: str) -> tuple[Path, ...]:
        if self.remote is None:
            return tuple(sorted(folder.glob(pattern)))
        with self.remote.told("list", folder):
            names = self.remote.names(folder.relative_to(self.root).as_posix())
        return tuple(folder / name for name in names if fnmatchcase(name, pattern))

    def files(self, folder: str = "*", name: str = "*") -> tuple[Path, ...]:
        """Paths of all files called like ``name`` of a table's, or of all tables', partitions."""
        if self.remote is None:
            return tuple(sorted(p for p in self.root.glob(f"{folder}/*/{name}") if p.is_file()))
        return self.remote.files(folder, name)

    def bring(self, *paths: Path) -> None:
        """Make the files at these paths what they are in the store. Raises StorageFailure."""
        if self.remote is not None:
            self.remote.bring(*paths)

    def write(
        self, path: Path, frame: pl.DataFrame, metadata: dict[str, str] | None = None
    ) -> None:
        """Replace a Parquet file as a whole, or not at all. Raises NotWritten, PartitionBusy."""
        write_aside(path, frame, metadata)
        self._send(path)

    def write_bytes(self, path: Path, content: bytes) -> None:
        """Replace a file as a whole, or not at all. Raises NotWritten, PartitionBusy."""
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                aside.write_bytes(content)
                os.replace(aside, path)
            finally:
                with suppress(OSError):
                    aside.unlink(missing_ok=True)
        self._send(path)

    def remove(self, path: Path) -> None:
        """Remove a file, where it is. Raises NotWritten."""
        with self._sent():
            if self.remote is not None:
                self.remote.remove(path)
        with explained(path):
            path.unlink(missing_ok=True)

    def _send(self, path: Path) -> None:
        with self._sent():
            if self.remote is not None:
                self.remote.put(path)

    @contextmanager
    def _sent(self) -> Iterator[None]:
        """Refuse to write to what this thread no longer holds. Raises NotWritten, PartitionBusy."""
        if self.remote is None:
            yield
            return
        from steptp_dagster.dataset.storage.leases import Held, confirm
        from steptp_dagster.dataset.storage.mirror import StorageFailure

        try:
            confirm()
            yield
        except Held as error:
            raise PartitionBusy(str(error)) from None
        except StorageFailure as error:
            raise NotWritten(str(error)) from error

    def read(
        self,
        table: pa.DataFrameSchema,
        program: str,
        name: str = "",
        *,
        columns: Sequence[str] | None = None,
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """Finished rows; the empty table where there are none or where its columns changed.

        ``name`` is the folder's name where it is not the table's. Of the file only the
        ``columns``, and the rows ``where`` that holds, are decoded. Raises SpoiltFile.
        """
        path = self.part(name or str(table.name), program)
        self.bring(path)
        return _rows(table, path, columns, where)

    def read_all(
        self,
        table: pa.DataFrameSchema,
        programs: Sequence[str],
        name: str = "",
        *,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Finished rows of several programs, in their order."""
        paths = [self.part(name or str(table.name), program) for program in programs]
        self.bring(*paths)
        nothing = empty(table).select(columns or pl.all())
        return pl.concat([nothing, *(_rows(table, path, columns, None) for path in paths)])

    def content(self, table: str, program: str) -> str | None:
        """Digest of the bytes of a finished file, or None where there is none."""
        return self.contents([(table, program)])[0]

    def contents(self, files: Sequence[tuple[str, str]]) -> list[str | None]:
        """Digests of the bytes of finished files, by table and program. Raises SpoiltFile."""
        paths = [self.part(*file) for file in files]
        self.bring(*paths)
        try:
            return [file_digest(path) for path in paths]
        except PermissionError as error:
            said = "may not be read; change its owner or mode, or remove it to have it made again"
            raise SpoiltFile(f"{error.filename} {said}") from None

    def digest(self, table: str, program: str) -> str | None:
        """What a finished file says that it was made from, or None."""
        path = self.part(table, program)
        self.bring(path)
        try:
            return pl.read_parquet_metadata(path).get("made_from")
        except (OSError, pl.exceptions.PolarsError):
            return None

    @contextmanager
    def locked(self, stage: str, program: str) -> Iterator[None]:
        """Hold the partition of a stage. Raises PartitionBusy where another process has it."""
        path = self.root / f"{stage}.lock" / program
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = path.open("w")
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = f"stage {stage.removesuffix('.seal')!r} of {program!r}"
                raise PartitionBusy(
                    f"{what} is being written by another process; run again when that has ended"
                ) from None
            if self.remote is None:
                yield
                return
            from steptp_dagster.dataset.storage.leases import Held, held

            try:
                with held(self.remote, stage, program):
                    yield
            except Held as error:
                raise PartitionBusy(str(error)) from None


@cache
def opened(data: Path, storage: str = "") -> Store:
    """The stage files of a data folder: in ``stages``, or where ``storage`` says.

    That is another local folder, or a URL of fsspec's, of which copies are kept in ``mirror``.
    Raises BadStorage where nothing can be read or written there.
    """
    if not storage:
        return Store(data / "stages")
    from steptp_dagster.dataset.storage import address, probe

    if (folder := address.folder_of(storage)) is not None:
        return Store(probe.local(storage, folder))
    mirror = probe.connected(storage, data / "mirror")
    return Store(mirror.folder, mirror)


def _rows(
    table: pa.DataFrameSchema, path: Path, columns: Sequence[str] | None, where: pl.Expr | None
) -> pl.DataFrame:
    """As ``Store.read``, of a file that is current."""
    if columns is None and where is None:
        found = read_if_sound(table, path)
    else:
        found = _read_some(table, path, columns, where)
    if found is None and path.exists() and not _is_parquet(path):
        raise SpoiltFile(f"{path} is not readable as Parquet; its stage makes it again")
    return empty(table).select(columns or pl.all()) if found is None else found


def read_if_sound(table: pa.DataFrameSchema, path: Path) -> pl.DataFrame | None:
    """The file's rows, or None where it is missing, spoilt, or has other columns or types."""
    try:
        found = pl.read_parquet(path, hive_partitioning=False)
    except (OSError, pl.exceptions.PolarsError):
        return None
    return found if found.schema == empty(table).schema else None


def _read_some(
    table: pa.DataFrameSchema, path: Path, columns: Sequence[str] | None, where: pl.Expr | None
) -> pl.DataFrame | None:
    """As ``read_if_sound``, of some columns and rows."""
    try:
        if pl.read_parquet_schema(path) != empty(table).schema:
            return None
        rows = pl.scan_parquet(path, hive_partitioning=False)
        rows = rows if where is None else rows.filter(where)
        return rows.select(columns or pl.all()).collect()
    except (OSError, pl.exceptions.PolarsError):
        return None


def _is_parquet(path: Path) -> bool:
    try:
        pl.read_parquet_schema(path)
    except (OSError, pl.exceptions.PolarsError):
        return False
    return True
