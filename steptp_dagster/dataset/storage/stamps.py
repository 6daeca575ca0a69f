"""Whether a copy is what the store has: what a filesystem tells of a file, as one text."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, Self

#: What is told of a file and says nothing of its content.
_APART: Final = frozenset(
    ("name", "Key", "atime", "time", "last_access_time", "accessTime", "nlink", "islink")
)
#: Names under which services tell of a tag that is another for every content.
_TAGS: Final = ("ETag", "etag", "generation", "md5Hash")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was told of a file: another text where the file is another.

    It is ``sharp`` if that is so even of files that were written in the same second.
    """

    text: str
    sharp: bool
    tag: str = ""

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Self:
        """From what ``info`` of a filesystem gives."""
        told = {name: value for name, value in sorted(info.items()) if name not in _APART}
        text = blake2b(repr(sorted(map(repr, told.items()))).encode(), digest_size=16).hexdigest()
        tag = next((str(told[name]).strip('"') for name in _TAGS if told.get(name)), "")
        return cls(text, bool(tag) or any(map(_fine, told.values())), tag)


def _fine(value: object) -> bool:
    """Whether a value is a time with parts of a second."""
    if isinstance(value, datetime):
        return value.microsecond != 0
    return isinstance(value, float) and not value.is_integer()
