"""Messages between processes: JSON with its length in front. Nothing in them is ever executed."""

import json
import os
import select
import struct
from collections.abc import Mapping
from typing import Any, Final

#: Bytes of the length.
HEAD: Final = 8
#: Longest message, in bytes.
LONGEST: Final = 512 * 2**20


def packed(message: Mapping[str, Any]) -> bytes:
    """A message as bytes. Raises TypeError or ValueError for what is no plain data."""
    body = json.dumps(message).encode()
    return struct.pack(">Q", len(body)) + body


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes. Raises OSError where the reader is gone."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Inbox:
    """What has come through a pipe so far."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.closed = False
        self._held = bytearray()

    def receive(self) -> None:
        """Take what is there; notes the end of the pipe."""
        data = os.read(self.fd, 2**20)
        self._held += data
        self.closed = self.closed or not data

    def waiting(self) -> bool:
        """Whether there is something to receive now."""
        return not self.closed and bool(select.select([self.fd], [], [], 0)[0])

    def wait(self, seconds: float | None) -> None:
        """Wait for something to come, at most so long, and take it."""
        if not self.closed and select.select([self.fd], [], [], seconds)[0]:
            self.receive()

    def message(self) -> dict[str, Any] | None:
        """The next whole message, or None. Raises ValueError for what is none."""
        if len(self._held) < HEAD:
            return None
        (length,) = struct.unpack(">Q", self._held[:HEAD])
        if length > LONGEST:
            raise ValueError(f"a message of {length} bytes")
        if len(self._held) < HEAD + length:
            return None
        body = bytes(self._held[HEAD : HEAD + length])
        del self._held[: HEAD + length]
        found = json.loads(body)
        if not isinstance(found, dict):
            raise ValueError("a message that is no mapping")
        return found
