"""What a wrong candidate would have to say: the one place where it differs from the right step."""

import re
from typing import Final

#: What stands between equations and headers of loops.
_BETWEEN: Final = re.compile(r"[;\[\]]+")


def correction(right: str, wrong: str) -> str | None:
    """The equation or the loops of ``right`` that ``wrong``, otherwise equal, lacks.

    Both are texts in the paper's spelling. None where they differ in more places, or only in
    where something stands.

    >>> correction("B^{4}_{tx=0}[D=A+1;];", "B^{3}_{tx=0}[D=A+1;];")
    'B^{4}_{tx=0}'
    >>> correction("B^{4}_{tx=0}[D=A+1;E=D;];", "B^{4}_{tx=0}[E=D;];")
    'D=A+1'
    >>> correction("B^{4}_{tx=0}[D=A+1;E=D;];", "B^{4}_{tx=0}[E=D;D=A+1;];") is None
    True
    """
    ours, theirs = (_BETWEEN.split(text) for text in (right, wrong))
    start = _agreeing(ours, theirs)
    rest = min(len(ours), len(theirs)) - start
    end = min(_agreeing(ours[::-1], theirs[::-1]), rest)
    lacking, instead = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    return lacking[0] if len(lacking) == 1 and len(instead) <= 1 else None


def _agreeing(a: list[str], b: list[str]) -> int:
    """How many pieces agree from the start."""
    return next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
