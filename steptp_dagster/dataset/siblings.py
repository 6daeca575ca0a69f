"""Evidence for programs that are too large to run: the same steps on small programs like them.

A *sibling* of a source is the same program at small shapes, with the same structure: equal but for
numbers. A step of a large program is repeated on its siblings: the same strategy at the same
statement, with parameters that lead to the same structure. Then every number of the large result
must be explained: as a number of the program before, a parameter, or one formula of these that
gives the numbers of all siblings too. What is left of the verdict is static, and is done on the
large programs themselves; values are compared on the siblings.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import isclose, log, sqrt
from typing import Any, Final

from steptp_dagster.dataset.structure import NEEDED, Numbers, structure
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.alternatives import surveyed
from steptp_dagster.strategies.base import Refusal, Site, Strategy
from steptp_dagster.strategies.step import objection, take
from steptp_dagster.verify.record import Verdict

#: Sites of a sibling that are tried for one step.
_SITES: Final = 24
_DIGITS: Final = re.compile(r"\d+(\.\d+)?(e-?\d+)?")

#: One number of the large program with those at the same place of its siblings.
Row = Numbers


@dataclass(frozen=True, slots=True)
class SmallStep:
    """A step of a sibling that stands for one of a large program."""

    before: SignedProgram
    after: SignedProgram
    site: Site


def small_steps(
    chosen: Strategy,
    path: tuple[int, ...],
    parameters: Mapping[str, Any],
    large: tuple[SignedProgram, SignedProgram],
    siblings: Mapping[str, SignedProgram],
) -> dict[str, SmallStep] | str:
    """The step repeated on siblings of the program before, by name; or why it cannot be, in words.

    ``parameters`` are plain values, as the tables have them.
    """
    named = {n: tuple(v) if isinstance(v, list) else v for n, v in parameters.items()}
    site = Site.of(chosen.name, path, **named)
    broken = objection(*large, keeps_instances=chosen.keeps_instances(site))
    if broken is not None:
        return f"the step is not legal: {broken[0]}: {broken[1]}"
    form, numbers = structure(large[1])
    tried = {n: _small_step(chosen, path, parameters, form, p) for n, p in siblings.items()}
    found = {name: step for name, step in tried.items() if step is not None}
    if len(found) < NEEDED:
        return (
            f"{chosen.name} does the same at the same statement of {len(found)} siblings, and "
            f"{NEEDED} are needed"
        )
    steps = tuple(found.values())
    known = tuple(_columns(large[0], [s.before for s in steps]))
    free = tuple(_parameters(parameters, [s.site for s in steps]))
    rows = zip(numbers, *(structure(step.after)[1] for step in steps), strict=True)
    for row in dict.fromkeys(rows):
        if not explained(row, known, free):
            return f"the number {row[0]} of the result, on siblings {row[1:]}, follows from none"
    return found


def _small_step(
    chosen: Strategy,
    path: tuple[int, ...],
    parameters: Mapping[str, Any],
    form: Hashable,
    small: SignedProgram,
) -> SmallStep | None:
    sites = [s for s in surveyed(chosen, small).sites if s.path == path and _like(s, parameters)]
    sites.sort(key=lambda site: _distance(site, parameters))
    for site in sites[:_SITES]:
        step = take(chosen, small, site)
        if not isinstance(step, Refusal) and structure(step.after)[0] == form:
            return SmallStep(small, step.after, site)
    return None


def _like(site: Site, parameters: Mapping[str, Any]) -> bool:
    """Whether a site has the parameters named, equal but for numbers, also those in texts."""
    return site.named.keys() == parameters.keys() and all(
        _masked(value) == _masked(parameters[name]) or _numbers(value, parameters[name]) is not None
        for name, value in site.parameters
    )


def _masked(value: Any) -> object:  # noqa: ANN401 - plain values
    if isinstance(value, str):
        return _DIGITS.sub("0", value)
    return [_masked(item) for item in value] if isinstance(value, tuple | list) else value


def _numbers(small: Any, large: Any) -> list[Row] | None:  # noqa: ANN401 - plain values
    """The pairs (large, small) of numbers of a parameter; None where it is none of numbers."""
    if isinstance(small, bool) or isinstance(large, bool):
        return None
    if isinstance(small, int) and isinstance(large, int):
        return [(large, small)]
    if isinstance(small, tuple) and isinstance(large, list) and len(small) == len(large):
        pairs = [_numbers(s, g) for s, g in zip(small, large, strict=True)]
        return [row for p in pairs for row in p or ()] if all(pairs) else None
    return None


def _distance(site: Site, parameters: Mapping[str, Any]) -> tuple[float, str]:
    """Sites with equal parameters first, then those whose numbers are nearest."""
    apart = 0.0
    for name, value in site.parameters:
        for large, small in _numbers(value, parameters[name]) or ():
            apart += abs(log((1 + abs(large)) / (1 + abs(small))))
    return apart, repr(site.parameters)


def _columns(large: SignedProgram, siblings: Iterable[SignedProgram]) -> Iterator[Row]:
    return zip(structure(large)[1], *(structure(s)[1] for s in siblings), strict=True)


def _parameters(parameters: Mapping[str, Any], sites: Sequence[Site]) -> Iterator[Row]:
    for name, large in parameters.items():
        columns = [_numbers(site.named[name], large) or [] for site in sites]
        for pairs in zip(*columns, strict=True):
            yield (pairs[0][0], *(small for _, small in pairs))


_Operation = Callable[[int, int], int | None]
_OPERATIONS: Final[tuple[_Operation, ...]] = (
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a // b if b else None,
    lambda a, b: -(-a // b) if b else None,
    lambda a, b: a % b if b else None,
)
_PRODUCT: Final = _OPERATIONS[:1]


def explained(row: Row, known: Iterable[Row], chosen: Iterable[Row] = ()) -> bool:
    """Whether a row of numbers follows from the known ones by one formula for every column.

    ``known`` are numbers of the program before, ``chosen`` parameters of the step. Formulas of
    integers: a number itself, a product of up to three, and one or two operations ``+ - * // %``
    (also rounded up) with parameters, 1 or 2. Of decimals: an integer found in this way, its root,
    and the reciprocals of both. A number that is the same in every column is a constant of the
    strategy.
    """
    if len(set(row)) == 1:
        return True
    numbers, free = frozenset(known), frozenset(chosen)
    if row in numbers or row in free:
        return True
    whole = frozenset(r for r in numbers | free if all(isinstance(n, int) for n in r))
    columns = len(row)
    found = _formulas(whole, free | {(1,) * columns, (2,) * columns})
    if any(isinstance(n, float) for n in row):
        return any(_decimal(row, other) for other in found)
    return row in found


@lru_cache(maxsize=64)
def _formulas(whole: frozenset[Row], free: frozenset[Row]) -> frozenset[Row]:
    """All rows that the formulas give."""
    found = whole | free
    twice = _combined(whole, whole, _PRODUCT)
    once = _combined(found, free, _OPERATIONS) | _combined(free, found, _OPERATIONS)
    return found.union(
        twice, _combined(twice, whole, _PRODUCT), once, _combined(once, free, _OPERATIONS)
    )


def _combined(
    left: Iterable[Row], right: Iterable[Row], operations: Sequence[_Operation]
) -> frozenset[Row]:
    found = set()
    for a, b in product(left, right):
        for operation in operations:
            row = tuple(operation(int(x), int(y)) for x, y in zip(a, b, strict=True))
            numbers = tuple(n for n in row if n is not None and n >= 0)
            if len(numbers) == len(row):
                found.add(numbers)
    return frozenset(found)


def _decimal(row: Row, known: Row) -> bool:
    if any(n <= 0 for n in known):
        return False
    forms: tuple[Callable[[float], float], ...] = (
        lambda x: x,
        lambda x: 1 / x,
        sqrt,
        lambda x: 1 / sqrt(x),
    )
    return any(
        all(isclose(value, form(n), rel_tol=1e-9) for value, n in zip(row, known, strict=True))
        for form in forms
    )


def on_siblings(verdicts: Sequence[Verdict], named: Sequence[tuple[str, str]]) -> Verdict:
    """One verdict of those on the siblings: the first rejection, else the weakest acceptance.

    ``named`` says what was run (``Verdict.sibling``).
    """
    order = ("rejected", "reassociated", "exact")
    worst = min(verdicts, key=lambda v: order.index(v.equality))
    words = f"on a sibling: {worst.message or worst.reason}" if worst.reason else ""
    return replace(
        worst,
        bitwise=all(v.bitwise for v in verdicts),
        message=words,
        evidence="sibling",
        sibling=tuple(named),
    )
