"""Decimal literals: one exact value, one spelling.

A literal is kept as decimal text, never as a binary float, so nothing is lost when it passes
through. Its canonical text is the shortest of the plain spelling ``d.d`` (a digit on both sides
of the point) and the scientific one ``dEn`` with an integer mantissa and ``e`` for ``E``; on a
tie the plain one. Signs are not part of a literal: ``-3`` is unary minus on ``3``.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

#: Longest accepted spelling of a number, in characters.
MAX_DIGITS: Final = 400

_DECIMAL = re.compile(r"([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?\Z")


@lru_cache(maxsize=4096)
def shortest(text: str) -> str:
    """The canonical spelling of an unsigned decimal literal.

    >>> shortest("1."), shortest("0.50"), shortest("1.0E-05"), shortest("100.0")
    ('1.0', '0.5', '1e-5', '1e2')

    Raises ValueError for text that is no unsigned number, and for values that binary64 turns
    into infinity or, though not zero, into zero.
    """
    match = _DECIMAL.match(text)
    if match is None or len(text) > MAX_DIGITS:
        raise ValueError(f"not an unsigned decimal literal of at most {MAX_DIGITS} characters")
    whole, fraction, power = match[1], match[2] or "", int(match[3] or 0)
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0.0"
    exponent = power - len(fraction) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    scientific = f"{digits}e{exponent}"
    if float(scientific) in (0.0, float("inf")):
        raise ValueError("beyond the range of binary64")
    if abs(exponent) > len(scientific) + len(digits):
        return scientific
    plain = _plain(digits, exponent)
    return plain if len(plain) <= len(scientific) else scientific


def _plain(digits: str, exponent: int) -> str:
    """``digits * 10**exponent`` with a point and a digit on both sides of it."""
    if exponent >= 0:
        return f"{digits}{'0' * exponent}.0"
    padded = digits.rjust(1 - exponent, "0")
    return f"{padded[:exponent]}.{padded[exponent:]}"


def spell(value: float | Decimal) -> str:
    """The canonical spelling of a finite, non-negative number, exact for ``Decimal``.

    A float is spelled by the shortest decimal text that reads back as the same binary64 value.
    Raises ValueError for negative or non-finite values.

    >>> spell(0.1), spell(1e-5), spell(3.0)
    ('0.1', '1e-5', '3.0')
    """
    return shortest(repr(value) if isinstance(value, float) else f"{value}")
