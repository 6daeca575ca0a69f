"""Shapes of all tensors: declared for known variables, inferred for the others.

An intermediate is as large as its writes demand: per dimension the largest subscript over all
writes that can happen, plus 1. ``l`` and ``s`` tensors have the shape of one instance.
"""

from steptp_dagster.leir import sets
from steptp_dagster.leir.accesses import Accesses, Use
from steptp_dagster.leir.affine import FloorDiv, Form, Terms
from steptp_dagster.leir.formulas import TRUE, NonNegative, Zero, atoms_of
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
    for name, uses in accesses.by_tensor.items():
        if name not in known:
            shapes[name] = _inferred(uses)
    return dict(sorted(shapes.items()))


def _inferred(uses: list[Use]) -> Shape:
    writes = [u for u in uses if u.write]
    rank = len((writes or uses)[0].subscripts)
    shape = [1] * rank
    for use in writes:
        if len(use.subscripts) != rank or use.bounds.empty:
            continue
        for d, form in enumerate(use.subscripts):
            _, high = use.bounds.interval(form)
            if high < shape[d]:
                continue
            if not _attained(use, form):
                exact = sets.highest(use, form)
                if exact is None and sets.happens(use) is False:
                    break
                high = high if exact is None else exact
            shape[d] = max(shape[d], high + 1)
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
