"""Conditions over indices as formulas: conjunctions and disjunctions of affine atoms.

A condition that depends on tensor values has no formula; it is ``UNKNOWN``, which may be true or
false. Negation is pushed down to the atoms, so formulas hold no negation: ``f < 0`` is
``-f - 1 >= 0`` over the integers. Atoms may contain opaque values (``affine.Opaque``): the same
value in condition and subscript then stays the same value.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from steptp_dagster.leir.affine import Bounds, Form, add, is_opaque, scale, shift


@dataclass(frozen=True, slots=True)
class NonNegative:
    """``form >= 0``."""

    form: Form


@dataclass(frozen=True, slots=True)
class Zero:
    """``form == 0``."""

    form: Form


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; without parts, true."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds; without parts, false."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """May be true or false: a condition over tensor values."""


Formula = NonNegative | Zero | And | Or | Unknown
TRUE: Final = And(())
FALSE: Final = Or(())
UNKNOWN: Final = Unknown()


def conjunction(parts: Iterable[Formula]) -> Formula:
    """All of ``parts``, flattened."""
    flat: list[Formula] = []
    for part in parts:
        if isinstance(part, And):
            flat.extend(part.parts)
        elif part == FALSE:
            return FALSE
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(parts: Iterable[Formula]) -> Formula:
    """Some of ``parts``, flattened."""
    flat: list[Formula] = []
    for part in parts:
        if isinstance(part, Or):
            flat.extend(part.parts)
        elif part == TRUE:
            return TRUE
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def negation(formula: Formula) -> Formula:
    """The formula that holds exactly where this one does not; unknown stays unknown."""
    match formula:
        case NonNegative(form):
            return NonNegative(shift(scale(form, -1), -1))
        case Zero(form):
            return Or((NonNegative(shift(form, -1)), NonNegative(shift(scale(form, -1), -1))))
        case And(parts):
            return disjunction(negation(p) for p in parts)
        case Or(parts):
            return conjunction(negation(p) for p in parts)
        case Unknown():
            return formula


def simplified(formula: Formula, bounds: Bounds) -> Formula:
    """Decide atoms that the intervals of ``bounds`` decide."""
    match formula:
        case NonNegative(form):
            low, high = bounds.interval(form)
            return TRUE if low >= 0 else FALSE if high < 0 else formula
        case Zero(form):
            low, high = bounds.interval(form)
            if low == high == 0:
                return TRUE
            return FALSE if low > 0 or high < 0 else formula
        case And(parts):
            return conjunction(simplified(p, bounds) for p in parts)
        case Or(parts):
            return disjunction(simplified(p, bounds) for p in parts)
        case Unknown():
            return formula


def comparison(
    op: Literal["<", "<=", ">", ">=", "==", "!="] | str, left: Form, right: Form
) -> Formula:
    """The formula of an integer comparison. Raises ValueError for an unknown operator."""
    match op:
        case "<":
            return NonNegative(shift(add(right, left, -1), -1))
        case "<=":
            return NonNegative(add(right, left, -1))
        case ">":
            return NonNegative(shift(add(left, right, -1), -1))
        case ">=":
            return NonNegative(add(left, right, -1))
        case "==":
            return Zero(add(left, right, -1))
        case "!=":
            return negation(Zero(add(left, right, -1)))
    raise ValueError(f"not a comparison: {op!r}")


def atoms_of(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a conjunction; a formula of another kind is its own only part."""
    return formula.parts if isinstance(formula, And) else (formula,)


def forms_in(formula: Formula) -> Iterator[Form]:
    """The forms of all atoms."""
    match formula:
        case NonNegative(form) | Zero(form):
            yield form
        case And(parts) | Or(parts):
            for part in parts:
                yield from forms_in(part)
        case Unknown():
            return


def depends_on_data(formula: Formula) -> bool:
    """Whether the truth of the formula depends on tensor values."""
    match formula:
        case NonNegative(form) | Zero(form):
            return is_opaque(form)
        case And(parts) | Or(parts):
            return any(depends_on_data(p) for p in parts)
        case Unknown():
            return True


def narrowed(base: Bounds, formula: Formula) -> Bounds:
    """Bounds that also respect the affine conjuncts of ``formula``; ``base`` stays as it is."""
    parts = [p for p in atoms_of(formula) if isinstance(p, NonNegative | Zero)]
    if not parts and formula != FALSE:
        return base
    bounds = Bounds(dict(base.box))
    bounds.clips = dict(base.clips)
    bounds.empty = base.empty or formula == FALSE
    halves: list[Form] = []
    for part in parts:
        halves.append(part.form)
        if isinstance(part, Zero):
            halves.append(scale(part.form, -1))
    for half in halves:
        if half.terms:
            bounds.clip_below(half)
        elif half.const < 0:
            bounds.empty = True
    for _ in range(2):
        for half in halves:
            if not bounds.empty:
                bounds.narrow(half)
    for half in halves:
        low, high = bounds.interval(half)
        if high < 0 or low > high:
            bounds.empty = True
    return bounds
