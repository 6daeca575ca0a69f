"""Boxes that a write fills completely: the fast half of coverage and of unwritten reads.

A region says where a write goes while some loops stand still (the *fixed* indices) and its other
loops run: per coordinate a form over the fixed indices plus a full integer interval. It exists
only where that is exact: every coordinate dense, coordinates independent, conditions of a simple
shape. Everything else is left to isl (``sets.py``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import (
    Atom,
    Bounds,
    FloorDiv,
    Form,
    Interval,
    Modulo,
    Opaque,
    Terms,
    add,
    leaves,
    names_in,
    scale,
)
from steptp_dagster.leir.formulas import (
    TRUE,
    Formula,
    NonNegative,
    Zero,
    atoms_of,
    simplified,
)


@dataclass(frozen=True, slots=True)
class Range:
    """``base + low .. base + high``, cut to ``floor .. ceiling`` where these are given."""

    base: Form
    low: int
    high: int
    floor: int | None = None
    ceiling: int | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """A product of ranges, written whenever the conditions in ``needs`` hold."""

    ranges: tuple[Range, ...]
    needs: tuple[Formula, ...]


class Digits:
    """Index values written in mixed radix, so that ``a//4`` and ``a%4`` are independent.

    ``cuts`` holds for each index the divisors that occur; each must divide the next one and the
    last one the extent, and the index must start at 0.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._cuts: dict[str, list[int]] = {}
        self.box: dict[str, Interval] = {}
        self.valid = True

    def collect(self, forms: Iterable[Form]) -> None:
        """Note the divisors in ``forms``; afterwards ``linear`` may be called."""
        cuts: dict[str, set[int]] = {}
        for form in forms:
            for atom, _ in form.terms:
                if not isinstance(atom, str):
                    self._divisors(atom, cuts)
        for name, found in sorted(cuts.items()):
            low, high = self._bounds.box[name]
            chain = sorted(found - {1})
            extent = high + 1
            steps = [*chain, extent]
            if low != 0 or any(b % a for a, b in pairwise(steps)):
                self.valid = False
                return
            self._cuts[name] = [c for c in chain if c < extent]

    def _divisors(self, atom: FloorDiv | Modulo | Opaque, cuts: dict[str, set[int]]) -> None:
        where = _digits_of(atom)
        if where is None:
            self.valid = False
            return
        name, low, high = where
        cuts.setdefault(name, set()).update((low,) if high is None else (low, high))

    def linear(self, form: Form) -> Form | None:
        """The form over digits, or None."""
        if not self.valid:
            return None
        result = Form(form.const)
        for atom, k in form.terms:
            if isinstance(atom, str):
                name, low, high = atom, 1, None
            else:
                where = _digits_of(atom)
                if where is None:
                    return None
                name, low, high = where
            result = add(result, self._expand(name, low, high), k)
        return result

    def _expand(self, name: str, low: int, high: int | None) -> Form:
        """``(name % high) // low`` as a sum of digits."""
        first, last = self._bounds.box[name]
        cuts = self._cuts.get(name)
        if not cuts:
            self.box[name] = (first, last)
            return Form(0, ((name, 1),))
        weights = [1, *cuts]
        ends = [*cuts, last + 1]
        terms = []
        for weight, end in zip(weights, ends, strict=True):
            digit = f"{name}@{weight}"
            self.box[digit] = (0, end // weight - 1)
            if weight >= low and (high is None or weight < high):
                terms.append((digit, weight // low))
        return add(Form(0), Form(0, tuple(terms)))


def _digits_of(atom: FloorDiv | Modulo | Opaque) -> tuple[str, int, int | None] | None:
    """(index, low, high) where the atom is ``(index % high) // low``; None for other atoms."""
    if isinstance(atom, Opaque) or atom.inner.const or len(atom.inner.terms) != 1:
        return None
    inner, factor = atom.inner.terms[0]
    if factor != 1:
        return None
    if isinstance(inner, str):
        if isinstance(atom, FloorDiv):
            return inner, atom.divisor, None
        return inner, 1, atom.divisor
    deeper = _digits_of(inner)
    if deeper is None:
        return None
    name, low, high = deeper
    if isinstance(atom, FloorDiv):
        return name, low * atom.divisor, high
    if high is not None and low * atom.divisor > high:
        return None
    return name, low, low * atom.divisor


def dense(terms: Terms, box: Mapping[str, Interval]) -> bool:
    """Whether a sum of distinct indices takes every integer between its extremes."""
    reach = 0
    for factor, span in sorted(
        (abs(k), box[a][1] - box[a][0]) for a, k in terms if isinstance(a, str)
    ):
        if span == 0:
            continue
        if factor > reach + 1:
            return False
        reach += factor * span
    return all(isinstance(a, str) for a, _ in terms)


def single_index(form: Form) -> bool:
    """Whether a form is ``k*index + const``."""
    return len(form.terms) == 1 and isinstance(form.terms[0][0], str)


def region(use: Use, fixed: frozenset[str]) -> Region | None:
    """Where a write goes while the indices in ``fixed`` stand still; None if that is no region."""
    if use.regions is None:
        use.regions = {}
    if fixed not in use.regions:
        use.regions[fixed] = _whole_region(use, fixed)
    return use.regions[fixed]


def _whole_region(use: Use, fixed: frozenset[str]) -> Region | None:
    bounds = use.statement.bounds
    split = [_split(form, fixed) for form in use.forms]
    if any(part is None for part in split):
        return None
    parts = [part for part in split if part is not None]
    limits: dict[Terms, list[int | None]] = {}
    needs: list[Formula] = []
    narrow: list[Form] = []
    aside: list[Form] = []
    if not use.always:
        for part in atoms_of(use.formula):
            if not isinstance(part, NonNegative | Zero):
                return None
            form = part.form
            if all(isinstance(leaf, str) and leaf in fixed for leaf in leaves(form)):
                needs.append(part)
                continue
            halves = [form, scale(form, -1)] if isinstance(part, Zero) else [form]
            for half in halves:
                if single_index(half):
                    narrow.append(half)
                elif not _limit(half, use.forms, limits):
                    if isinstance(part, Zero):
                        return None
                    aside.append(half)
    if narrow:
        bounds = Bounds(dict(bounds.box))
        for half in narrow:
            bounds.narrow(half)
        if bounds.empty:
            return None
    if aside and not _met_aside(aside, parts, fixed, bounds):
        return None
    return _region(use.forms, parts, bounds, limits, tuple(needs))


def _met_aside(
    aside: list[Form], parts: list[tuple[Form, Form]], fixed: frozenset[str], bounds: Bounds
) -> bool:
    """Whether conditions hold for some values of indices that no coordinate uses.

    Such a condition (the guard of a reduction tile) takes nothing away from the region if it holds
    for these values wherever the other indices stand.
    """
    taken = set(fixed).union(*(names_in(moving) for _, moving in parts))
    for form in aside:
        least = form.const
        for atom, k in form.terms:
            if not isinstance(atom, str):
                return False
            low, high = bounds.box[atom]
            smallest = (atom in taken) == (k > 0)
            least += k * (low if smallest else high)
        if least < 0:
            return False
        taken.update(names_in(form))
    return True


def _limit(half: Form, forms: Iterable[Form], limits: dict[Terms, list[int | None]]) -> bool:
    """Turn ``half >= 0`` into a bound of a coordinate; False where no coordinate matches."""
    negated = tuple((a, -k) for a, k in half.terms)
    for form in forms:
        ends = limits.setdefault(form.terms, [None, None])
        if form.terms == half.terms:
            bound = form.const - half.const
            ends[0] = bound if ends[0] is None else max(ends[0], bound)
            return True
        if form.terms == negated:
            bound = form.const + half.const
            ends[1] = bound if ends[1] is None else min(ends[1], bound)
            return True
    return False


def _region(
    forms: tuple[Form, ...],
    parts: list[tuple[Form, Form]],
    bounds: Bounds,
    limits: dict[Terms, list[int | None]],
    needs: tuple[Formula, ...],
) -> Region | None:
    own = [part[1] for part in parts]
    box: Mapping[str, Interval] = bounds.box
    if any(not isinstance(a, str) for form in own for a, _ in form.terms):
        digits = Digits(bounds)
        digits.collect(own)
        expanded = [digits.linear(form) for form in own]
        if any(form is None for form in expanded):
            return None
        own, box = [form for form in expanded if form is not None], digits.box
    seen: set[object] = set()
    ranges = []
    for form, (base, _), moving in zip(forms, parts, own, strict=True):
        if not dense(moving.terms, box):
            return None
        low = high = moving.const
        for atom, k in moving.terms:
            if not isinstance(atom, str):
                return None
            first, last = box[atom]
            if first != last and atom in seen:
                return None
            seen.add(atom)
            low += min(k * first, k * last)
            high += max(k * first, k * last)
        floor, ceiling = limits.get(form.terms, (None, None))
        if floor is not None or ceiling is not None:
            # limits hold for all coordinates with these terms; they differ by a constant
            same = [f for f in forms if f.terms == form.terms]
            if len(same) > 1:
                return None
        ranges.append(Range(base, low, high, floor, ceiling))
    return Region(tuple(ranges), needs)


def _split(form: Form, fixed: frozenset[str]) -> tuple[Form, Form] | None:
    """The part over fixed indices and the rest; None where a division mixes them."""
    still: list[tuple[Atom, int]] = []
    moving: list[tuple[Atom, int]] = []
    if not fixed and all(isinstance(atom, str) for atom, _ in form.terms):
        return Form(form.const), Form(0, form.terms)
    for atom, k in form.terms:
        if isinstance(atom, str):
            (still if atom in fixed else moving).append((atom, k))
            continue
        inside = list(leaves(Form(0, ((atom, 1),))))
        if any(isinstance(leaf, Opaque) for leaf in inside):
            return None
        known = [leaf in fixed for leaf in inside if isinstance(leaf, str)]
        if all(known):
            still.append((atom, k))
        elif any(known):
            return None
        else:
            moving.append((atom, k))
    return Form(form.const, tuple(still)), Form(0, tuple(moving))


def covers(written: Region, reader: Use) -> bool:
    """Whether every element that ``reader`` touches lies in the region (sufficient test)."""
    bounds = reader.bounds
    if bounds.empty:
        return True
    if written.needs:
        present = atoms_of(reader.formula)
        for need in written.needs:
            if need not in present and simplified(need, bounds) != TRUE:
                return False
    for wanted, form in zip(written.ranges, reader.forms, strict=True):
        low, high = bounds.interval(add(form, wanted.base, -1))
        if low < wanted.low or high > wanted.high:
            return False
        if wanted.floor is not None or wanted.ceiling is not None:
            low, high = bounds.interval(form)
            if wanted.floor is not None and low < wanted.floor:
                return False
            if wanted.ceiling is not None and high > wanted.ceiling:
                return False
    return True


def box_of(written: Region) -> tuple[Interval, ...] | None:
    """The region as plain intervals, where nothing is fixed; None where it is empty."""
    box = []
    for r in written.ranges:
        low, high = r.base.const + r.low, r.base.const + r.high
        low = low if r.floor is None else max(low, r.floor)
        high = high if r.ceiling is None else min(high, r.ceiling)
        if low > high:
            return None
        box.append((low, high))
    return tuple(box)


def boxes_cover(boxes: Iterable[tuple[Interval, ...]], whole: tuple[Interval, ...]) -> bool:
    """Whether the union of ``boxes`` contains the box ``whole``."""
    left = [whole]
    for box in boxes:
        left = [rest for piece in left for rest in _without(piece, box)]
        if not left:
            return True
    return not left


def _without(piece: tuple[Interval, ...], box: tuple[Interval, ...]) -> list[tuple[Interval, ...]]:
    """``piece`` minus ``box``, as disjoint boxes."""
    overlap = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(piece, box, strict=True)]
    if any(low > high for low, high in overlap):
        return [piece]
    rest = []
    current = list(piece)
    for i, (low, high) in enumerate(overlap):
        first, last = current[i]
        if first < low:
            rest.append((*current[:i], (first, low - 1), *current[i + 1 :]))
        if last > high:
            rest.append((*current[:i], (high + 1, last), *current[i + 1 :]))
        current[i] = (low, high)
    return rest
