"""Derivations from both programs, and arithmetic on the numbers that other facts hold."""

from collections.abc import Mapping
from math import prod
from typing import Final

from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, equations, expressions
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    integer_of,
    statement_at,
)
from steptp_dagster.reasoning.properties import cost
from steptp_dagster.strategies.facts import Value


def _divisor(value: Value) -> int:
    divisor = integer_of(value)
    if divisor < 1:
        raise DerivationError(f"not a positive divisor: {divisor}")
    return divisor


def divides(_: SignedProgram, __: SignedProgram, n: Value, f: Value) -> bool:
    """Whether ``f`` divides ``n`` without remainder."""
    return integer_of(n) % _divisor(f) == 0


def product(_: SignedProgram, __: SignedProgram, *numbers: Value) -> int:
    """The product of the numbers."""
    return prod(integer_of(n) for n in numbers)


def quotient(_: SignedProgram, __: SignedProgram, n: Value, f: Value) -> int:
    """``n // f``."""
    return integer_of(n) // _divisor(f)


def remainder(_: SignedProgram, __: SignedProgram, n: Value, f: Value) -> int:
    """``n % f``."""
    return integer_of(n) % _divisor(f)


def at_most(_: SignedProgram, __: SignedProgram, n: Value, limit: Value) -> bool:
    """Whether ``n`` does not exceed ``limit``."""
    return integer_of(n) <= integer_of(limit)


def changed_nests(
    before: SignedProgram, after: SignedProgram
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Paths of the top-level nests that went, and of those that came.

    The longest common prefix of equal nests is taken off first, then the longest suffix.
    """
    old, new = list(before.program.nests), list(after.program.nests)
    first = 0
    while old and new and old[0] == new[0]:
        old, new, first = old[1:], new[1:], first + 1
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return (
        tuple((first + i,) for i in range(len(old))),
        tuple((first + i,) for i in range(len(new))),
    )


def _tensors(signed: SignedProgram) -> tuple[str, ...]:
    found = (
        access.name
        for located in equations(signed.program)
        for expr in expressions(located.equation)
        for access in accesses_in(expr)
    )
    return tuple(dict.fromkeys(found))


def new_tensors(before: SignedProgram, after: SignedProgram) -> tuple[str, ...]:
    """Tensors that occur only after the step, by first occurrence."""
    known = set(_tensors(before)) | set(before.signature.by_name)
    return tuple(name for name in _tensors(after) if name not in known)


def removed_tensors(before: SignedProgram, after: SignedProgram) -> tuple[str, ...]:
    """Tensors that occur only before the step, by first occurrence."""
    left = set(_tensors(after))
    return tuple(name for name in _tensors(before) if name not in left)


def same_signature(before: SignedProgram, after: SignedProgram) -> bool:
    """Whether both programs have the same known variables."""
    return before.signature == after.signature


def same_text(before: SignedProgram, after: SignedProgram, old: Value, new: Value) -> bool:
    """Whether the statement at ``old`` before equals the one at ``new`` after the step."""
    return statement_at(before, old) == statement_at(after, new)


def cost_change(before: SignedProgram, after: SignedProgram, figure: Value) -> int:
    """A cost figure after the step minus the one before it."""
    return cost(after, figure) - cost(before, figure)


KINDS: Final[Mapping[str, Derivation]] = {
    f.__name__: f
    for f in (
        divides,
        product,
        quotient,
        remainder,
        at_most,
        changed_nests,
        new_tensors,
        removed_tensors,
        same_signature,
        same_text,
        cost_change,
    )
}
