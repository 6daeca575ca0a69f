"""Quasi-affine forms of integer expressions: sums of indices, floor divisions and remainders.

A ``Form`` is ``const + sum(coefficient * atom)``. Atoms are loop indices (plain strings), floor
divisions and remainders of forms by positive constants, and *opaque* values (a value read from a
tensor, a product of indices) of which only an interval is known. Forms are kept in one normal
order, and divisions are simplified where intervals prove it, so that equal forms mean equal
values; the converse does not hold.

``Bounds`` gives intervals under a path condition: a box of index ranges, narrowed by the
condition's affine parts, and *clips*, intervals of whole sums such as the ``c*4+a`` of a guard.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """``inner // divisor``, rounding down; the divisor is positive."""

    inner: "Form"
    divisor: int


@dataclass(frozen=True, slots=True)
class Modulo:
    """``inner % divisor`` with a result in 0 .. divisor - 1."""

    inner: "Form"
    divisor: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value known only by its interval. Within one statement instance equal keys are equal."""

    key: str
    low: int
    high: int


Atom = str | FloorDiv | Modulo | Opaque
Terms = tuple[tuple[Atom, int], ...]


class Form(NamedTuple):
    """``const + sum(coefficient * atom)``; terms in normal order, no zero coefficients."""

    const: int
    terms: Terms = ()

    @property
    def is_constant(self) -> bool:
        """Whether the form has no atoms."""
        return not self.terms


ZERO: Final = Form(0)
#: Larger forms are replaced by opaque values. (Tables of tables can double a form at each step.)
MAX_LEAVES: Final = 64


def atom_key(atom: Atom) -> str:
    """The text by which atoms are ordered; equal exactly for equal atoms."""
    if isinstance(atom, str):
        return atom
    if isinstance(atom, Opaque):
        return f"?{atom.key}"
    sign = "//" if isinstance(atom, FloorDiv) else "%"
    return f"({form_text(atom.inner)}){sign}{atom.divisor}"


def form_text(form: Form) -> str:
    """The form as text for people and for ordering, such as ``c*4+a+1``."""
    parts = [
        key if factor == 1 else f"{key}*{factor}" if factor > 0 else f"-{key}*{-factor}"
        for key, factor in ((atom_key(a), k) for a, k in form.terms)
    ]
    if form.const or not parts:
        parts.append(str(form.const))
    return "+".join(parts).replace("+-", "-")


@lru_cache(maxsize=1024)
def index(name: str) -> Form:
    """The form of a loop index."""
    return Form(0, ((name, 1),))


def _from_dict(const: int, terms: Mapping[Atom, int]) -> Form:
    kept = [(a, k) for a, k in terms.items() if k]
    if len(kept) > 1:
        kept.sort(key=lambda term: atom_key(term[0]))
    return Form(const, tuple(kept))


def add(left: Form, right: Form, factor: int = 1) -> Form:
    """``left + factor * right``."""
    if not right.terms or not factor:
        return Form(left.const + factor * right.const, left.terms)
    if not left.terms and factor == 1:
        return Form(left.const + right.const, right.terms)
    terms = dict(left.terms)
    for atom, k in right.terms:
        terms[atom] = terms.get(atom, 0) + factor * k
    return _from_dict(left.const + factor * right.const, terms)


def scale(form: Form, factor: int) -> Form:
    """``factor * form``."""
    if factor == 1:
        return form
    if factor == 0:
        return ZERO
    return Form(form.const * factor, tuple((a, k * factor) for a, k in form.terms))


def shift(form: Form, by: int) -> Form:
    """``form + by``."""
    return Form(form.const + by, form.terms) if by else form


class Bounds:
    """Intervals of forms where indices lie in a box and some sums are clipped.

    ``box`` maps index names to inclusive intervals; ``clips`` maps the terms of a form (without
    its constant) to an inclusive interval, either end of which may be None.
    """

    __slots__ = ("box", "clips", "empty")

    def __init__(self, box: dict[str, Interval]) -> None:
        self.box = box
        self.clips: dict[Terms, tuple[int | None, int | None]] = {}
        self.empty = False

    def interval(self, form: Form) -> Interval:
        """An interval that holds every value of the form; exact for sums of distinct indices."""
        low, high = self._sum(form)
        if self.clips and form.terms:
            clip = self.clips.get(form.terms)
            if clip is not None:
                below_, above_ = clip
                low = low if below_ is None else max(low, below_ + form.const)
                high = high if above_ is None else min(high, above_ + form.const)
            clip = self.clips.get(tuple((a, -k) for a, k in form.terms))
            if clip is not None:
                below_, above_ = clip
                low = low if above_ is None else max(low, form.const - above_)
                high = high if below_ is None else min(high, form.const - below_)
        return low, high

    def tight(self, form: Form) -> Interval:
        """As ``interval``, with clips of a part of the sum, such as ``c*4+a`` in ``c*4+a+d``."""
        low, high = self.interval(form)
        terms = dict(form.terms)
        for clipped, (least, most) in self.clips.items():
            for sign in (1, -1):
                if len(clipped) < 2 or any(terms.get(a) != sign * k for a, k in clipped):
                    continue
                below, above = (least, most) if sign > 0 else (most, least)
                inside = {a for a, _ in clipped}
                rest = Form(form.const, tuple(t for t in form.terms if t[0] not in inside))
                first, last = self._sum(rest)
                low = low if below is None else max(low, first + sign * below)
                high = high if above is None else min(high, last + sign * above)
        return low, high

    def _sum(self, form: Form) -> Interval:
        """The interval that the atoms' own intervals give, clips of the sum left out."""
        low = high = form.const
        for atom, k in form.terms:
            below, above = self.box[atom] if isinstance(atom, str) else self._atom(atom)
            if k > 0:
                low += k * below
                high += k * above
            else:
                low += k * above
                high += k * below
        return low, high

    def _atom(self, atom: FloorDiv | Modulo | Opaque) -> Interval:
        if isinstance(atom, Opaque):
            low, high = atom.low, atom.high
        else:
            inner_low, inner_high = self.interval(atom.inner)
            low, high = inner_low // atom.divisor, inner_high // atom.divisor
            if isinstance(atom, Modulo):
                if low == high:
                    low, high = inner_low % atom.divisor, inner_high % atom.divisor
                else:
                    low, high = 0, atom.divisor - 1
        if self.clips:
            clip = self.clips.get(((atom, 1),))
            if clip is not None:
                low = low if clip[0] is None else max(low, clip[0])
                high = high if clip[1] is None else min(high, clip[1])
        return low, high

    def clip_below(self, form: Form) -> None:
        """Take ``form >= 0`` into account."""
        low, high = self.clips.get(form.terms, (None, None))
        bound = -form.const
        self.clips[form.terms] = (bound if low is None else max(low, bound), high)

    def narrow(self, form: Form) -> None:
        """Narrow the box by ``form >= 0`` (one step of bound propagation per index)."""
        low, high = self._sum(form)
        if high < 0:
            self.empty = True
            return
        if low >= 0:
            return
        for atom, k in form.terms:
            if not isinstance(atom, str):
                continue
            below, above = self.box[atom]
            # k*atom >= -(the largest value of the rest)
            rest = high - (k * above if k > 0 else k * below)
            if k > 0:
                below = max(below, -(rest // k))
            else:
                above = min(above, rest // -k)
            if below > above:
                self.empty = True
                return
            self.box[atom] = (below, above)


def floor_div(form: Form, divisor: int, bounds: Bounds) -> Form:
    """``form // divisor`` for a positive divisor, simplified where intervals prove it."""
    return _divide(form, divisor, bounds)[0]


def modulo(form: Form, divisor: int, bounds: Bounds) -> Form:
    """``form % divisor`` for a positive divisor, simplified where intervals prove it."""
    return _divide(form, divisor, bounds)[1]


def _divide(form: Form, divisor: int, bounds: Bounds) -> tuple[Form, Form]:
    """Quotient and remainder of a form by a positive divisor."""
    whole = Form(
        form.const // divisor, tuple((a, k // divisor) for a, k in form.terms if k % divisor == 0)
    )
    rest = Form(form.const % divisor, tuple((a, k) for a, k in form.terms if k % divisor))
    low, high = bounds.interval(rest)
    if low // divisor == high // divisor:
        k = low // divisor
        return shift(whole, k), shift(rest, -k * divisor)
    # (a*4+c)//8 with 0 <= c < 4 is a//2, and the remainder is (a%2)*4+c
    for factor in sorted({gcd(divisor, k) for _, k in rest.terms}, reverse=True):
        if factor == 1:
            continue
        fine = Form(rest.const % factor, tuple((a, k) for a, k in rest.terms if k % factor))
        low, high = bounds.interval(fine)
        if low >= 0 and high < factor:
            coarse = Form(
                rest.const // factor,
                tuple((a, k // factor) for a, k in rest.terms if k % factor == 0),
            )
            quotient, remainder = _divide(coarse, divisor // factor, bounds)
            return add(whole, quotient), add(fine, remainder, factor)
    if len(rest.terms) == 1 and rest.terms[0][1] == 1:
        atom = rest.terms[0][0]
        if isinstance(atom, FloorDiv):
            inner = shift(atom.inner, rest.const * atom.divisor)
            quotient = floor_div(inner, atom.divisor * divisor, bounds)
            return add(whole, quotient), Form(0, ((Modulo(rest, divisor), 1),))
        if isinstance(atom, Modulo) and atom.divisor % divisor == 0:
            remainder = modulo(shift(atom.inner, rest.const), divisor, bounds)
            return add(whole, Form(0, ((FloorDiv(rest, divisor), 1),))), remainder
    return (
        add(whole, Form(0, ((FloorDiv(rest, divisor), 1),))),
        Form(0, ((Modulo(rest, divisor), 1),)),
    )


def leaves(form: Form) -> Iterator[str | Opaque]:
    """The indices and opaque values in a form, those inside divisions included."""
    for atom, _ in form.terms:
        if isinstance(atom, FloorDiv | Modulo):
            yield from leaves(atom.inner)
        else:
            yield atom


def is_large(form: Form) -> bool:
    """Whether a form has more than ``MAX_LEAVES`` leaves; such forms are not worth keeping."""
    return any(i >= MAX_LEAVES for i, _ in enumerate(leaves(form)))


def names_in(form: Form) -> frozenset[str]:
    """The loop indices that occur in a form."""
    return frozenset(leaf for leaf in leaves(form) if isinstance(leaf, str))


def is_opaque(form: Form) -> bool:
    """Whether the form contains a value of which only an interval is known."""
    return any(isinstance(leaf, Opaque) for leaf in leaves(form))


def value_at(form: Form, point: Mapping[str, int]) -> int | None:
    """The value of a form where its indices have the given values; None with opaque values."""
    total = form.const
    for atom, k in form.terms:
        if isinstance(atom, str):
            total += k * point[atom]
            continue
        inner = None if isinstance(atom, Opaque) else value_at(atom.inner, point)
        if inner is None or isinstance(atom, Opaque):
            return None
        divided = inner // atom.divisor if isinstance(atom, FloorDiv) else inner % atom.divisor
        total += k * divided
    return total


def substitute(form: Form, by: Mapping[str, Form], bounds: Bounds) -> Form:
    """Replace indices by forms; ``bounds`` must hold the indices of the result."""
    result = Form(form.const)
    for atom, k in form.terms:
        if isinstance(atom, str):
            new = by.get(atom)
            result = add(result, index(atom) if new is None else new, k)
        elif isinstance(atom, Opaque):
            result = add(result, Form(0, ((atom, 1),)), k)
        else:
            inner = substitute(atom.inner, by, bounds)
            divide = floor_div if isinstance(atom, FloorDiv) else modulo
            result = add(result, divide(inner, atom.divisor, bounds), k)
    return result
