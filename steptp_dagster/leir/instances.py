"""Whether two programs run the same equation instances at the same elements.

An instance of an equation is the equation with a number in place of every loop index. Steps that
only move work (split, fuse, reorder, bind) must keep the multiset of instances: none lost, none
doubled, none aimed at another element. Integer arithmetic on indices is evaluated, so ``c*3+a``
at c=1, a=2 is the same as ``a`` at 5; scopes do not count.

Equal nests at both ends cancel, then equations whose iteration spaces have one normal form
(``instance_normal``); for most steps nothing is left. Of the rest small ones are enumerated. For
others the instances are compared as Presburger sets, which is
exact where the iterations of every equation can be counted per instance; where they cannot,
enumeration decides up to ``ENUMERATION_LIMIT`` instances; beyond, the answer is ``unknown``.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from steptp_dagster.leir.ast import Loop, Nest, Program
from steptp_dagster.leir.instance_forms import Form, Skeleton, form_of
from steptp_dagster.leir.instance_normal import Normal, normal_form
from steptp_dagster.leir.instance_sets import Sameness, same_sets
from steptp_dagster.leir.instance_values import evaluate
from steptp_dagster.leir.walk import Located, equations_in

#: Up to ``CHEAP`` instances enumeration is quicker than sets; up to the limit, the last resort.
CHEAP: Final = 10_000
ENUMERATION_LIMIT: Final = 1_000_000


def same_instances(before: Program, after: Program) -> Sameness:
    """Compare the multisets of equation instances of two programs."""
    first, second = _apart(*_changed(before.nests, after.nests))
    if not first and not second:
        return "same"
    size = max(_count(first), _count(second))
    if size > CHEAP:
        found = same_sets(first, second)
        if found != "unknown" or size > ENUMERATION_LIMIT:
            return found
    return "same" if _multisets(first) == _multisets(second) else "different"


def _changed(
    before: tuple[Nest, ...], after: tuple[Nest, ...]
) -> tuple[list[Located], list[Located]]:
    """The equations of both programs without the nests that they share at both ends."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _equal(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _equal(before[-1 - end], after[-1 - end]):
        end += 1
    return _equations(before[start : len(before) - end]), _equations(
        after[start : len(after) - end]
    )


def _equal(one: Nest, other: Nest) -> bool:
    return one is other or one == other  # equality does not look for identity


def _equations(nests: tuple[Nest, ...]) -> list[Located]:
    return [located for nest in nests for located in equations_in(nest)]


def _apart(before: list[Located], after: list[Located]) -> tuple[list[Located], list[Located]]:
    """What is left of both sides where equal spaces and equal normal forms cancel."""
    waiting: dict[Normal, list[Located]] = {}
    first: list[Located] = []
    second: list[Located] = []
    for one, other in zip(before, after, strict=False):
        if not _moved(one, other):
            first.append(one)
            second.append(other)
    first += before[len(after) :]
    second += after[len(before) :]
    before, after, first, second = first, second, [], []
    for one in before:
        normal = normal_form(one.equation, one.loops)
        (first if normal is None else waiting.setdefault(normal, [])).append(one)
    for other in after:
        normal = normal_form(other.equation, other.loops)
        if normal is not None and waiting.get(normal):
            waiting[normal].pop()
        else:
            second.append(other)
    first.extend(one for left in waiting.values() for one in left)
    return first, second


def _moved(one: Located, other: Located) -> bool:
    """Whether this is one equation in the same loops, whatever their order and kinds."""
    if one.equation is not other.equation or len(one.loops) != len(other.loops):
        return False
    ranges = {loop.index: (loop.start, loop.extent) for loop in one.loops}
    others = {loop.index: (loop.start, loop.extent) for loop in other.loops}
    return len(ranges) == len(one.loops) and ranges == others


def _count(located: Iterable[Located]) -> int:
    return sum(prod(loop.extent for loop in one.loops) for one in located)


def _multisets(located: Iterable[Located]) -> dict[Skeleton, list[tuple[tuple[int, ...], int]]]:
    """Skeleton -> the sorted distinct fillings of its holes, with how often each occurs."""
    rows: dict[Skeleton, list[NDArray[np.int64]]] = {}
    for one in located:
        form = form_of(one.equation)
        rows.setdefault(form.skeleton, []).append(_fillings(form, one.loops))
    counted = {}
    for skeleton, parts in rows.items():
        table = np.concatenate(parts)
        if not len(table):
            continue
        distinct, counts = np.unique(table, axis=0, return_counts=True)
        counted[skeleton] = [
            (tuple(row), int(n)) for row, n in zip(distinct.tolist(), counts, strict=True)
        ]
    return counted


def _fillings(form: Form, loops: Sequence[Loop]) -> NDArray[np.int64]:
    """One row per instance whose conditions hold; int64 of shape (instances, holes + 1)."""
    shape = tuple(loop.extent for loop in loops)
    grid = np.indices(shape, dtype=np.int64).reshape(len(loops), -1)
    values = {loop.index: grid[i] + loop.start for i, loop in enumerate(loops)}
    size = grid.shape[1]
    columns = [np.zeros(size, np.int64)]
    columns += [np.broadcast_to(evaluate(hole, values), (size,)) for hole in form.holes]
    table = np.stack(columns, axis=1)
    for condition in form.conditions:
        held = np.broadcast_to(evaluate(condition, values), (len(table),))
        table = table[held]
        values = {name: column[held] for name, column in values.items()}
    return table
