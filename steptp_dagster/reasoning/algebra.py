"""Derivations about algebra: laws, what their letters stand for, and what is known of values.

Parts of an equation's right side are named by their canonical text. A part that a step is about
to make need not stand in the program yet; what is known of it follows from what it reads.
"""

import math
import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Expr,
    Index,
    Inf,
    Int,
    Real,
    Unary,
)
from steptp_dagster.leir.parser import ParseError, parse_expr
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.walk import children, iter_expr, with_children
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    equation_at,
    name_of,
    path_of,
)
from steptp_dagster.strategies.algebra.conditions import CLAIMS, reason
from steptp_dagster.strategies.algebra.conditions import new_parts as find_new_parts
from steptp_dagster.strategies.algebra.conditions import takes_infinity as may_be_infinite
from steptp_dagster.strategies.algebra.data import data_of, values_of
from steptp_dagster.strategies.algebra.magnitude import HEADROOM, sizes_of
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.algebra.trees import constant_sum as find_constant_sum
from steptp_dagster.strategies.algebra.trees import divided_by_factor, part
from steptp_dagster.strategies.facts import Value
from steptp_dagster.strategies.registry import strategies
from steptp_dagster.strategies.values import ValueFacts

#: Draws of operand values on which two sides of a law are compared, and how many must be usable.
_DRAWS: Final = 16
_FEWEST_DRAWS: Final = 3
_TOLERANCE: Final = 1e-10
#: Bounds of elements beyond this are cut off for the comparison.
_WIDEST: Final = 64.0


@lru_cache(maxsize=1)
def _laws() -> Mapping[str, str]:
    found = [s for s in strategies().values() if isinstance(s, AlgebraicStrategy)]
    laws = {rule.name: rule.law for one in found for rule in one.rules}
    return {**laws, **{one.loop_law[0]: one.loop_law[1] for one in found if one.loop_law}}


def law(_: SignedProgram, __: SignedProgram, rule: Value) -> str:
    """The law of an algebraic rule, in letters."""
    known = _laws()
    if name_of(rule) not in known:
        raise DerivationError(f"no algebraic rule {rule!r}")
    return known[name_of(rule)]


def _expr(text: Value) -> Expr:
    try:
        return parse_expr(name_of(text))
    except ParseError as error:
        raise DerivationError(f"no expression: {text!r}") from error


def part_text(signed: SignedProgram, path: Value, at: Value) -> str:
    """The text of the part of a right side at a place (positions from the root down)."""
    try:
        return expr_text(part(equation_at(signed, path).value, path_of(at)))
    except IndexError as error:
        raise DerivationError(f"no part at {at!r}") from error


def _part(signed: SignedProgram, path: Value, text: Value) -> Expr:
    for node in iter_expr(equation_at(signed, path).value):
        if expr_text(node) == text:
            return node
    raise DerivationError(f"{text!r} is no part of the right side of {path!r}")


def stands_for(signed: SignedProgram, path: Value, text: Value, letter: Value) -> bool:
    """Whether a text that a letter of a law stands for is a part of a right side."""
    name_of(letter)
    _part(signed, path, text)
    return True


def part_dtype(signed: SignedProgram, path: Value, text: Value) -> str:
    """The dtype in which a part of a right side is computed."""
    wanted = _part(signed, path, text)
    for node in typed_equation(equation_at(signed, path)).value.walk():
        if node.expr == wanted:
            return node.dtype.name
    raise DerivationError(f"{text!r} has no type")


def value_is(signed: SignedProgram, path: Value, text: Value, claim: Value) -> Value:
    """Why a value has a property (``conditions.CLAIMS``), for all data of the program.

    A rule in words, or the rule and bounds.
    """
    equation_at(signed, path)
    test = CLAIMS.get(name_of(claim))
    found = values_of(signed).of(_expr(text), path_of(path))
    if test is None or not test(found):
        raise DerivationError(f"{text!r} is not known to be {claim!r}")
    return reason(found, name_of(claim))


def power_bound(signed: SignedProgram, path: Value, text: Value) -> int:
    """A power of two that a magnitude does not exceed, for data within the headroom."""
    equation_at(signed, path)
    found = sizes_of(signed).power(_expr(text), path_of(path))
    if found is None:
        raise DerivationError(f"no bound is known for {text!r}")
    return found


