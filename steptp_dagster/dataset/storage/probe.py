"""Whether a store can be used, asked before anything is built on it."""

import os
import secrets
import threading
from hashlib import blake2b
from pathlib import Path
from typing import Final

from steptp_dagster.dataset.storage import address
from steptp_dagster.dataset.storage.address import BadStorage, shown, words
from steptp_dagster.dataset.storage.mirror import Mirror

#: Seconds within which a store must have answered everything.
LIMIT: Final = 60.0
_WANTED: Final = "it must be there, and files in it may be read, listed, replaced and removed"


def local(text: str, folder: Path) -> Path:
    """A local folder that may be written to, made where it is missing. Raises BadStorage."""
    probe = folder / f".probe-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise BadStorage(f"storage {text!r} may not be written to: {words(error)}") from None
    return folder


def connected(url: str, folder: Path) -> Mirror:
    """The store of a URL, tried out; copies go to a folder of its own in ``folder``.

    Raises BadStorage, within about ``LIMIT`` seconds.
    """
    address.check(url)
    own = folder / blake2b(url.encode(), digest_size=8).hexdigest()
    found: list[Mirror | BadStorage] = []
    # Some filesystems try for many minutes; nothing ends a thread, but nobody waits for it.
    trying = threading.Thread(target=lambda: found.append(_tried(url, own)), daemon=True)
    trying.start()
    trying.join(LIMIT)
    if not found:
        raise BadStorage(f"storage {shown(url)!r} does not answer within {LIMIT:.0f} s; {_WANTED}")
    if isinstance(found[0], BadStorage):
        raise found[0]
    return found[0]


def _tried(url: str, folder: Path) -> Mirror | BadStorage:
    try:
        mirror = Mirror.at(url, folder)
        return _wrong(mirror) or mirror
    # Every filesystem has exceptions of its own.
    except Exception as error:  # noqa: BLE001
        said = f"{type(error).__name__}: {words(error)}"
        return BadStorage(f"storage {shown(url)!r} cannot be used: {said}; {_WANTED}")


def _wrong(mirror: Mirror) -> BadStorage | None:
    """What is wrong with a store that raises nothing."""
    if not mirror.base.strip("/"):
        return BadStorage(f"storage {shown(mirror.url)!r} names no folder or bucket")
    name = f".probe-{secrets.token_hex(8)}"
    remote = f"{mirror.base}/{name}"
    seen = []
    try:
        for content in (b"one", b"another"):
            mirror.write(remote, content)
            seen.append(bytes(mirror.fs.cat_file(remote)) == content)
        seen.append(name in mirror.names(""))
    finally:
        mirror.erase(remote)
    seen.append(name not in mirror.names(""))
    if all(seen):
        return None
    return BadStorage(
        f"storage {shown(mirror.url)!r} cannot be used: it does not show at once what was written"
    )
