"""The fast proof that two uses touch one element: two instances that do.

Each loop stands at its first iteration, or one further on where a relation wants two different
ones. That is enough for an accumulator and for other elements that a loop comes back to; what it
leaves open, ``sets.overlap`` decides.
"""

from collections.abc import Mapping, Sequence

from steptp_dagster.leir.accesses import Use
from steptp_dagster.leir.affine import value_at
from steptp_dagster.leir.formulas import And, Formula, NonNegative, Or, Zero
from steptp_dagster.leir.sets import Relation


def witnessed(first: Use, second: Use, relations: Sequence[Relation]) -> bool:
    """Whether two instances that are easily named touch one element under ``relations``.

    False means "not found". Opaque values and conditions on data are never taken for granted.
    """
    one = {ref.name: ref.loop.start for ref in first.chain}
    two = {ref.name: ref.loop.start for ref in second.chain}
    for a, b, how in relations:
        if how == "=":
            one[a] = two[b] = max(one[a], two[b])
        elif how in ("<", "!="):
            two[b] = max(two[b], one[a] + 1)
        elif how == ">":
            one[a] = max(one[a], two[b] + 1)
    return (
        all(_related(one[a], two[b], how) for a, b, how in relations)
        and _happens(first, one)
        and _happens(second, two)
        and all(
            (place := value_at(mine, one)) is not None and place == value_at(other, two)
            for mine, other in zip(first.forms, second.forms, strict=True)
        )
    )


def _related(one: int, other: int, how: str) -> bool:
    match how:
        case "=":
            return one == other
        case "!=":
            return one != other
        case "<":
            return one < other
        case ">":
            return one > other
    return how == "*"


def _happens(use: Use, point: Mapping[str, int]) -> bool:
    """Whether the point is an iteration in which the access surely happens."""
    for ref in use.chain:
        if not 0 <= point[ref.name] - ref.loop.start < ref.loop.extent:
            return False
    return use.always or (not use.on_data and _holds(use.formula, point))


def _holds(formula: Formula, point: Mapping[str, int]) -> bool:
    """Whether a formula surely holds at a point."""
    match formula:
        case NonNegative(form):
            value = value_at(form, point)
            return value is not None and value >= 0
        case Zero(form):
            return value_at(form, point) == 0
        case And(parts):
            return all(_holds(part, point) for part in parts)
        case Or(parts):
            return any(_holds(part, point) for part in parts)
    return False
