"""Proving what rules need: each question has a prover, which gives facts or says why not.

A proof holds for all data of the program (``strategies.values``), or, where overflow is the
question, for all data within the headroom (``magnitude``).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import Access, Equation, Expr, Index, Inf, Int, Real, Unary
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import Typed, typed_equation
from steptp_dagster.leir.walk import Path, children, iter_expr
from steptp_dagster.strategies.algebra.data import data_of
from steptp_dagster.strategies.algebra.magnitude import HEADROOM, LIMIT, power_of, sized_facts
from steptp_dagster.strategies.algebra.rules import Match, Need
from steptp_dagster.strategies.algebra.trees import is_literal
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import pair
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.value_facts import ValueFact
from steptp_dagster.strategies.values import facts_of

#: Facts that show that something holds, or words for why it is not known to.
Proof = tuple[Fact, ...] | str
#: Claims about a value, by name (``value_is`` facts).
CLAIMS: Final[Mapping[str, Callable[[ValueFact], bool]]] = {
    "positive": lambda f: f.positive,
    "nonnegative": lambda f: f.nonnegative,
    "negative": lambda f: f.upper < 0.0,
    "nonpositive": lambda f: f.nonpositive,
    "nonzero": lambda f: f.nonzero,
    "finite": lambda f: f.finite,
}
#: A literal this large or larger can be what data is offset by, and cancel with it.
_LARGE_LITERAL: Final = 16.0


@dataclass(frozen=True, slots=True)
class Question:
    """A program and the equation that the parts in question belong to."""

    program: SignedProgram
    path: Path
    equation: Equation

    def claim(self, expr: Expr, name: str) -> Fact | None:
        """The fact that a part has a property (``CLAIMS``), or None."""
        found = facts_of(self.program).of(expr, self.path)
        if not CLAIMS[name](found):
            return None
        return before_fact("value_is", self.path, expr_text(expr), name, value=found.why)


Prover = Callable[[Question, tuple[Expr, ...]], Proof]


def proof_of(question: Question, need: Need) -> Proof:
    """The facts that prove a need, or words. Raises KeyError for an unknown kind of proof."""
    return PROVERS[need.proof](question, need.parts)


def _nonzero(question: Question, parts: tuple[Expr, ...]) -> Proof:
    facts = []
    for expr in parts:
        fact = question.claim(expr, "nonzero")
        if fact is None:
            return f"{expr_text(expr)} may be zero"
        facts.append(fact)
    return tuple(facts)


def _finite(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """Numbers for all data within the headroom, and no infinity of the data reaches them."""
    data = data_of(question.program)
    facts: list[Fact] = []
    for expr in parts:
        fact = question.claim(expr, "finite")
        if fact is not None:
            facts.append(fact)
            continue
        power = power_of(question.program, expr, question.path)
        if power is None:
            return f"{expr_text(expr)} may be infinite"
        if data.maskable(expr):
            return f"{expr_text(expr)} may be infinite, since data of minus infinity reaches it"
        facts += (
            before_fact("takes_infinity", question.path, expr_text(expr), value=False),
            *_bounded_by(question, expr, power),
        )
    return tuple(facts)


def _one_sign(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """All parts have one sign: their sum does not cancel, and is no smaller than any of them."""
    for claim in ("nonnegative", "nonpositive"):
        facts = [question.claim(expr, claim) for expr in parts]
        found = tuple(fact for fact in facts if fact is not None)
        if len(found) == len(facts):
            return found
    texts = " and ".join(expr_text(expr) for expr in parts)
    return f"{texts} are not known to have one sign, so that digits may cancel"


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
                return f"{expr_text(expr)} may be an offset of the data that cancels"
        elif isinstance(expr, Unary) or own & seen:
            return f"digits of {expr_text(expr)} may cancel with those of the other terms"
        seen |= own
        facts.append(
            before_fact("sources_of", question.path, expr_text(expr), value=tuple(sorted(own)))
        )
    return tuple(facts)


def _no_cancellation(question: Question, parts: tuple[Expr, ...]) -> Proof:
    found = _one_sign(question, parts)
    return found if not isinstance(found, str) else _unrelated(question, parts)


def _bounded(question: Question, parts: tuple[Expr, ...]) -> Proof:
    """Finite, nonzero, and of a size that neither overflows nor underflows with others."""
    facts: list[Fact] = []
    for expr in parts:
        found = facts_of(question.program).of(expr, question.path)
        small = found.least_magnitude >= 2.0**-_MODERATE and found.magnitude <= 2.0**_MODERATE
        if not (found.finite and small):
            sized = sized_facts(question.program).of(expr, question.path)
            texts = f"{expr_text(expr)} is not known to stay away from zero and infinity"
            if not (sized.nonzero and sized.magnitude <= 2.0**_MODERATE and small):
                return texts
        facts += (
            before_fact("value_is", question.path, expr_text(expr), "nonzero", value=found.why),
            before_fact("value_is", question.path, expr_text(expr), "finite", value=found.why),
        )
    return tuple(facts)


#: Values between two to minus this power and two to this power are of moderate size.
_MODERATE: Final = 24

PROVERS: Final[dict[str, Prover]] = {
    "nonzero": _nonzero,
    "finite": _finite,
    "one-sign": _one_sign,
    "no-cancellation": _no_cancellation,
    "moderate": _bounded,
}


# -- what every rule needs -------------------------------------------------------------------


def types_of_operands(place: Typed, match: Match, after: Equation) -> Proof:
    """Every letter that stands for more than literals is computed in the type of the node."""
    wanted = place.dtype.name
    value = typed_equation(after).value
    for letter, expr in match.letters:
        if is_literal(expr):
            continue
        found = _type_in(place, expr) or _type_in(value, expr)
        if found != wanted:
            return f"{letter} = {expr_text(expr)} is computed in {found}, the whole in {wanted}"
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

    The value of the node itself is that of before, up to rounding; ``smaller`` ones stay below it.
    """
    dtype = node.dtype.name
    found = new_parts(question.equation.value, match.result)
    facts: list[Fact] = []
    for expr in found:
        if expr == match.result or expr in match.smaller:
            continue
        power = power_of(question.program, expr, question.path)
        if power is None or power > LIMIT[dtype]:
            return f"{expr_text(expr)} may leave the range of {dtype}"
        facts += _bounded_by(question, expr, power)
    if facts:
        facts.append(pair("headroom", dtype, value=HEADROOM[dtype]))
    return tuple(dict.fromkeys(facts))


def _bounded_by(question: Question, expr: Expr, power: int) -> tuple[Fact, ...]:
    return (before_fact("power_bound", question.path, expr_text(expr), value=power),)


def decides_nothing(question: Question) -> Proof:
    """No decision depends on the last digits of the equation's target."""
    tensor = question.equation.target.name
    where = data_of(question.program).decided_by(tensor)
    if where:
        number = ".".join(str(i + 1) for i in where[0])
        return f"statement {number} takes a decision on values that depend on {tensor}"
    return (before_fact("decided_by", tensor, value=()),)
