"""Where rules may rewrite: the places in a value, and the matches of rules at them.

Most rules match nowhere in most programs, so the question is asked of the bare tree, and only of
rules that expect the operator that stands there. Types are worked out where something matched.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import Binary, Call, Equation, Expr, Nest, Unary
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.algebra.rules import Match, Place, Rule
from steptp_dagster.strategies.algebra.trees import At, is_literal
from steptp_dagster.strategies.dataflow import MINUS, flows

#: What decides: whole numbers, and conditions.
_WHOLE: Final = frozenset({"floor", "ceil", "round"})
_DECIDING: Final = frozenset({"//", "%", "&", "|"})


@dataclass(frozen=True, slots=True)
class Found:
    """A match of a rule at a part of an equation's value."""

    place: Place
    rule: Rule
    match: Match


class Matcher:
    """Finds every match of some rules in a nest."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        """``rules`` in the order in which their matches are to come."""
        self._rules = rules
        self._by_head: dict[str, tuple[Rule, ...]] = {}

    def __call__(self, nest: Nest) -> Mapping[Path, tuple[Found, ...]]:
        """The matches in the order of parts, by the equation's path below the nest."""
        found: dict[Path, tuple[Found, ...]] = {}
        for flow in flows(nest):
            if any(map(self._at_head, flow.operators)):
                own = tuple(self._in_equation(flow.equation))
                if own:
                    found[flow.path] = own
        return found

    def _at_head(self, head: str) -> tuple[Rule, ...]:
        """The rules that may match where an operator or function stands."""
        known = self._by_head.get(head)
        if known is None:
            known = self._by_head[head] = tuple(r for r in self._rules if r.may_match(head))
        return known

    def _in_equation(self, equation: Equation) -> Iterator[Found]:
        for head, at, expr, around in _parts(equation.value, None, ()):
            rules = self._at_head(head)
            if not rules or is_literal(expr):
                continue
            place = Place(expr, around, equation, at)
            for rule in rules:
                for match in rule.matches(place):
                    if place.node.dtype.is_float:
                        yield Found(place, rule, match)


def places(equation: Equation, wanted: Callable[[Expr], bool]) -> Iterator[Place]:
    """The ``wanted`` ones of the operations on floats in a value that may be rewritten, pre-order.

    Left out is what decides: conditions, subscripts, and what is rounded to a whole number.
    """
    for _, at, expr, around in _parts(equation.value, None, ()):
        if wanted(expr) and not is_literal(expr):
            place = Place(expr, around, equation, at)
            if place.node.dtype.is_float:
                yield place


def _parts(expr: Expr, around: Expr | None, at: At) -> Iterator[tuple[str, At, Expr, Expr | None]]:
    """Operations that decide nothing: what stands at their head, their place, and what is around.

    Pre-order; literals among them.
    """
    if isinstance(expr, Binary):
        if expr.op not in _DECIDING:
            yield expr.op, at, expr, around
            yield from _parts(expr.left, expr, (*at, 0))
            yield from _parts(expr.right, expr, (*at, 1))
    elif isinstance(expr, Call):
        if expr.function in _WHOLE:
            return
        yield expr.function, at, expr, around
        for i, argument in enumerate(expr.arguments):
            if i or expr.function != "if_then_else":
                yield from _parts(argument, expr, (*at, i))
    elif isinstance(expr, Unary):
        yield MINUS, at, expr, around
        yield from _parts(expr.operand, expr, (*at, 0))
