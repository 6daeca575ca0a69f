"""Which block or thread the elements of a tensor belong to, if each belongs to one."""

from collections.abc import Sequence
from typing import Final

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import Form, is_opaque, names_in
from steptp_dagster.leir.ast import BLOCK_AXES, THREAD_AXES
from steptp_dagster.strategies.matching import distinguishes

#: Axes whose positions tell the instances of a tensor apart, by scope.
_OWNERS: Final = {"g": (), "s": BLOCK_AXES, "l": (*BLOCK_AXES, *THREAD_AXES)}


def owned(uses: Sequence[Use], scope: str) -> bool:
    """Whether each element belongs to one of the instances that only one of the scopes has.

    ``uses`` are all uses of a tensor. From ``g`` to ``s`` these are blocks, from ``s`` to ``l``
    threads. Launches need no test: one runs after the other, and in each an element is written
    before it is read.
    """
    axes = _between(uses[0].access.scope, scope)
    extents: dict[str, int] = {}
    for use in uses:
        for ref in use.chain:
            if ref.loop.axis in axes:
                known = extents.get(ref.loop.axis, 1)
                extents[ref.loop.axis] = max(known, ref.loop.extent)
    common = [
        columns[0]
        for columns in zip(*(_by_owner(use) for use in uses), strict=True)
        if columns[0] is not None and all(form == columns[0] for form in columns)
    ]
    return distinguishes(common, extents, extents)


def private(uses: Sequence[Use], scope: str) -> bool:
    """Whether nobody would miss another's element if each instance of ``scope`` had its own."""
    return owned(uses, scope) or written_by_owner(uses, scope)


def written_by_owner(uses: Sequence[Use], scope: str) -> bool:
    """Whether one statement writes a tensor, each element always from one and the same instance.

    In a program that reads nothing undefined where every instance has elements of its own, whoever
    reads an element has written it: then its last writer is the same in both scopes.
    """
    writes = [use for use in uses if use.write]
    if len(writes) != 1:
        return False
    loops = writes[0].chain[writes[0].statement.launch :]
    axes = _between(writes[0].access.scope, scope)
    return distinguishes(
        writes[0].subscripts,
        [ref.name for ref in loops if ref.loop.axis in axes],
        {ref.name: ref.loop.extent for ref in loops},
    )


def _between(scope: str, other: str) -> set[str]:
    """The axes that tell instances apart in one of two scopes only."""
    return set(_OWNERS[scope]) ^ set(_OWNERS[other])


def _by_owner(use: Use) -> tuple[Form | None, ...]:
    """Subscripts in terms of axes and launch loops; None for those that other indices enter."""
    launch = {ref.name for ref in use.chain[: use.statement.launch]}
    names = {index: axis for axis, index in use.statement.axes.items()}
    return tuple(_renamed(form, names, launch) for form in use.subscripts)


def _renamed(form: Form, names: dict[str, str], launch: set[str]) -> Form | None:
    if is_opaque(form) or not names_in(form) <= names.keys() | launch:
        return None
    terms = []
    for atom, k in form.terms:
        if not isinstance(atom, str):
            return None
        terms.append((names.get(atom, atom), k))
    return Form(form.const, tuple(sorted(terms)))
