"""Proving what rules need: each question has a prover, which gives facts or says why not.

A proof holds for all data of the program (``strategies.values``) or, where sizes are the question,
for all data within the headroom (``magnitude``).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, frexp, log10
from typing import Final

from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Inf, Int, Real, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.leir.typing import Typed, typed_equation
from steptp_dagster.leir.walk import Path, children, iter_expr
from steptp_dagster.strategies.algebra import growth
from steptp_dagster.strategies.algebra.data import data_of, values_of
from steptp_dagster.strategies.algebra.magnitude import HEADROOM, sizes_of
from steptp_dagster.strategies.algebra.rules import Match, Need
from steptp_dagster.strategies.algebra.trees import (
    At,
    bases,
    constant_sum,
    divided_by_factor,
    is_literal,
    signed,
)
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import pair
from steptp_dagster.strategies.facts import Fact, Value
from steptp_dagster.strategies.intervals import infinite
from steptp_dagster.strategies.value_facts import ValueFact

#: Facts that show that something holds, or words for why it is not known to.
Proof = tuple[Fact, ...] | str
#: Claims about a value, by name (``value_is`` facts). A moderate one is a number that stays away
#: from zero and from the ends of every type; a small one stays near the size of scaled data.
CLAIMS: Final[Mapping[str, Callable[[ValueFact], bool]]] = {
    "positive": lambda f: f.positive,
    "nonnegative": lambda f: f.nonnegative,
    "negative": lambda f: f.upper < 0.0,
    "nonpositive": lambda f: f.nonpositive,
    "nonzero": lambda f: f.nonzero,
    "finite": lambda f: f.finite,
    "moderate": lambda f: (
        f.finite and f.least_magnitude >= 2.0**-_MODERATE and f.magnitude <= 2.0**_MODERATE
    ),
    "small": lambda f: f.finite and f.magnitude <= _SMALL,
    **growth.CLAIMS,
}
_SIGNS: Final = frozenset({"positive", "nonnegative", "negative", "nonpositive", "nonzero"})
#: Rules of values that do not say by themselves what sign there is.
_VAGUE: Final = frozenset(
    {
        "a sum",
        "a difference",
        "a product",
        "a quotient",
        "a power",
        "a number",
        "a logarithm",
        "a condition",
        "its declared range",
        "the values of a constant",
    }
)
#: Bounds between these are shown.
_SMALLEST, _LARGEST = 1e-4, 1e5
_MODERATE: Final = 24
_SMALL: Final = 64.0
#: A literal this large or larger can be what data is offset by, and cancel with it.
_LARGE_LITERAL: Final = 16.0
#: Most bits that a difference of inverses may lose to cancellation.
_BITS: Final = 3


def reason(found: ValueFact, claim: str) -> Value:
    """Why a value has a property: the rule that says so, or bounds, as ``(rule, low, high)``.

    A rule such as ``a sum`` says nothing of sizes, and of signs only what its operands do. Bounds
    are rounded outwards to three digits; those far from ordinary numbers are left out.
    """
    low, high = found.lower, found.upper
    ordinary = all(x == 0.0 or _SMALLEST <= abs(x) <= _LARGEST for x in (low, high))
    if not ordinary or (claim in _SIGNS and found.why not in _VAGUE):
        return found.why
    return (found.why, _rounded(low, up=False), _rounded(high, up=True))


def _rounded(x: float, *, up: bool) -> float:
    if x == 0.0:
        return 0.0
    scale = 10.0 ** (2 - floor(log10(abs(x))))
    return (ceil if up else floor)(x * scale) / scale


@dataclass(frozen=True, slots=True)
class Question:
    """A program and the equation that the parts in question belong to."""

    program: SignedProgram
    path: Path
    equation: Equation

    def claim(self, expr: Expr, name: str) -> Fact | None:
        """The fact that a part has a property (``CLAIMS``), or None."""
        found = values_of(self.program).of(expr, self.path)
        if not CLAIMS[name](found):
            return None
        return before_fact("value_is", self.path, expr_text(expr), name, value=reason(found, name))

    def about(self, kind: str, expr: Expr, value: bool | int | tuple[str, ...]) -> Fact:
        """A fact about one part."""
        return before_fact(kind, self.path, expr_text(expr), value=value)

    def order(self, lower: Expr, upper: Expr) -> Fact:
        """The fact that one value is never above another."""
        texts = expr_text(lower), expr_text(upper)
        return before_fact("not_above", self.path, *texts, value=True)


Prover = Callable[[Question, tuple[Expr, ...]], Proof]


def proof_of(question: Question, need: Need) -> Proof:
    """The facts that prove a need, or words. Raises KeyError for an unknown kind of proof."""
    return PROVERS[need.proof](question, need.parts)


def _claims(name: str, otherwise: str) -> Prover:
    """That every part has one of the properties in ``CLAIMS``."""

    def prove(question: Question, parts: tuple[Expr, ...]) -> Proof:
        facts = []
        for expr in parts:
            fact = question.claim(expr, name)
            if fact is None:
                return f"{expr_text(expr)} {otherwise}"
            facts.append(fact)
        return tuple(facts)

    return prove


def takes_infinity(program: SignedProgram, path: Path, expr: Expr) -> bool:
    """Whether an infinity, of the data or written by the program, may reach a value.

    NaN is another matter: what is computed with it is NaN before and after.
    """
    data = data_of(program)
    maskable = data.maskable(expr)
    if not (maskable or data.infinite(expr)):
        return False
    found = values_of(program).of(expr, path)
    return infinite(found.interval) and (maskable or not found.exact_finite)


def _unmasked(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """No infinity reaches the parts."""
    facts = []
    for expr in parts:
        if takes_infinity(question.program, question.path, expr):
            return f"an infinity may reach {expr_text(expr)}"
        facts.append(question.about("takes_infinity", expr, value=False))
    return tuple(facts)


def _finite(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """The parts are numbers: for all data, or for all within the headroom and without masks."""
    facts: list[Fact] = []
    for expr in parts:
        fact = question.claim(expr, "finite")
        if fact is not None:
            facts.append(fact)
            continue
        power = sizes_of(question.program).power(expr, question.path)
        if power is None:
            return f"{expr_text(expr)} may be infinite"
        found = _unmasked(question, (expr,))
        if isinstance(found, str):
            return found
        facts += (*found, question.about("power_bound", expr, power))
    return tuple(facts)


def one_sign(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """All parts have one sign, so that no digit of their sum cancels and it exceeds each of them.

    Either that sign is known, or all are multiples of one factor by values of one known sign.
    """
    found = _known_sign(question, parts)
    if found is not None:
        return found
    for factor in bases(parts[0]):
        rest = [divided_by_factor(expr, factor) for expr in parts]
        cofactors = tuple(r for r in rest if r is not None)
        if len(cofactors) < len(parts) or is_literal(factor):
            continue
        found = _known_sign(question, cofactors)
        if found is not None:
            shared = tuple(
                before_fact(
                    "factor_of",
                    question.path,
                    expr_text(factor),
                    expr_text(p),
                    expr_text(c),
                    value=True,
                )
                for p, c in zip(parts, cofactors, strict=True)
            )
            # each cofactor with its sign, those first of which it is not seen
            paired = sorted(
                zip(cofactors, shared, found, strict=True), key=lambda one: is_literal(one[0])
            )
            return tuple(fact for _, own, sign in paired for fact in (own, sign))
    texts = " and ".join(expr_text(expr) for expr in parts)
    return f"{texts} are not known to have one sign, so that digits may cancel"


def _known_sign(question: Question, parts: tuple[Expr, ...]) -> tuple[Fact, ...] | None:
    for claim in ("nonnegative", "nonpositive"):
        facts: list[Fact] = []
        for expr in parts:
            fact = question.claim(expr, claim)
            if fact is None:
                break
            facts.append(fact)
        else:
            return tuple(facts)
    return None


def _unrelated(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """The parts depend on different data, so that they cancel by chance only.

    A difference of two of them is another matter: data of one kind often has one offset.
    """
    data = data_of(question.program)
    seen: frozenset[str] = frozenset()
    facts = []
    for expr in parts:
        own = data.sources(expr)
        literal = expr.operand if isinstance(expr, Unary) else expr
        if isinstance(literal, Int | Real):
            if literal.value >= _LARGE_LITERAL:
                return f"{expr_text(expr)} may be an offset of the data, whose digits cancel"
        elif isinstance(expr, Unary) or own & seen or not own:
            return f"digits of {expr_text(expr)} may cancel with those of the other terms"
        seen |= own
        facts.append(question.about("sources_of", expr, tuple(sorted(own))))
    return tuple(facts)


def _no_cancellation(question: Question, parts: tuple[Expr, ...]) -> Proof:
    found = one_sign(question, parts)
    return found if not isinstance(found, str) else _unrelated(question, parts)


def are_alike(first: Variable, second: Variable) -> bool:
    """Whether two variables are data of one role and type without a range, of sizes alike.

    An input and a parameter are not: what is computed is often much larger than a weight.
    """
    return (
        first.role == second.role
        and first.role in ("input", "param")
        and first.dtype == second.dtype
        and first.low is None
        and second.low is None
    )


def _keeps_digits(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """A sum with the first part has kept the digits of the second: the first is no larger."""
    term, rest = parts
    found = _at_least(question, (rest, term))
    if not isinstance(found, str):
        return found
    own = rest.operand if isinstance(rest, Unary) else rest
    if isinstance(term, Access) and isinstance(own, Access):
        known = question.program.signature.by_name
        variables = known.get(term.name), known.get(own.name)
        if variables[0] and variables[1] and are_alike(variables[0], variables[1]):
            return (before_fact("alike_data", term.name, own.name, value=True),)
    return f"{expr_text(term)} may be so large that it takes the digits of {expr_text(rest)}"


def _at_least(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """The first part is never below the second, and that one is not negative."""
    larger, smaller = parts
    facts = values_of(question.program)
    high, low = facts.of(larger, question.path), facts.of(smaller, question.path)
    if not (low.nonnegative and high.lower >= low.upper and not high.nan):
        return f"{expr_text(larger)} may be smaller than {expr_text(smaller)}"
    value = (expr_text(larger), expr_text(smaller))
    return (before_fact("at_least", question.path, *value, value=high.lower),)


def _constant_sum(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """Both parts have one sign and add up to a constant: a sum of their inverses loses no digit."""
    found = _known_sign(question, parts)
    total = constant_sum(*parts)
    if found is None or total is None:
        texts = " and ".join(expr_text(expr) for expr in parts)
        return f"{texts} are not known to have one sign, so that their inverses may cancel"
    first, second = map(expr_text, parts)
    value = format(total, "f")
    return (*found, before_fact("constant_sum", question.path, first, second, value=value))


def _constant_difference(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """The parts differ by a constant and are not much larger than it.

    A difference of their inverses loses as many bits as they are larger, ``_BITS`` at most.
    """
    first, second = parts
    over = constant_sum(second, first, minus=True)
    if over is None:
        return f"{expr_text(first)} and {expr_text(second)} do not differ by a constant"
    sizes = sizes_of(question.program)
    texts = tuple(map(expr_text, parts))
    bounds: list[Fact] = []
    lost = 0
    for expr in parts:
        power = sizes.power(expr, question.path)
        if power is None or bits_lost(power, over) > _BITS:
            return (
                f"{expr_text(expr)} may be so large that the inverses of {expr_text(first)} and"
                f" {expr_text(second)} are nearly equal"
            )
        lost = max(lost, bits_lost(power, over))
        bounds.append(question.about("power_bound", expr, power))
    return (
        before_fact("constant_difference", question.path, *texts, value=format(over, "f")),
        before_fact("lost_bits", question.path, *texts, value=lost),
        *bounds,
    )


def bits_lost(power: int, over: Decimal) -> int:
    """Bits that a difference of inverses loses at most, of values up to two to a power in size.

    The values differ by ``over``: 1/b-1/c is the part (c-b)/c of 1/b.
    """
    _, exponent = frexp(float(over))
    return max(0, power - (exponent - 1))


PROVERS: Final[dict[str, Prover]] = {
    "nonzero": _claims("nonzero", "may be zero"),
    "positive": _claims("positive", "may be zero or negative"),
    "nonnegative": _claims("nonnegative", "may be negative"),
    "moderate": _claims("moderate", "is not known to stay away from zero and infinity"),
    "finite": _finite,
    "unmasked": _unmasked,
    "one-sign": one_sign,
    "no-cancellation": _no_cancellation,
    "keeps-digits": _keeps_digits,
    "at-least": _at_least,
    "constant-sum": _constant_sum,
    "constant-difference": _constant_difference,
    **growth.provers(),
}


# -- what every rule needs -------------------------------------------------------------------


def types_of_operands(place: Typed, match: Match, after: Equation) -> Proof:
    """Every operand that is more than literals is computed in the type of the node."""
    wanted = place.dtype.name
    for expr in (*(expr for _, expr in match.letters), *match.unlettered):
        if is_literal(expr):
            continue
        found = _type_in(place, expr) or _type_in(typed_equation(after).value, expr)
        if found is None and isinstance(expr, Unary):
            term = expr.operand  # it is subtracted
            found = _type_in(place, term) or _type_in(typed_equation(after).value, term)
        if found != wanted:
            return f"{expr_text(expr)} is computed in {found}, the whole in {wanted}"
    return ()


def _type_in(typed: Typed, expr: Expr) -> str | None:
    for node in typed.walk():
        if node.expr == expr:
            return node.dtype.name
    return None


def new_parts(before: Expr, after: Expr) -> tuple[Expr, ...]:
    """Operations of ``after`` that ``before`` does not have, pre-order, each once.

    Subscripts are no operations, nor are minus signs and what is made of literals alone.
    """
    known = set(iter_expr(before))
    return tuple(dict.fromkeys(e for e in _operations(after) if e not in known))


def _operations(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Access | Int | Real | Inf | Index) or is_literal(expr):
        return
    if not isinstance(expr, Unary):
        yield expr
    for child in children(expr):
        yield from _operations(child)


def in_range(question: Question, node: Typed, match: Match) -> Proof:
    """No new intermediate value leaves the range of its type.

    The value of the node itself is that of before, up to rounding. The ``smaller`` ones stay
    below it where their terms have one sign.
    """
    dtype = node.dtype.name
    found = new_parts(question.equation.value, match.result)
    sizes = sizes_of(question.program)
    facts: list[Fact] = []
    signs: Proof | None = None
    bounded = False
    for expr in found:
        if expr == match.result or expr in match.within:
            continue
        power = sizes.beside(expr, question.path)
        if power is not None:
            facts.append(question.about("new_bound", expr, power))
            # what lies far below comes from declared ranges or from narrow types
            bounded = bounded or power > HEADROOM[dtype] // 2
            continue
        if expr in match.smaller:
            signs = one_sign(question, match.one_sign) if signs is None else signs
            if not isinstance(signs, str):
                facts += signs
                continue
        return f"{expr_text(expr)} may leave the range of {dtype}"
    if bounded:
        facts.append(pair("headroom", dtype, value=HEADROOM[dtype]))
    return tuple(dict.fromkeys(facts))


def decides_nothing(question: Question, at: At = ()) -> Proof:
    """No decision depends on the last digits of the equation's target, and no difference.

    Neither does a difference in the equation itself, around the part at a place in its value.
    """
    tensor = question.equation.target.name
    data = data_of(question.program)
    for found, words in (
        (data.decided_by(tensor), "takes a decision on values"),
        (data.amplified_by(tensor), "takes a difference of related values"),
    ):
        if found:
            number = ".".join(str(i + 1) for i in found[0])
            return f"statement {number} {words} that depend on {tensor}"
    if values_of(question.program).makes_shift(question.path):
        return f"{tensor} would not be the maximum of the scores that it is subtracted from"
    if data.amplified_at(question.equation, at):
        return "a related value is subtracted from the part, so that its last digits may be left"
    return (
        before_fact("decided_by", tensor, value=()),
        before_fact("amplified_by", tensor, value=()),
    )


def negated_where(parts: tuple[tuple[Expr, bool], ...]) -> tuple[Expr, ...]:
    """Terms with their signs: ``-e`` where the flag is set."""
    return tuple(signed(expr, minus) for expr, minus in parts)
