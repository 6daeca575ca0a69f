"""The fast dependence test: proofs that two uses never touch one element.

Both uses are equated coordinate by coordinate. Each equation is a linear one over *differences* of
linked indices, and over indices and divisions that only one side has. Equations are solved by
interval propagation, divisibility, and by splitting: where the multiples of the larger
coefficients' gcd lie farther apart than the smaller terms reach, one equation is two. So
``c*64+a`` fixes both ``c`` and ``a`` when ``a`` stays below 64, constant distances come out as
fixed differences, and ``e//4`` with ``e%4`` fixes ``e``.

The test only proves absence. What it leaves open, ``sets.overlap`` decides.
"""

from collections.abc import Mapping, Sequence
from math import gcd

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import (
    Atom,
    Bounds,
    FloorDiv,
    Form,
    Interval,
    Modulo,
    floor_div,
    leaves,
)
from steptp_dagster.leir.sets import Relation

_Key = tuple[str, Atom]  # ("d", atom): difference second - first; ("u" / "w", atom): one side
_Equation = tuple[int, dict[_Key, int]]
_ROUNDS = 6


class _Contradiction(Exception):
    """The equations have no solution."""


def proved_apart(first: Use, second: Use, relations: Sequence[Relation]) -> bool:
    """Whether no instances of the two uses under ``relations`` touch one element, surely.

    False means "not proved". A pair of indices under relation ``*`` is linked without being
    constrained; indices that no relation names are unrelated.
    """
    if first.bounds.empty or second.bounds.empty or _fixed_by_one(first, second, relations):
        return True
    try:
        _Problem(first, second, relations).solve()
    except _Contradiction:
        return True
    return False


def _fixed_by_one(first: Use, second: Use, relations: Sequence[Relation]) -> bool:
    """The frequent case: one equal coordinate alone makes an unequal index equal."""
    still = {a for a, b, how in relations if how == "=" and a == b}
    unequal = {a for a, b, how in relations if how in ("!=", "<", ">") and a == b}
    if not unequal:
        return False
    for mine, other in zip(first.forms, second.forms, strict=True):
        if mine.terms and (mine is other or mine == other):
            moving = [term for term in mine.terms if term[0] not in still]
            if any(atom in unequal for atom, _ in moving) and (
                len(moving) == 1 or _digits(moving, first.bounds.box, second.bounds.box)
            ):
                return True
    return False


def _digits(
    terms: list[tuple[Atom, int]], one: Mapping[str, Interval], other: Mapping[str, Interval]
) -> bool:
    """Whether a sum has each value once, as ``c*4+a`` does where ``a`` takes 4 values."""
    reach = 0
    for _, factor, atom in sorted((abs(k), k, a) for a, k in terms if isinstance(a, str)):
        if abs(factor) <= reach:
            return False
        (low, high), (below, above) = one[atom], other[atom]
        reach += abs(factor) * (max(high, above) - min(low, below))
    return all(isinstance(atom, str) for atom, _ in terms)


