"""Splitting LEIR text into tokens.

One regular expression covers every character, so token offsets are running sums of token
lengths, and the whole split runs at the speed of ``re.findall``. The most frequent phrases, loop
headers and annotations spelled without white space, are one token each. Characters that belong to
no token come out as tokens of their own; the parser reports them where they stand.
"""

import re
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from steptp_dagster.leir.dtypes import DTYPES, SCOPES

#: The token that stands, repeated, behind the last one.
END: Final = ""
#: How many END tokens follow, so that a parser may look ahead without testing for the end.
LOOKAHEAD: Final = 10

#: Annotation tokens and what they say: dtype and scope.
ANNOTATIONS: Final[dict[str, tuple[str, str]]] = {
    f"^{{{dtype},{scope}}}": (dtype, scope) for dtype in DTYPES for scope in SCOPES
}

_TOKEN = re.compile(
    rf"""[LPVUB]\^\{{[0-9]+\}}_\{{[a-z]+=[0-9]+\}}
      | \^\{{(?:{"|".join(DTYPES)}),(?:{"|".join(SCOPES)})\}}
      | [A-Za-z][A-Za-z0-9]*(?:_[A-Za-z][A-Za-z0-9]*)*
      | [0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?
      | \^\s*\{{ | _\s*\{{
      | \*\*|//|<=|>=|==|!=
      | \s+
      | .""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_SPACE = re.compile(r"\s", re.ASCII)


_HEADER = re.compile(r"([LPVUB])\^\{([0-9]+)\}_\{([a-z]+)=([0-9]+)\}\Z")


class Header(NamedTuple):
    """The parts of a loop header that is one token, with offsets inside the token."""

    kind: str
    extent: str
    name: str
    start: str
    extent_at: int
    name_at: int
    start_at: int


@lru_cache(maxsize=4096)
def header(token: str) -> Header | None:
    """The parts of a loop header, or None for other tokens."""
    match = _HEADER.match(token)
    if match is None:
        return None
    return Header(match[1], match[2], match[3], match[4], *map(match.start, (2, 3, 4)))


class Tokens(NamedTuple):
    """Token texts, each with the offset of its first character; END tokens at the end."""

    texts: list[str]
    starts: list[int]


def split(text: str) -> Tokens:
    """All tokens of ``text``, white space left out (also inside ``^ {`` and ``_ {``)."""
    texts: list[str] = _TOKEN.findall(text)
    starts = list(accumulate(map(len, texts), initial=0))
    if _SPACE.search(text):
        kept = [(t, s) for t, s in zip(texts, starts, strict=False) if not t.isspace()]
        texts = ["".join(t.split()) for t, _ in kept]
        starts = [s for _, s in kept]
    else:
        starts.pop()
    texts.extend([END] * LOOKAHEAD)
    starts.extend([len(text)] * LOOKAHEAD)
    return Tokens(texts, starts)


_CLOSERS: Final = {"[": "]", "(": ")", "^{": "}", "_{": "}", "{": "}"}


def open_brackets(tokens: Tokens, before: int) -> list[tuple[str, int]]:
    """The brackets left open before token ``before``, outermost first: (closer, offset)."""
    stack: list[tuple[str, int]] = []
    for token, start in zip(tokens.texts[:before], tokens.starts, strict=False):
        closer = _CLOSERS.get(token)
        if closer is not None:
            stack.append((closer, start))
        elif stack and token == stack[-1][0]:
            stack.pop()
    return stack
