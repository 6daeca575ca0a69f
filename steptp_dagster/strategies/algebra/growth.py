"""Proving what exponentials, logarithms and powers need: that nothing grows out of its type.

``exp(a+b)`` may be a number where ``exp(a)`` overflows, and ``log(a/b)`` may be small where
``log(a)`` and ``log(b)`` are large and cancel. Each prover here gives facts, or words for why
it cannot.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from steptp_dagster.leir.ast import Expr
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.strategies.algebra.data import data_of, values_of
from steptp_dagster.strategies.facts import Fact
from steptp_dagster.strategies.value_facts import ValueFact

if TYPE_CHECKING:
    from steptp_dagster.strategies.algebra.conditions import Proof, Prover, Question

#: Exponents up to this size give exponentials of moderate size.
_MILD: Final = 16.0
#: Exponentials up to this exponent are numbers in every type of evaluation, and those down to its
#: negative are not zero.
_EXPONENT: Final = 64.0
#: Values between its inverse and this have logarithms not far from 0.
_LOG_SIZED: Final = 8.0
#: Claims about a value, by name, beside those of ``conditions``.
CLAIMS: Final[Mapping[str, Callable[[ValueFact], bool]]] = {
    "mild": lambda f: f.finite and f.magnitude <= _MILD,
    "not large": lambda f: f.upper <= _EXPONENT,
    "near one": lambda f: not f.nan and f.lower >= 1.0 / _LOG_SIZED and f.upper <= _LOG_SIZED,
    "neither tiny nor far below zero": lambda f: (
        not f.nan and f.least_magnitude >= 1.0 / _LOG_SIZED and f.lower >= -_EXPONENT
    ),
    "within one": lambda f: f.nonnegative and f.upper <= 1.0,
    "one or more": lambda f: f.lower >= 1.0,
}


def _all(question: "Question", parts: tuple[Expr, ...], *names: str) -> tuple[Fact, ...] | None:
    """The facts that each part has the property at its place, the last one repeated."""
    facts = []
    for i, expr in enumerate(parts):
        fact = question.claim(expr, names[min(i, len(names) - 1)])
        if fact is None:
            return None
        facts.append(fact)
    return tuple(facts)


def alike(*names: str, otherwise: str) -> "Prover":
    """A prover that all parts have one of some properties, the same for all of them."""

    def prove(question: "Question", parts: tuple[Expr, ...]) -> "Proof":
        for name in names:
            facts = _all(question, parts, name)
            if facts is not None:
                return facts
        return f"{_texts(parts)} {otherwise}"

    return prove


def _log_product(question: "Question", parts: tuple[Expr, ...]) -> "Proof":
    """The logarithms of the factors do not cancel but by chance."""
    for name in ("within one", "one or more", "near one"):
        facts = _all(question, parts, name)
        if facts is not None:
            return facts
    data = data_of(question.program)
    seen: frozenset[str] = frozenset()
    found: list[Fact] = []
    for expr in parts:
        own = data.sources(expr)
        if not own or own & seen:
            return f"the logarithms of {_texts(parts)} may cancel, and with them their digits"
        seen |= own
        found.append(question.about("sources_of", expr, tuple(sorted(own))))
    return tuple(found)


def _log_quotient(question: "Question", parts: tuple[Expr, ...]) -> "Proof":
    """The logarithms of dividend and divisor are of opposite signs, or both small."""
    for names in (("within one", "one or more"), ("one or more", "within one"), ("near one",)):
        facts = _all(question, parts, *names)
        if facts is not None:
            return facts
    return f"the logarithms of {_texts(parts)} may be equal, and their digits cancel"


def _kept_by_exponential(question: "Question", parts: tuple[Expr, ...]) -> "Proof":
    """An exponential of each part has its digits: it is no sum of one and next to nothing.

    Nor is it zero. Data without a range may be either, however unlikely it is.
    """
    facts = []
    for expr in parts:
        fact = question.claim(expr, "neither tiny nor far below zero")
        if fact is None:
            return (
                f"{expr_text(expr)} may be so small, or so far below zero, that its exponential"
                " has not its digits"
            )
        facts.append(fact)
    return tuple(facts)


def _no_shift(question: "Question", parts: tuple[Expr, ...]) -> "Proof":
    """A difference is no score minus the maximum of its row, which keeps a softmax in range."""
    for expr in parts:
        if values_of(question.program).is_shift(expr, question.path):
            return f"{expr_text(expr)} keeps the exponential from overflowing; it is not undone"
    return tuple(question.about("is_shift", expr, value=False) for expr in parts)


def _between(question: "Question", parts: tuple[Expr, ...]) -> "Proof":
    """The second value lies between the first and the third, on whichever side they are."""
    facts = values_of(question.program)
    for low, middle, high in (parts, parts[::-1]):
        if facts.not_above(low, middle, question.path) and facts.not_above(
            middle, high, question.path
        ):
            return (question.order(low, middle), question.order(middle, high))
    first, between, last = map(expr_text, parts)
    return f"{between} is not known to lie between {first} and {last}"


def _texts(parts: tuple[Expr, ...]) -> str:
    return " and ".join(expr_text(expr) for expr in parts)


def provers() -> dict[str, "Prover"]:
    """The provers by name."""
    return {
        "exponents": alike(
            "nonpositive",
            "mild",
            otherwise="are neither known to be at most 0 nor to be small, so that one exponential"
            " may overflow where the other is tiny",
        ),
        "not-large": alike("not large", otherwise="may be so large that its exponential overflows"),
        "small": alike("small", otherwise="may be large, and its exponential leave the type"),
        "positive": alike("positive", otherwise="may be zero or less"),
        "kept-by-exponential": _kept_by_exponential,
        "log-product": _log_product,
        "log-quotient": _log_quotient,
        "no-shift": _no_shift,
        "mild": alike("mild", otherwise="need not be small"),
        "between": _between,
    }
