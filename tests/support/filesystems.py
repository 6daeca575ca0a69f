"""Filesystems in this process that die, stop answering or tell little, with files of their own."""

from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from steptp_dagster.dataset.storage import address


class Killed(BaseException):
    """Ends a process as a kill does: nobody catches it."""


class Apart(MemoryFileSystem):
    """Files of its own, and a count of what changes them.

    ``left`` is the number of changes until it dies; of a dead one every call raises.
    """

    protocol: ClassVar[Any] = ("apart", "memory")
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    left: ClassVar[int | None] = None
    dead: ClassVar[bool] = False
    error: ClassVar[Exception | None] = None
    asked: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        bare = path.split("://", 1)[-1]
        return "/" + bare.strip("/") if bare.strip("/") else ""

    @classmethod
    def clear(cls) -> None:
        cls.store.clear()
        cls.asked.clear()
        cls.pseudo_dirs[:] = [""]
        cls.left, cls.dead, cls.error = None, False, None

    def _touch(self, what: str) -> None:
        cls = type(self)
        if cls.error is not None:
            raise cls.error
        if cls.dead:
            raise Killed
        cls.asked.append(what)

    def _change(self, what: str) -> bool:
        """Whether the process dies in this change."""
        self._touch(what)
        cls = type(self)
        if cls.left is not None:
            cls.left -= 1
            cls.dead = cls.left < 0
        return cls.dead

    def info(self, path: str, **named: Any) -> Any:
        self._touch("info")
        return super().info(path, **named)

    def ls(self, path: str, detail: bool = True, **named: Any) -> Any:
        self._touch("ls")
        return super().ls(path, detail=detail, **named)

    def find(self, path: str, **named: Any) -> Any:
        self._touch("find")
        return super().find(path, **named)

    def cat_file(self, path: str, *args: Any, **named: Any) -> Any:
        self._touch("cat")
        return super().cat_file(path, *args, **named)

    def get_file(self, rpath: str, lpath: str, **named: Any) -> None:
        self._touch("get")
        super().get_file(rpath, lpath, **named)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **named: Any) -> None:
        if self._change("put"):
            raise Killed
        super().pipe_file(path, value, mode=mode, **named)

    def rm_file(self, path: str) -> None:
        if self._change("rm"):
            raise Killed
        self.store.pop(self._strip_protocol(path)) if self.exists(path) else self._gone(path)

    def _gone(self, path: str) -> None:
        raise FileNotFoundError(path)


class Folders(Apart):
    """As disks are: what is being written is seen, and a name is given to a file in one go."""

    protocol: ClassVar[Any] = ("folders",)
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    asked: ClassVar[list[str]] = []

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **named: Any) -> None:
        dies = self._change("put")
        MemoryFileSystem.pipe_file(self, path, value[: len(value) // 2] if dies else value)
        if dies:
            raise Killed

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        if self._change("mv"):
            raise Killed
        self.store[self._strip_protocol(path2)] = self.store.pop(self._strip_protocol(path1))


class Stubborn(Folders):
    """Moves nothing onto a file that is there."""

    protocol: ClassVar[Any] = ("stubborn",)
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    asked: ClassVar[list[str]] = []

    def mv(self, path1: str, path2: str, **named: Any) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **named)


class Seconds(Apart):
    """Tells only in which second a file was written, which does not end."""

    protocol: ClassVar[Any] = ("seconds", "memory")
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    asked: ClassVar[list[str]] = []

    def info(self, path: str, **named: Any) -> Any:
        told = super().info(path, **named)
        return {**{k: v for k, v in told.items() if k != "created"}, "mtime": 1700000000.0}


class Tagged(Apart):
    """Tells the digest of what was put, as S3 does."""

    protocol: ClassVar[Any] = ("tagged", "memory")
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    asked: ClassVar[list[str]] = []

    def info(self, path: str, **named: Any) -> Any:
        from hashlib import md5

        told = super().info(path, **named)
        if told["type"] == "file":
            content = self.store[self._strip_protocol(path)].getvalue()
            told["ETag"] = f'"{md5(content, usedforsecurity=False).hexdigest()}"'
        return told


class Deaf(Apart):
    """Takes files and has the old ones still."""

    protocol: ClassVar[Any] = ("deaf", "memory")
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    asked: ClassVar[list[str]] = []

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **named: Any) -> None:
        if not self.exists(path):
            super().pipe_file(path, value, mode=mode, **named)


ALL = (Apart, Folders, Stubborn, Seconds, Tagged, Deaf)


def register() -> None:
    """Make all known to fsspec, without files."""
    for one in ALL:
        one.clear()
        fsspec.register_implementation(one.protocol[0], one, clobber=True)


def contents(kind: type[Apart]) -> dict[str, bytes]:
    """The bytes of all files by path."""
    return {path: file.getvalue() for path, file in sorted(kind.store.items())}


def whole(kind: type[Apart]) -> bool:
    """Whether one put replaces a file there, as the library sees it."""
    return address.put_is_whole(kind())
