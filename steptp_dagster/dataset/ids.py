"""Identity by content: ids are BLAKE2b digests of canonical JSON, so any process finds the same."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

#: Length of an id in hexadecimal digits.
ID_LENGTH = 32


def canonical_json(value: Json) -> str:
    """The one JSON text of a value: sorted keys, no spaces, non-ASCII kept, NaN refused.

    >>> canonical_json({"b": [1, 2.5], "a": "×"})
    '{"a":"×","b":[1,2.5]}'
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(kind: str, *parts: Json) -> str:
    """An id of 32 hexadecimal digits; ``kind`` keeps ids of different nouns apart.

    >>> digest("step", "a", 1) == digest("step", "a", 1)
    True
    >>> digest("step", "a", 1) == digest("record", "a", 1)
    False
    """
    text = canonical_json([kind, *parts])
    return blake2b(text.encode(), digest_size=ID_LENGTH // 2).hexdigest()


def source_id(
    program: str, code_hash: str, dtype: str, shapes: Mapping[str, int], seed: int, form: str
) -> str:
    """The id of one source program at one shape sample and dtype, in one form."""
    return digest("source", program, code_hash, dtype, dict(shapes), seed, form)


def step_id(
    source: str, parent: str, strategy: str, version: str, path: Sequence[int], parameters: Json
) -> str:
    """The id of a strategy applied at a site of a LEIR program that came from a source."""
    return digest("step", source, parent, strategy, version, list(path), parameters)


def record_id(steps: Sequence[str], task: str, contents: Sequence[str]) -> str:
    """The id of a training record: which steps it shows, for which task, in which words."""
    return digest("record", list(steps), task, list(contents))


def rank(seed: int, *parts: Json) -> str:
    """A key that orders things evenly and always alike, for choosing among them."""
    return digest("rank", seed, *parts)
