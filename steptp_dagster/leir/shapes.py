"""Shapes of all tensors: declared for known variables, inferred for the others.

An intermediate is as large as its writes demand: per dimension the largest subscript over all
writes that can happen, plus 1. ``l`` and ``s`` tensors have the shape of one instance.
"""

from collections.abc import Mapping

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Use
from steptp_dagster.leir.affine import (
    Atom,
    FloorDiv,
    Form,
    Interval,
    Modulo,
    Opaque,
    Terms,
    names_in,
    value_at,
)
from steptp_dagster.leir.formulas import Formula, NonNegative, Zero, atoms_of
from steptp_dagster.leir.nest_memory import Extents
from steptp_dagster.leir.regions import dense, single_index
from steptp_dagster.leir.signature import SignedProgram

Shape = tuple[int, ...]


def infer_shapes(signed: SignedProgram) -> dict[str, Shape]:
    """Shape in elements of every tensor of the signature and the program, sorted by name.

    Exact where subscripts and guards are quasi-affine. Where a subscript is read from a tensor,
    its known value range counts; a tensor that is never written has extent 1 everywhere. Ranks
    follow the first write (the first use where there is none), so that programs with conflicting
    ranks have shapes too.
    """
    from steptp_dagster.leir.analysis import Analysis

    return Analysis.of(signed).shapes


def shapes_of(accesses: Accesses) -> dict[str, Shape]:
    """The shapes, from the accesses of a program."""
    known = accesses.signed.signature.by_name
    shapes = {name: variable.shape for name, variable in known.items()}
    for i, facts in enumerate(accesses.facts):
        for name in facts.outline.order:
            if name not in shapes:
                shapes[name] = _inferred(accesses, name, i)
    return dict(sorted(shapes.items()))


def _inferred(accesses: Accesses, name: str, first: int) -> Shape:
    """The shape of an intermediate; ``first`` is the first nest that touches it."""
    writers = accesses.writers.get(name, ())
    known = accesses.facts[writers[0] if writers else first].outline.ranks[name]
    if known is not None:
        rank = known
    elif writers:
        rank = len(accesses.part(writers[0]).writes[name][0].access.subscripts)
    else:
        rank = len(accesses.part(first).by_tensor[name][0].access.subscripts)
    shape = (1,) * rank
    if len(writers) == 1:  # a subscript may be below 0, an error of its own
        only = _extents(accesses, writers[0])[name].get(rank, shape)
        return only if min(only, default=1) > 0 else tuple([max(1, n) for n in only])
    for j in writers:
        reached = _extents(accesses, j)[name].get(rank)
        if reached is not None:
            shape = tuple(map(max, shape, reached))
    return shape


def _extents(accesses: Accesses, i: int) -> Extents:
    """How far nest ``i`` writes each tensor, by rank; kept with the nest."""
    facts = accesses.facts[i]
    if facts.extents is None:
        found: Extents = {}
        for name, writes in accesses.unplaced(i).writes.items():
            found[name] = {}
            for use in writes:
                reached = _reached(use)
                if reached is not None:
                    rank = len(reached)
                    other = found[name].get(rank, reached)
                    found[name][rank] = tuple(map(max, other, reached))
        facts.extents = found
    return facts.extents


def _reached(write: Use) -> Shape | None:
    """One more than the highest subscript per dimension; None if it is sure never to happen."""
    if write.bounds.empty:
        return None
    shape = []
    plain = write.always
    spans = write.statement.bounds.box
    for form in write.subscripts:
        if plain and len(form.terms) == 1:
            atom, factor = form.terms[0]
            if factor > 0 and isinstance(atom, str):  # the index alone, which takes its last value
                shape.append(form.const + factor * spans[atom][1] + 1)
                continue
        _, high = write.bounds.interval(form)
        if not _attained(write, form) and not _witnessed(write, form, high):
            exact = sets.highest(write, form)
            if exact is None and sets.happens(write) is False:
                return None
            high = high if exact is None else exact
        shape.append(high + 1)
    return tuple(shape)


def _attained(use: Use, form: Form) -> bool:
    """Whether the upper end of the form's interval is surely taken."""
    if not form.terms:
        return use.always
    bounds = use.bounds
    names: set[str] = set()
    for atom, _ in form.terms:
        inner = atom
        while isinstance(inner, FloorDiv):  # monotone, so extremes come from extremes
            if len(inner.inner.terms) != 1 or inner.inner.terms[0][1] < 0:
                return False
            inner = inner.inner.terms[0][0]
        if not isinstance(inner, str) or inner in names:
            return False
        names.add(inner)
    if use.always:
        return True
    matching: list[Terms] = [form.terms, tuple((a, -k) for a, k in form.terms)]
    beside: list[Formula] = []
    for part in atoms_of(use.formula):
        if not isinstance(part, NonNegative | Zero):
            return False
        if single_index(part.form) and isinstance(part, NonNegative):
            continue
        if part.form.terms in matching and dense(form.terms, bounds.box):
            continue
        if not names.isdisjoint(names_in(part.form)):
            return False
        beside.append(part)
    if not beside:
        return True
    ends = [{name: span[end] for name, span in bounds.box.items()} for end in (0, 1)]
    return any(all(_holds(part, point) for part in beside) for point in ends)


def _witnessed(use: Use, form: Form, high: int) -> bool:
    """Whether the form is ``high`` at a point that is known to satisfy the condition.

    The form's own indices stand where it is largest, the others first low and then high.
    """
    atoms = atoms_of(use.formula)
    if not all(isinstance(part, NonNegative | Zero) for part in atoms):
        return False
    box = use.bounds.box
    largest: dict[str, int] = {}
    for atom, k in form.terms:
        place = _largest(atom, box) if k > 0 else _lowest(atom, box)
        if place is None or place[0] in largest:
            return False
        largest[place[0]] = place[1]
    for end in (0, 1):
        point = {name: span[end] for name, span in box.items()} | largest
        if value_at(form, point) == high and all(_holds(part, point) for part in atoms):
            return True
    return False


def _largest(atom: Atom, box: Mapping[str, Interval]) -> tuple[str, int] | None:
    """An index and a value of it at which a quotient or remainder of it may be largest."""
    if isinstance(atom, str):
        return atom, box[atom][1]
    if isinstance(atom, Opaque) or len(atom.inner.terms) != 1 or atom.inner.terms[0][1] != 1:
        return None
    inner = atom.inner.terms[0][0]
    if not isinstance(inner, str):
        return None
    low, high = box[inner]
    if isinstance(atom, Modulo):  # the last value with the remainder divisor - 1
        last = high - (high + atom.inner.const + 1) % atom.divisor
        high = last if last >= low else high
    return inner, high


def _lowest(atom: Atom, box: Mapping[str, Interval]) -> tuple[str, int] | None:
    return (atom, box[atom][0]) if isinstance(atom, str) else None


def _holds(part: Formula, point: Mapping[str, int]) -> bool:
    match part:
        case NonNegative(form):
            value = value_at(form, point)
            return value is not None and value >= 0
        case Zero(form):
            return value_at(form, point) == 0
    return False
