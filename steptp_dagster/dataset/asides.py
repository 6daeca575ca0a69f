"""Names beside a file or folder under which its successor is made before it is moved into place."""

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path


def aside(path: Path) -> Path:
    """A name for this process, hidden beside ``path``; nothing is there.

    What processes of this machine that are gone left under such names is removed.
    """
    prefix = f".{path.name}.{socket.gethostname()}."
    for left in path.parent.glob(f"{_literal(prefix)}*"):
        owner = left.name.removeprefix(prefix).partition(".")[0]
        if owner.isdigit() and (int(owner) == os.getpid() or not _runs(int(owner))):
            remove(left)
    return path.with_name(f"{prefix}{os.getpid()}")


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, where it is and may be removed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _literal(text: str) -> str:
    """For ``glob``: a bracket in a name stands for itself."""
    return "".join(f"[{c}]" if c in "[?*" else c for c in text)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
