"""Matching expressions up to the names of loop indices, and questions about subscripts."""

from collections.abc import Iterable, Mapping, Sequence

from steptp_dagster.leir.affine import Form, is_opaque, names_in
from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Expr, Index, Loop, Unary
from steptp_dagster.leir.walk import accesses_in, children

#: Index of the other expression -> index of the pattern; one to one.
Renaming = Mapping[str, str]


def unify(pattern: Expr, other: Expr, known: Renaming) -> Renaming | None:
    """The renaming that extends ``known`` and turns ``other`` into ``pattern``, or None.

    Everything but index names must be equal: operators, order of operands, literals, tensors.
    """
    if isinstance(pattern, Index) and isinstance(other, Index):
        return _bind(pattern.name, other.name, known)
    if type(pattern) is not type(other) or not _same_head(pattern, other):
        return None
    below, beside = children(pattern), children(other)
    if len(below) != len(beside):
        return None
    found: Renaming | None = known
    for a, b in zip(below, beside, strict=True):
        if found is None:
            return None
        found = unify(a, b, found)
    return found


def _bind(pattern: str, other: str, known: Renaming) -> Renaming | None:
    if other in known:
        return known if known[other] == pattern else None
    if pattern in known.values():
        return None
    return {**known, other: pattern}


def instantiate(pattern: Expr, other: Expr, known: Mapping[str, Expr]) -> Mapping[str, Expr] | None:
    """Expressions for the pattern's indices under which it is ``other``, or None.

    They extend ``known`` and read no tensors. Unlike a renaming, several indices may stand for
    one, as after a loop was split.
    """
    if isinstance(pattern, Index):
        if pattern.name in known:
            return known if known[pattern.name] == other else None
        return None if any(True for _ in accesses_in(other)) else {**known, pattern.name: other}
    if type(pattern) is not type(other) or not _same_head(pattern, other):
        return None
    below, beside = children(pattern), children(other)
    if len(below) != len(beside):
        return None
    found: Mapping[str, Expr] | None = known
    for a, b in zip(below, beside, strict=True):
        if found is None:
            return None
        found = instantiate(a, b, found)
    return found


def _same_head(a: Expr, b: Expr) -> bool:
    """Whether two nodes of one type are equal apart from their children."""
    match a, b:
        case Access(), Access():
            return (a.name, a.dtype, a.scope) == (b.name, b.dtype, b.scope)
        case Unary(), Unary():
            return a.op == b.op
        case Binary(), Binary():
            return a.op == b.op
        case Compare(), Compare():
            return a.ops == b.ops
        case Call(), Call():
            return a.function == b.function
    return a == b


def same_domain(pattern: Sequence[Loop], other: Sequence[Loop], renaming: Renaming) -> bool:
    """Whether the renaming maps the loops one to one onto loops of equal start and extent.

    Loops of extent 1 that the renaming leaves out do not count.
    """
    ranges = {
        loop.index: (loop.start, loop.extent)
        for loop in pattern
        if loop.extent > 1 or loop.index in renaming.values()
    }
    theirs = [loop for loop in other if loop.extent > 1 or loop.index in renaming]
    mapped = {renaming.get(loop.index): (loop.start, loop.extent) for loop in theirs}
    return len(mapped) == len(theirs) and mapped == ranges


def distinguishes(forms: Iterable[Form], names: Iterable[str], extents: Mapping[str, int]) -> bool:
    """Whether equal values of all forms force equal values of all the named indices.

    Sufficient test: a form fixes its indices where they are the digits of a mixed-radix number,
    each coefficient larger than the span of all smaller ones. Indices of extent 1, and those
    without an extent (loops that both sides share), count as fixed.
    """
    wanted = {name for name in names if extents.get(name, 1) > 1}
    forms = list(forms)
    fixed: set[str] = set()
    while True:
        found = {name for form in forms for name in _digits(form, fixed, extents)} - fixed
        if not found:
            return wanted <= fixed
        fixed |= found


def _digits(form: Form, fixed: set[str], extents: Mapping[str, int]) -> set[str]:
    """Indices that a form fixes when those in ``fixed`` are known."""
    if is_opaque(form):
        return set()
    unknown: list[tuple[int, str]] = []
    for atom, coefficient in form.terms:
        if isinstance(atom, str):
            if atom not in fixed and extents.get(atom, 1) > 1:
                unknown.append((abs(coefficient), atom))
        elif not names_in(Form(0, ((atom, 1),))) <= fixed:
            return set()
    span = 0
    for coefficient, name in sorted(unknown):
        if coefficient <= span:
            return set()
        span += coefficient * (extents[name] - 1)
    return {name for _, name in unknown}
