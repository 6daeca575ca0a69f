"""What the setting ``storage`` means: a local folder, or a URL of fsspec's."""

import re
from pathlib import Path
from typing import Any, Final

#: ``protocol://path``, or ``wrapper::protocol://path``.
_URL: Final = re.compile(r"^[a-z][a-z0-9+._-]*(?:://|::)", re.IGNORECASE)
_LOCAL: Final = re.compile(r"^(?:file|local)://(?!.*::)", re.IGNORECASE)
#: From the colon after a user's name to the last @: a password may have @ and / in it, unescaped.
#: The colon before a port is none.
_PASSWORD: Final = re.compile(r"(://[^/@:\s]*):(?!\d+/)\S*@")
#: Wrappers that keep copies and do not ask whether these are still what is there.
_CACHES: Final = ("simplecache", "filecache", "blockcache", "cached")
#: Filesystems on which one put replaces a file as a whole, and none is ever seen half written.
_WHOLE: Final = frozenset(
    ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "tos", "memory")
)


class BadStorage(RuntimeError):
    """A setting ``storage`` with which nothing could be read or written; one sentence."""


def folder_of(text: str) -> Path | None:
    """The folder that a path or a URL of a local file means; None for other URLs."""
    if _URL.match(text) is None:
        return Path(text).resolve()
    return Path(_LOCAL.sub("", text)).resolve() if _LOCAL.match(text) else None


def shown(text: str) -> str:
    """A URL as it is told: without a password.

    >>> shown("sftp://me:secret@host/parts")
    'sftp://me:***@host/parts'
    """
    return _PASSWORD.sub(r"\1:***@", text)


def words(error: BaseException) -> str:
    """What an error says, in one line."""
    said = " ".join(str(error).split())
    return shown(said) if said else type(error).__name__


def check(text: str) -> None:
    """Raise BadStorage for a protocol that nobody knows, and for a package that is missing.

    Nothing is connected to.
    """
    if folder_of(text) is not None:
        return
    import fsspec

    for protocol in _protocols(text):
        if protocol in _CACHES:
            raise BadStorage(
                f"storage {shown(text)!r}: {protocol} keeps copies without asking whether they "
                "are current; leave it out, copies are kept and compared anyway"
            )
        try:
            fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            raise BadStorage(
                f"storage {shown(text)!r} needs a package that is not installed: {words(error)}"
            ) from None
        except ValueError:
            raise BadStorage(
                f"storage {shown(text)!r}: fsspec knows no protocol {protocol!r}; "
                "a local folder is a path without one"
            ) from None


def _protocols(text: str) -> tuple[str, ...]:
    """Of a chain, the outermost first."""
    return tuple(link.split("://")[0].lower() for link in text.split("::"))


def filesystem(url: str) -> tuple[Any, str]:
    """A filesystem of fsspec's that remembers no listing, and the path that the URL has on it.

    Raises whatever the filesystem raises.
    """
    from fsspec.core import url_to_fs

    found, path = url_to_fs(url)
    for each in _chain(found):
        if (listings := getattr(each, "dircache", None)) is not None:
            listings.use_listings_cache = False
            listings.clear()
    return found, str(path).rstrip("/")


def _chain(found: Any) -> list[Any]:  # noqa: ANN401 - fsspec has no types
    """A filesystem and those that it wraps, the innermost last."""
    every = [found]
    while (inner := getattr(every[-1], "fs", None)) is not None:
        every.append(inner)
    return every


def put_is_whole(found: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Whether one put replaces a file as a whole; else it is written aside and moved."""
    protocol = _chain(found)[-1].protocol
    return not _WHOLE.isdisjoint([protocol] if isinstance(protocol, str) else protocol)


def lists_all_at_once(found: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Whether ``find`` asks a service for everything below a path, and raises what that raises.

    That of fsspec itself goes from folder to folder, and leaves out those that it cannot read.
    """
    from fsspec.asyn import AsyncFileSystem

    kind = type(_chain(found)[-1])
    return issubclass(kind, AsyncFileSystem) and kind._find is not AsyncFileSystem._find
