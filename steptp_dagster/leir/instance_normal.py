"""A normal form of an equation and its iteration space: equal ones have equal instances.

The holes of an equation (``instance_forms``) are linear forms over the loop indices, once an index
that only occurs in quotients and remainders is written in digits. Two indices that only occur as
``outer*extent + inner`` are one longer index; a condition on a single index is a shorter one; an
index that nothing uses counts as a factor; order, kinds and names of loops do not count. So the two
sides of a split, a fusion or an exchange have one normal form.

The converse does not hold: different normal forms mean nothing.
"""

from dataclasses import dataclass
from functools import lru_cache

from steptp_dagster.leir.affine import Bounds, Form, Interval, is_opaque, names_in
from steptp_dagster.leir.ast import Access, Equation, Loop
from steptp_dagster.leir.conversion import Converter
from steptp_dagster.leir.formulas import NonNegative, atoms_of, conjunction
from steptp_dagster.leir.instance_forms import Skeleton, form_of
from steptp_dagster.leir.regions import Digits


@dataclass(frozen=True, slots=True)
class Normal:
    """Skeleton, constant parts of holes and conditions, and one column per index.

    The first ``holes`` constants are those of the holes, the others those of conditions that hold
    where they are not negative. A column has the extent of an index that starts at 0, and its
    factor in every hole and condition. ``times`` is how often each instance occurs for indices
    that nothing uses.
    """

    skeleton: Skeleton
    holes: int
    constants: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    times: int


@lru_cache(maxsize=4096)
def normal_form(equation: Equation, loops: tuple[Loop, ...]) -> Normal | None:
    """The normal form of an equation in its loops; None where there is none."""
    if len({loop.index for loop in loops}) < len(loops):
        return None
    form = form_of(equation)
    box = {loop.index: (loop.start, loop.start + loop.extent - 1) for loop in loops}
    converter = Converter(Bounds(box), _no_table)
    rows = [converter.form(hole) for hole in form.holes]
    if any(row is None for row in rows):
        return None
    conditions = conjunction(converter.formula(c) for c in form.conditions)
    for atom in atoms_of(conditions):
        if not isinstance(atom, NonNegative):
            return None
        rows.append(atom.form)
    linear = _linear([row for row in rows if row is not None], box)
    if linear is None:
        return None
    space = _Space(*linear, len(form.holes))
    if not space.simplify():
        return None
    return Normal(
        form.skeleton,
        len(form.holes),
        tuple(space.constants),
        tuple(sorted((extent, *factors) for extent, factors in space.columns)),
        space.times,
    )


def _no_table(access: Access, _converter: Converter) -> Form:
    raise TypeError(f"not index arithmetic: {access.name}")


def _linear(
    rows: list[Form], box: dict[str, Interval]
) -> tuple[list[Form], dict[str, Interval]] | None:
    """The rows over indices alone, with the ranges of these."""
    if any(is_opaque(row) for row in rows):
        return None
    if all(isinstance(atom, str) for row in rows for atom, _ in row.terms):
        return rows, box
    digits = Digits(Bounds(box))
    digits.collect(rows)
    linear = [digits.linear(row) for row in rows]
    used = frozenset(name for row in rows for name in names_in(row))
    rest = {name: span for name, span in box.items() if name not in used}
    made = [row for row in linear if row is not None]
    return (made, {**digits.box, **rest}) if len(made) == len(rows) else None


class _Space:
    """Rows of holes and conditions over indices that start at 0, being simplified."""

    def __init__(self, rows: list[Form], box: dict[str, Interval], holes: int) -> None:
        terms = [dict(row.terms) for row in rows]
        self.constants = [row.const for row in rows]
        self.columns: list[tuple[int, tuple[int, ...]]] = []
        self.times = 1
        self._holes = holes
        for name, (low, high) in box.items():
            factors = tuple([row.get(name, 0) for row in terms])
            self.columns.append((high - low + 1, factors))
            self._shift(factors, low)

    def simplify(self) -> bool:
        """Bring the space into normal form; False where it is empty."""
        while True:
            self._drop()
            if self._merge():
                continue
            row = next(filter(self._on_one_index, self._conditions()), None)
            if row is None:
                return True
            if not self._narrow(row):
                return False

    def _conditions(self) -> range:
        return range(self._holes, len(self.constants))

    def _shift(self, factors: tuple[int, ...], by: int) -> None:
        if by:
            pairs = zip(self.constants, factors, strict=True)
            self.constants = [constant + k * by for constant, k in pairs]

    def _drop(self) -> None:
        """Leave out indices of one value, and count those that nothing uses."""
        kept = []
        for extent, factors in self.columns:
            if not any(factors):
                self.times *= extent
            elif extent > 1:
                kept.append((extent, factors))
        self.columns = sorted(kept)

    def _merge(self) -> bool:
        """Make one index of two that only occur as ``outer*extent + inner``."""
        for i, (extent, factors) in enumerate(self.columns):
            wanted = tuple([k * extent for k in factors])
            for j, (outer, others) in enumerate(self.columns):
                if i != j and others == wanted:
                    left = [c for k, c in enumerate(self.columns) if k not in (i, j)]
                    self.columns = [*left, (outer * extent, factors)]
                    return True
        return False

    def _on_one_index(self, row: int) -> bool:
        return sum(1 for _, factors in self.columns if factors[row]) <= 1

    def _narrow(self, row: int) -> bool:
        """Turn a condition on at most one index into its range; False where nothing is left."""
        constant = self.constants[row]
        place = next((k for k, (_, factors) in enumerate(self.columns) if factors[row]), None)
        if place is None:
            self._forget(row)
            return constant >= 0
        extent, factors = self.columns[place]
        low, high = 0, extent - 1
        if factors[row] > 0:
            low = max(low, -(constant // factors[row]))
        else:
            high = min(high, constant // -factors[row])
        if low > high:
            return False
        self.columns[place] = (high - low + 1, factors)
        self._shift(factors, low)
        self._forget(row)
        return True

    def _forget(self, row: int) -> None:
        del self.constants[row]
        self.columns = [(extent, f[:row] + f[row + 1 :]) for extent, f in self.columns]
