"""Shapes of all tensors: declared for known variables, inferred for the others.

An intermediate is as large as its writes demand: per dimension the largest subscript over all
writes that can happen, plus 1. ``l`` and ``s`` tensors have the shape of one instance.
"""

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Use
from steptp_dagster.leir.affine import FloorDiv, Form, Terms
from steptp_dagster.leir.formulas import TRUE, NonNegative, Zero, atoms_of
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
        for touched in facts.outline.touched:
            name = touched.name
            if name not in shapes:
                shapes[name] = _inferred(accesses, name, i)
    return dict(sorted(shapes.items()))


def _inferred(accesses: Accesses, name: str, first: int) -> Shape:
    """The shape of an intermediate; ``first`` is the first nest that touches it."""
    writers = accesses.writers.get(name, ())
    outline = accesses.facts[writers[0] if writers else first].outline
    annotation = next(t.annotation for t in outline.touched if t.name == name)
    if annotation is not None:
        rank = annotation[2]
    elif writers:
        rank = len(accesses.part(writers[0]).writes[name][0].access.subscripts)
    else:
        rank = len(accesses.part(first).by_tensor[name][0].access.subscripts)
    shape = (1,) * rank
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
        for name, writes in accesses.part(i).writes.items():
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
    for form in write.subscripts:
        _, high = write.bounds.interval(form)
        if not _attained(write, form):
            exact = sets.highest(write, form)
            if exact is None and sets.happens(write) is False:
                return None
            high = high if exact is None else exact
        shape.append(high + 1)
    return tuple(shape)


def _attained(use: Use, form: Form) -> bool:
    """Whether the upper end of the form's interval is surely taken."""
    if not form.terms:
        return use.formula == TRUE
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
    if use.formula == TRUE:
        return True
    matching: list[Terms] = [form.terms, tuple((a, -k) for a, k in form.terms)]
    for part in atoms_of(use.formula):
        if not isinstance(part, NonNegative | Zero):
            return False
        if single_index(part.form) and isinstance(part, NonNegative):
            continue
        if part.form.terms not in matching or not dense(form.terms, bounds.box):
            return False
    return True
