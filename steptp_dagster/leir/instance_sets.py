"""Comparing equation instances as Presburger sets, for programs too large to enumerate.

An instance set is held per skeleton as disjoint sets of hole fillings, each with the number of
times that its fillings occur. Loops that nothing in an equation uses, and loops that only
conditions use, count as a factor; all others must be told apart by the holes.
"""

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final, Literal

from steptp_dagster.leir.ast import Binary, Compare, Expr, Index, Int, Loop, Unary
from steptp_dagster.leir.instance_forms import Form, Skeleton, form_of
from steptp_dagster.leir.instance_values import evaluate
from steptp_dagster.leir.walk import Located, indices_in

#: Most iterations of loops that only conditions use, counted one by one.
MOST_COUNTED: Final = 100_000

Sameness = Literal["same", "different", "unknown"]


@dataclass(slots=True)
class _Part:
    """Fillings of the holes of a skeleton, an isl set, that each occur ``times`` times."""

    fillings: Any
    times: int


def same_sets(before: list[Located], after: list[Located]) -> Sameness:
    """Compare two lists of equations; ``unknown`` where fillings cannot be counted."""
    first, second = _parts(before), _parts(after)
    if first is None or second is None:
        return "unknown"
    if set(first) != set(second):
        return "different"
    return "same" if all(_equal(first[s], second[s]) for s in first) else "different"


def _equal(first: list[_Part], second: list[_Part]) -> bool:
    one, two = _by_times(first), _by_times(second)
    return set(one) == set(two) and all(one[times].is_equal(two[times]) for times in one)


def _by_times(parts: list[_Part]) -> dict[int, Any]:
    joined: dict[int, Any] = {}
    for part in parts:
        known = joined.get(part.times)
        joined[part.times] = part.fillings if known is None else known.union(part.fillings)
    return joined


def _parts(located: list[Located]) -> dict[Skeleton, list[_Part]] | None:
    """Skeleton -> disjoint parts; None where the occurrences of a filling are not known."""
    found: dict[Skeleton, list[_Part]] = {}
    for one in located:
        form = form_of(one.equation)
        part = _part(form, one.loops)
        if part is None:
            return None
        if part.times == 0 or part.fillings.is_empty():
            continue
        if not _add(found.setdefault(form.skeleton, []), part):
            return None
    return found


def _add(parts: list[_Part], new: _Part) -> bool:
    """Add a part; False where it overlaps a known one without being equal to it."""
    for part in parts:
        if part.fillings.is_equal(new.fillings):
            part.times += new.times
            return True
        if not part.fillings.is_disjoint(new.fillings):
            return False
    parts.append(new)
    return True


def _part(form: Form, loops: tuple[Loop, ...]) -> _Part | None:
    import islpy as isl

    told = frozenset(name for hole in form.holes for name in indices_in(hole))
    mixed = [c for c in form.conditions if indices_in(c) & told]
    alone = [c for c in form.conditions if not indices_in(c) & told]
    kept = told | frozenset(name for c in mixed for name in indices_in(c))
    if any(indices_in(c) & kept for c in alone):
        return None
    times = _count([loop for loop in loops if loop.index not in kept], alone)
    if times is None:
        return None
    inner = [loop for loop in loops if loop.index in kept]
    names = ", ".join(f"i_{loop.index}" for loop in inner)
    bounds = [f"{x.start} <= i_{x.index} < {x.start + x.extent}" for x in inner]
    where = " and ".join([*bounds, *(_isl_text(c) for c in mixed)]) or "0 = 0"
    holes = ", ".join(_isl_text(hole) for hole in form.holes)
    try:
        fill = isl.Map(f"{{ [{names}] -> [{holes}] : {where} }}")
    except isl.Error:
        return None
    return _Part(fill.range(), times) if fill.is_injective() else None


def _count(loops: list[Loop], conditions: list[Expr]) -> int | None:
    """How many iterations of the loops meet the conditions; None where that is too many."""
    used = frozenset(name for c in conditions for name in indices_in(c))
    counted = [loop for loop in loops if loop.index in used]
    free = prod(loop.extent for loop in loops if loop.index not in used)
    if not conditions:
        return free
    if prod(loop.extent for loop in counted) > MOST_COUNTED:
        return None
    ranges = [range(loop.start, loop.start + loop.extent) for loop in counted]
    names = [loop.index for loop in counted]
    return free * sum(
        all(evaluate(c, dict(zip(names, point, strict=True))) for c in conditions)
        for point in product(*ranges)
    )


def _isl_text(expr: Expr) -> str:
    match expr:
        case Int():
            return str(expr.value)
        case Index():
            return f"i_{expr.name}"
        case Unary():
            return f"(-{_isl_text(expr.operand)})"
        case Binary(op="//"):
            return f"floor({_isl_text(expr.left)}/{_isl_text(expr.right)})"
        case Binary(op="%"):
            return f"({_isl_text(expr.left)} mod {_isl_text(expr.right)})"
        case Binary(op=op) if op in ("&", "|"):
            word = "and" if op == "&" else "or"
            return f"({_isl_text(expr.left)} {word} {_isl_text(expr.right)})"
        case Binary():
            return f"({_isl_text(expr.left)} {expr.op} {_isl_text(expr.right)})"
        case Compare():
            parts = [_isl_text(operand) for operand in expr.operands]
            pairs = zip(parts, expr.ops, parts[1:], strict=False)
            return "(" + " and ".join(_relation(*pair) for pair in pairs) + ")"
    raise TypeError(f"not index arithmetic: {type(expr).__name__}")


def _relation(left: str, op: str, right: str) -> str:
    if op == "!=":
        return f"({left} < {right} or {left} > {right})"
    return f"{left} {'=' if op == '==' else op} {right}"