def new_bound(signed: SignedProgram, path: Value, text: Value) -> int:
    """The same, where the operations that the equation has give numbers."""
    equation_at(signed, path)
    found = sizes_of(signed).beside(_expr(text), path_of(path))
    if found is None:
        raise DerivationError(f"no bound is known for {text!r}")
    return found


def factor_of(
    signed: SignedProgram, path: Value, factor: Value, product: Value, rest: Value
) -> bool:
    """Whether a product is a factor times the rest."""
    equation_at(signed, path)
    found = divided_by_factor(_expr(product), _expr(factor))
    return found is not None and expr_text(found) == name_of(rest)


def _constant(signed: SignedProgram, path: Value, b: Value, c: Value, *, minus: bool) -> str:
    equation_at(signed, path)
    found = find_constant_sum(_expr(b), _expr(c), minus=minus)
    if found is None:
        what = "difference" if minus else "sum"
        raise DerivationError(f"{b!r} and {c!r} have no constant {what}")
    return format(found, "f")


def constant_sum(signed: SignedProgram, path: Value, first: Value, second: Value) -> str:
    """The number that two values add up to, whatever they read."""
    return _constant(signed, path, first, second, minus=False)


def constant_difference(signed: SignedProgram, path: Value, smaller: Value, larger: Value) -> str:
    """The number by which the second of two values exceeds the first, whatever they read."""
    return _constant(signed, path, larger, smaller, minus=True)


def at_least(signed: SignedProgram, path: Value, larger: Value, smaller: Value) -> float:
    """A bound between two values, the first of which is never below the second."""
    equation_at(signed, path)
    facts, where = values_of(signed), path_of(path)
    high, low = facts.of(_expr(larger), where), facts.of(_expr(smaller), where)
    if not high.lower >= low.upper:
        raise DerivationError(f"{larger!r} may be smaller than {smaller!r}")
    return high.lower


def not_above(signed: SignedProgram, path: Value, lower: Value, upper: Value) -> bool:
    """Whether one value is never above another one."""
    equation_at(signed, path)
    return values_of(signed).not_above(_expr(lower), _expr(upper), path_of(path))


def is_shift(signed: SignedProgram, path: Value, text: Value) -> bool:
    """Whether a value is a score minus the maximum of its row."""
    equation_at(signed, path)
    return values_of(signed).is_shift(_expr(text), path_of(path))


def headroom(_: SignedProgram, __: SignedProgram, dtype: Value) -> int:
    """The power of two that data in a type is taken not to exceed."""
    if dtype not in HEADROOM:
        raise DerivationError(f"no headroom for {dtype!r}")
    return HEADROOM[name_of(dtype)]


def takes_infinity(signed: SignedProgram, path: Value, text: Value) -> bool:
    """Whether an infinity, of the data or written by the program, may reach a value."""
    equation_at(signed, path)
    return may_be_infinite(signed, path_of(path), _expr(text))


def sources_of(signed: SignedProgram, path: Value, text: Value) -> tuple[str, ...]:
    """Names of the inputs and parameters that a value depends on, sorted."""
    equation_at(signed, path)
    return tuple(sorted(data_of(signed).sources(_expr(text))))


def decided_by(signed: SignedProgram, tensor: Value) -> tuple[Value, ...]:
    """Paths of the equations where values that depend on a tensor decide something."""
    return data_of(signed).decided_by(name_of(tensor))


def amplified_by(signed: SignedProgram, tensor: Value) -> tuple[Value, ...]:
    """Paths of the equations with a difference of related values that depend on a tensor."""
    return data_of(signed).amplified_by(name_of(tensor))


def new_parts(before: SignedProgram, after: SignedProgram, path: Value) -> tuple[str, ...]:
    """Operations that an equation has after the step and had not before."""
    old, new = equation_at(before, path).value, equation_at(after, path).value
    return tuple(map(expr_text, find_new_parts(old, new)))


