"""From quasi-affine forms back to expressions, and splitting them at a point of a loop nest."""

from collections.abc import Sequence

from steptp_dagster.leir.affine import Atom, FloorDiv, Form, Modulo, Opaque, names_in
from steptp_dagster.leir.ast import Binary, Expr, Index, Int, Unary


def to_expr(form: Form) -> Expr | None:
    """An expression with the value of the form, or None where it holds opaque values.

    Terms with larger coefficients come first, negative ones last; the constant ends the sum.
    """
    return sum_of(sorted(form.terms, key=lambda term: -abs(term[1])), form.const)


def sum_of(terms: Sequence[tuple[Atom, int]], constant: int) -> Expr | None:
    """The sum of the terms in the given order, positive ones first, and a constant."""
    positive = [(atom, k) for atom, k in terms if k > 0]
    negative = [(atom, k) for atom, k in terms if k < 0]
    total: Expr | None = None
    if constant > 0 and not positive:
        total, constant = Int(constant), 0
    for atom, k in (*positive, *negative):
        product = _product(atom, abs(k))
        if product is None:
            return None
        if total is None:
            total = product if k > 0 else Unary("-", product)
        else:
            total = Binary("+" if k > 0 else "-", total, product)
    if total is None:
        return Int(constant) if constant >= 0 else Unary("-", Int(-constant))
    if constant:
        return Binary("+" if constant > 0 else "-", total, Int(abs(constant)))
    return total


def _product(atom: Atom, factor: int) -> Expr | None:
    base = _atom(atom)
    if base is None:
        return None
    return base if factor == 1 else Binary("*", base, Int(factor))


def _atom(atom: Atom) -> Expr | None:
    if isinstance(atom, str):
        return Index(atom)
    if isinstance(atom, Opaque):
        return None
    inner = to_expr(atom.inner)
    if inner is None:
        return None
    return Binary("//" if isinstance(atom, FloorDiv) else "%", inner, Int(atom.divisor))


def split(form: Form, inner: frozenset[str]) -> tuple[Form, Form] | None:
    """``(outside, inside)`` with ``form = outside + inside``, or None.

    ``inside`` uses only the indices in ``inner`` and has no constant; ``outside`` uses none of
    them. None where one division mixes both kinds, or where a value is opaque.
    """
    outside: list[tuple[Atom, int]] = []
    inside: list[tuple[Atom, int]] = []
    for atom, k in form.terms:
        names = names_in(Form(0, ((atom, 1),)))
        if _opaque(atom) or (names & inner and not names <= inner):
            return None
        (inside if names & inner else outside).append((atom, k))
    return Form(form.const, tuple(outside)), Form(0, tuple(inside))


def _opaque(atom: Atom) -> bool:
    if isinstance(atom, FloorDiv | Modulo):
        return any(_opaque(inner) for inner, _ in atom.inner.terms)
    return isinstance(atom, Opaque)