class _Problem:
    """The equations of one pair of uses."""

    def __init__(self, first: Use, second: Use, relations: Sequence[Relation]) -> None:
        self.first, self.second = first.bounds, second.bounds
        self.ranges: dict[_Key, Interval] = {}
        self.link = {b: (a, how) for a, b, how in relations}
        self.unequal: list[_Key] = []
        for a, b, how in relations:
            self._difference(a, b, how)
        self.equations: list[_Equation] = []
        for mine, other in zip(first.forms, second.forms, strict=True):
            if mine.terms or other.terms:
                self.equations.append(self._equation(mine, other))
            elif mine.const != other.const:
                raise _Contradiction

    def _difference(self, a: str, b: str, how: str) -> None:
        low, high = self.first.box[a]
        below, above = self.second.box[b]
        least, most = below - high, above - low
        if how == "=":
            if max(low, below) > min(high, above):
                raise _Contradiction
            return
        if how == "<":
            least = max(least, 1)
        elif how == ">":
            most = min(most, -1)
        elif how == "!=":
            self.unequal.append(("d", a))
            if least == most == 0:
                raise _Contradiction
        if least > most:
            raise _Contradiction
        self.ranges["d", a] = (least, most)

    def _equation(self, mine: Form, other: Form) -> _Equation:
        """``other - mine == 0``."""
        terms: dict[_Key, int] = {}
        for atom, k in other.terms:
            for key in self._keys(atom):
                terms[key] = terms.get(key, 0) + k
        for atom, k in mine.terms:
            key = ("u", atom)
            if key not in self.ranges:
                self.ranges[key] = _range(self.first, atom)
            terms[key] = terms.get(key, 0) - k
        return other.const - mine.const, {key: k for key, k in terms.items() if k}

    def _keys(self, atom: Atom) -> tuple[_Key, ...]:
        """The parts that make up an atom of the second use."""
        if isinstance(atom, str):
            if atom in self.link:
                name, how = self.link[atom]
                own: _Key = ("u", name)
                self.ranges.setdefault(own, self.first.box[name])
                return (own,) if how == "=" else (("d", name), own)
        elif isinstance(atom, FloorDiv | Modulo):
            inside = set(leaves(Form(0, ((atom, 1),))))
            if all(isinstance(x, str) and self.link.get(x, ("", ""))[0] == x for x in inside):
                own = ("u", atom)
                low, high = _range(self.first, atom)
                self.ranges.setdefault(own, (low, high))
                if all(self.link[x][1] == "=" for x in inside if isinstance(x, str)):
                    return (own,)
                below, above = _range(self.second, atom)
                self.ranges.setdefault(("d", atom), (below - high, above - low))
                return (("d", atom), own)
        alone: _Key = ("w", atom)
        self.ranges.setdefault(alone, _range(self.second, atom))
        return (alone,)

    def solve(self) -> None:
        """Propagate until nothing changes. Raises _Contradiction where no solution exists."""
        for _ in range(_ROUNDS):
            before = dict(self.ranges)
            pending, self.equations = self.equations, []
            count = len(pending)
            for equation in pending:
                self._reduce(*equation)
            self._join_divisions()
            for key in self.unequal:
                if self.ranges[key] == (0, 0):
                    raise _Contradiction
            if self.ranges == before and len(self.equations) == count:
                return

    def _reduce(self, const: int, terms: dict[_Key, int]) -> None:
        """Simplify one equation and keep what is left of it."""
        left: list[tuple[int, _Key]] = []
        low = high = const
        for key, k in terms.items():
            below, above = self.ranges[key]
            if below == above:
                const += k * below
                low, high = low + k * below, high + k * below
                continue
            left.append((k, key))
            low += k * (below if k > 0 else above)
            high += k * (above if k > 0 else below)
        if low > 0 or high < 0:
            raise _Contradiction
        if not left:
            return
        if const % gcd(*(k for k, _ in left)):
            raise _Contradiction
        for k, key in left:
            self._tighten(k, key, low, high)
        if len(left) == 1:
            return
        left.sort(key=lambda term: -abs(term[0]))
        for cut in range(1, len(left)):
            small = left[cut:]
            least, most = self._reach(small)
            g = gcd(*(k for k, _ in left[:cut]))
            first, last = -((most + const) // g), (-(least + const)) // g
            if first > last:
                raise _Contradiction
            if first == last:  # the large part is first * g, and the small part makes up for it
                self._reduce(-first * g, {key: k for k, key in left[:cut]})
                self._reduce(const + first * g, {key: k for k, key in small})
                return
        self.equations.append((const, {key: k for k, key in left}))

    def _reach(self, terms: list[tuple[int, _Key]]) -> Interval:
        low = high = 0
        for k, key in terms:
            below, above = self.ranges[key]
            low += k * (below if k > 0 else above)
            high += k * (above if k > 0 else below)
        return low, high

    def _tighten(self, k: int, key: _Key, low: int, high: int) -> None:
        """``low..high`` is the interval of the whole left side, ``k*key`` included."""
        below, above = self.ranges[key]
        rest_low = low - k * (below if k > 0 else above)
        rest_high = high - k * (above if k > 0 else below)
        # k * x lies in -rest_high .. -rest_low
        if k > 0:
            least, most = -(rest_high // k), (-rest_low) // k
        else:
            least, most = -((-rest_low) // -k), rest_high // -k
        least, most = max(least, below), min(most, above)
        if least > most:
            raise _Contradiction
        self.ranges[key] = (least, most)

    def _join_divisions(self) -> None:
        """Where ``e//c`` and ``e%c`` differ by fixed amounts, so does ``e``."""
        for (tag, atom), (low, high) in list(self.ranges.items()):
            if tag != "d" or low != high or not isinstance(atom, Modulo):
                continue
            total = low
            known = True
            for part, k in floor_div(atom.inner, atom.divisor, self._hull()).terms:
                below, above = self._delta(part)
                known = known and below == above
                total += k * below * atom.divisor
            if not known:
                continue
            terms: dict[_Key, int] = {}
            for part, k in atom.inner.terms:
                if self._delta(part) != (0, 0):
                    terms["d", part] = k
                    self.ranges.setdefault(("d", part), self._delta(part))
            if any(self.ranges[t][0] != self.ranges[t][1] for t in terms):
                self.equations.append((-total, terms))

    def _delta(self, atom: Atom) -> Interval:
        """The interval of an atom's difference between the two sides."""
        if ("d", atom) in self.ranges:
            return self.ranges["d", atom]
        inside = leaves(Form(0, ((atom, 1),)))
        if all(isinstance(x, str) and self.link.get(x) == (x, "=") for x in inside):
            return 0, 0
        low, high = _range(self.first, atom)
        below, above = _range(self.second, atom)
        return below - high, above - low

    def _hull(self) -> Bounds:
        """Bounds that hold on both sides."""
        box = dict(self.first.box)
        for name, (low, high) in self.second.box.items():
            below, above = box.get(name, (low, high))
            box[name] = (min(low, below), max(high, above))
        return Bounds(box)


def _range(bounds: Bounds, atom: Atom) -> Interval:
    if isinstance(atom, str):
        return bounds.box[atom]
    return bounds.interval(Form(0, ((atom, 1),)))
