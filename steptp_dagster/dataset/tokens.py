"""Token counts with a named tokenizer: Qwen's, from the vocabulary that dashscope ships.

dashscope is found, not imported (its import takes seconds and does nothing for us).
"""

import base64
import importlib.util
from functools import cache
from pathlib import Path

import tiktoken

#: Name under which counts are published.
NAME = "qwen"
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class NoVocabulary(RuntimeError):
    """The package that ships the vocabulary is not installed, or ships it no more."""


def vocabulary() -> Path:
    """The vocabulary file. Raises NoVocabulary."""
    spec = importlib.util.find_spec("dashscope")
    if spec is None or spec.origin is None:
        raise NoVocabulary("the Qwen vocabulary comes with the package dashscope: install it")
    path = Path(spec.origin).parent / "resources" / "qwen.tiktoken"
    if not path.exists():
        raise NoVocabulary(f"this release of dashscope has no {path.name}")
    return path


@cache
def encoding() -> tiktoken.Encoding:
    """The tokenizer; special tokens are not in it, all text is text."""
    lines = vocabulary().read_bytes().splitlines()
    pairs = (line.split() for line in lines if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding(NAME, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})


def count(text: str) -> int:
    """Number of tokens of a text.

    >>> count("1024")
    4
    """
    return len(encoding().encode(text, disallowed_special=()))