def same_algebra(before: SignedProgram, after: SignedProgram, path: Value) -> bool:
    """Whether the right sides at ``path`` are one function of the elements that they read.

    Compared by evaluation, at random values of all elements and indices, in binary64. Where the
    right sides as a whole have no values at most of them, the parts that differ are compared.
    """
    old, new = equation_at(before, path).value, equation_at(after, path).value
    facts = values_of(before)
    found = _compared(old, new, facts)
    while found is None:
        inner = _differing(old, new)
        if inner is None:
            raise DerivationError("the right sides have no values to compare")
        old, new = inner
        found = _compared(old, new, facts)
    return found


def _compared(old: Expr, new: Expr, facts: ValueFacts) -> bool | None:
    """Whether two expressions have equal values; None with too few values to tell."""
    usable = 0
    for draw in range(_DRAWS):
        try:
            a, b = (_Evaluation(draw, facts).of(expr) for expr in (old, new))
        except (ArithmeticError, ValueError):
            continue
        if math.isnan(a) or math.isinf(a):
            continue
        usable += 1
        if not abs(a - b) <= _TOLERANCE * max(1.0, abs(a), abs(b)):
            return False
    return True if usable >= _FEWEST_DRAWS else None


def _differing(old: Expr, new: Expr) -> tuple[Expr, Expr] | None:
    """The only operands in which two expressions differ, or None."""
    first, second = children(old), children(new)
    if len(first) != len(second) or with_children(old, second) != new:
        return None
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    return pairs[0] if len(pairs) == 1 else None


class _Evaluation:
    """Expressions as numbers. Elements and indices are drawn at random within their bounds.

    Odd draws have both signs where the bounds admit them.
    """

    def __init__(self, draw: int, facts: ValueFacts) -> None:
        self.draw = draw
        self.facts = facts

    def _drawn(self, expr: Access | Index) -> float:
        drawn = random.Random(f"{self.draw} {expr_text(expr)}")
        value = drawn.uniform(0.5, 1.5)
        if self.draw % 2 and drawn.random() < 0.5:
            value = -value
        if isinstance(expr, Index):
            return abs(value)
        known = self.facts.tensor(expr.name)
        if known.lower <= value <= known.upper:
            return value
        if known.lower <= -value <= known.upper:
            return -value
        low, high = max(known.lower, -_WIDEST), min(known.upper, _WIDEST)
        return low + (high - low) * drawn.random() if low <= high else value

    def of(self, expr: Expr) -> float:
        """The value. Raises ArithmeticError or ValueError outside the domain."""
        match expr:
            case Int():
                return float(expr.value)
            case Real():
                return expr.value
            case Inf():
                return math.inf
            case Access() | Index():
                return self._drawn(expr)
            case Unary():
                return -self.of(expr.operand)
            case Compare():
                values = [self.of(operand) for operand in expr.operands]
                pairs = zip(values, expr.ops, values[1:], strict=False)
                return float(all(_COMPARE[op](a, b) for a, op, b in pairs))
            case Binary(op="&" | "|"):
                sides = bool(self.of(expr.left)), bool(self.of(expr.right))
                return float(all(sides) if expr.op == "&" else any(sides))
            case Binary():
                return float(_BINARY[expr.op](self.of(expr.left), self.of(expr.right)))
            case Call(function="if_then_else"):
                condition, yes, no = expr.arguments
                return self.of(yes if self.of(condition) else no)
            case Call():
                return float(_CALLS[expr.function](*(self.of(a) for a in expr.arguments)))


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent)


_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_BINARY: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": _power,
}
_CALLS: Final[Mapping[str, Callable[..., float]]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "erf": math.erf,
    "max": max,
    "min": min,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
}

KINDS: Final[Mapping[str, Derivation]] = {
    f.__name__: f
    for f in (
        part_text,
        stands_for,
        part_dtype,
        value_is,
        not_above,
        is_shift,
        power_bound,
        new_bound,
        factor_of,
        constant_sum,
        constant_difference,
        at_least,
        takes_infinity,
        sources_of,
        decided_by,
        amplified_by,
    )
}
PAIRED: Final[Mapping[str, Derivation]] = {
    f.__name__: f for f in (law, headroom, new_parts, same_algebra)
}
