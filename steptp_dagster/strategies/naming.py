"""Naming parts of expressions: which parts are worth a name, and the equation that defines one.

A name for a part has the part's evaluation type, so that it holds the very value.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Loop,
    Unary,
)
from steptp_dagster.leir.limits import AXIS_LIMITS
from steptp_dagster.leir.shapes import infer_shapes
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import Typed, typed_equation
from steptp_dagster.leir.walk import accesses_in, children, with_children
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import pair
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.inlining import types_kept
from steptp_dagster.strategies.reductions import ONE_THREAD

#: A new tensor may have so many times the elements of the largest one of the program ...
GROWTH: Final = 64
#: ... and so many in any case.
SOME_ELEMENTS: Final = 4096


def parts(equation: Equation) -> Iterator[tuple[Expr, str]]:
    """Every distinct proper part of an equation's value that costs something, with its type.

    Pre-order. A part is an operation on at least one tensor; subscripts have no parts.
    """
    seen: set[Expr] = set()
    value = typed_equation(equation).value
    for node, _ in operations_with_parents(value):
        if node is not value and node.expr not in seen:
            seen.add(node.expr)
            yield node.expr, node.dtype.name


def operations_with_parents(
    typed: Typed, parent: Typed | None = None
) -> Iterator[tuple[Typed, Typed | None]]:
    """Operations outside subscripts that read a tensor, pre-order, each with the one around it."""
    if isinstance(typed.expr, Access):
        return
    if isinstance(typed.expr, Unary | Binary | Compare | Call) and reads_tensor(typed.expr):
        yield typed, parent
        parent = typed
    for operand in typed.operands:
        yield from operations_with_parents(operand, parent)


def reads_tensor(expr: Expr) -> bool:
    """Whether a tensor occurs in the expression."""
    return any(True for _ in accesses_in(expr))


def in_value(equation: Equation, part: Expr, name: Access) -> Equation:
    """The equation with every occurrence of ``part`` in its value replaced by ``name``."""
    return replace(equation, value=_replaced(equation.value, part, name))


def _replaced(expr: Expr, part: Expr, name: Access) -> Expr:
    if expr == part:
        return name
    if isinstance(expr, Access):
        return expr  # subscripts keep what they have
    return with_children(expr, tuple(_replaced(c, part, name) for c in children(expr)))


def same_types(definition: Equation, before: Equation, after: Equation) -> bool:
    """Whether naming kept every type: ``after`` reads what ``definition`` writes."""
    return types_kept(definition.target.name, definition, after, before)


def branch_condition(expr: Expr, part: Expr) -> Expr | None:
    """What holds wherever the first occurrence of ``part`` is evaluated, apart from the guard.

    The conditions of the ``if_then_else`` branches around it; None where there are none, or where
    one cannot be spelled (there is no negation of a chain or of ``&``).
    """
    joined: Expr | None = None
    for condition in _conditions(expr, part) or ():
        if condition is None:
            return None
        joined = condition if joined is None else Binary("&", joined, condition)
    return joined


def unconditional(expr: Expr, part: Expr) -> bool:
    """Whether the first occurrence of ``part`` is evaluated whenever the expression is."""
    return _conditions(expr, part) == []


def _conditions(expr: Expr, part: Expr) -> list[Expr | None] | None:
    """Conditions from the root to the part; None where the part does not occur."""
    if expr == part:
        return []
    if isinstance(expr, Access):
        return None
    if isinstance(expr, Call) and expr.function == "if_then_else":
        condition, yes, no = expr.arguments
        branches: list[tuple[Expr, list[Expr | None]]] = [
            (condition, []),
            (yes, [condition]),
            (no, [_negated(condition)]),
        ]
        for branch, holds in branches:
            below = _conditions(branch, part)
            if below is not None:
                return holds + below
        return None
    for child in children(expr):
        below = _conditions(child, part)
        if below is not None:
            return below
    return None


_OPPOSITE: Final[Mapping[str, str]] = {
    "<": ">=",
    ">=": "<",
    "<=": ">",
    ">": "<=",
    "==": "!=",
    "!=": "==",
}


def _negated(condition: Expr) -> Expr | None:
    """The negation of one comparison of integers; None for anything else.

    Comparisons of tensors are left out: with NaN, neither they nor their opposite hold.
    """
    if isinstance(condition, Compare) and len(condition.ops) == 1 and not reads_tensor(condition):
        return replace(condition, ops=(_OPPOSITE[condition.ops[0]],))
    return None


def allowance(program: SignedProgram) -> tuple[int, str, int]:
    """How many elements a new tensor may have; the largest tensor and its number of elements.

    ``GROWTH`` times those of the largest tensor of the program, or ``SOME_ELEMENTS``.
    """
    sizes = {name: prod(shape) for name, shape in infer_shapes(program).items()}
    largest = max(sizes, key=lambda name: (sizes[name], name))
    return max(SOME_ELEMENTS, GROWTH * sizes[largest]), largest, sizes[largest]


def allowed(program: SignedProgram, elements: int) -> tuple[Fact, ...]:
    """The facts that show that a tensor of so many elements is within the allowance."""
    limit, largest, size = allowance(program)
    derived = (
        before_fact("elements_of", largest, value=size),
        pair("product", GROWTH, size, value=GROWTH * size),
    )
    return (
        *(derived if limit > SOME_ELEMENTS else ()),
        pair("at_most", elements, limit, value=True),
    )


def own_header(loops: Sequence[Loop], used: Collection[str]) -> tuple[Loop, ...]:
    """A header for a nest of its own over the indices in ``used``, in the order of ``loops``.

    Bound loops stay bound, others become serial; without a bound loop the first one that fits is
    bound to ``tx`` (see ``header_names``), so that the nest is no work of a single thread.
    """
    kept = [
        loop if loop.kind in ("B", "L") else replace(loop, kind="L")
        for loop in loops
        if loop.index in used
    ]
    if not kept:
        return (ONE_THREAD,)
    if all(loop.axis is None for loop in kept):
        for i, loop in enumerate(kept):
            if loop.start + loop.extent <= AXIS_LIMITS["tx"]:
                kept[i] = replace(loop, kind="B", index="tx")
                break
    return tuple(kept)


def header_names(
    loops: Sequence[Loop], used: Collection[str], header: Sequence[Loop]
) -> dict[str, Expr]:
    """Old indices of a nest in terms of those of the header that was made for it."""
    names = [loop.index for loop in loops if loop.index in used]
    return {
        old: Index(new.index) for old, new in zip(names, header, strict=False) if old != new.index
    }
