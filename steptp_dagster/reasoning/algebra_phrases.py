"""Phrases of the facts of ``reasoning.algebra``."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from steptp_dagster.leir.parser import parse_expr
from steptp_dagster.leir.walk import iter_expr
from steptp_dagster.reasoning.kinds import path_of
from steptp_dagster.reasoning.wording import code, codes, statement, statements
from steptp_dagster.strategies.algebra.trees import is_literal
from steptp_dagster.strategies.facts import Fact, Value


def _where(fact: Fact) -> str:
    return statement(path_of(fact.arguments[0]))


def _text(fact: Fact) -> str:
    return code(str(fact.arguments[1]))


def _place(fact: Fact) -> str:
    at = path_of(fact.arguments[1])
    if not at:
        return f"the right side of {_where(fact)} as a whole is {codes(fact.value)}"
    return f"a part of {_where(fact)} is {codes(fact.value)}"


def _stands_for(minus: str) -> Callable[[Fact], str]:
    def build(fact: Fact) -> str:
        letter = code(str(fact.arguments[2]))
        return f"{letter} {'stands' if fact.value else 'does not stand'} for {minus}{_text(fact)}"

    return build


#: Claims in other words than their names.
_CLAIMS: Final = {
    "moderate": "neither close to zero nor huge",
    "mild": "small",
    "nonnegative": "not negative",
    "nonpositive": "not positive",
    "nonzero": "not zero",
}
#: Rules of values that explain nothing beside bounds.
_PLAIN: Final = ("a sum", "a difference", "a product", "a quotient", "a power", "a number")


def _value_is(fact: Fact) -> str:
    claim = _CLAIMS.get(str(fact.arguments[2]), str(fact.arguments[2]))
    if is_literal(parse_expr(str(fact.arguments[1]))):
        return f"{_text(fact)} is {claim}"
    if not isinstance(fact.value, tuple):
        return f"{_text(fact)} is {claim} ({_reason(fact.value)})"
    why, low, high = fact.value
    if low == high:
        return f"{_text(fact)} is always {format(low, 'g')}"
    where = "" if why in _PLAIN else f" ({_reason(why)})"
    # what follows from bounds is what the precondition says
    return f"{_text(fact)} lies between {format(low, 'g')} and {format(high, 'g')}{where}"


def _reason(value: Value) -> str:
    """A reason in words; with numbers or signs in it, it is marked as what a fact holds."""
    text = "as declared" if value == "its declared range" else str(value)
    return text if text.replace(" ", "").replace("-", "").isalpha() else code(text)


def _factor(fact: Fact) -> str:
    _, factor, product, rest = (code(str(a)) for a in fact.arguments)
    return f"{product} {'is' if fact.value else 'is not'} {factor} times {rest}"


def _sources(fact: Fact) -> str:
    if not fact.value:
        return f"{_text(fact)} depends on no input"
    return f"{_text(fact)} depends on {codes(fact.value)} alone"


def _decided(fact: Fact) -> str:
    """What is decided; ``data`` leaves out choices with a branch that has what is compared."""
    name = code(str(fact.arguments[0]))
    if not fact.value:
        return (
            f"{name} decides nothing by its last digits (choices that contain what they compare"
            " aside)"
        )
    paths = fact.value if isinstance(fact.value, tuple) else ()
    where = statements(path_of(path) for path in paths)
    return f"{name} decides something at {where}"


def _amplified(fact: Fact) -> str:
    name = code(str(fact.arguments[0]))
    if not fact.value:
        return f"{name} enters no difference of related values (exponents and running values aside)"
    paths = fact.value if isinstance(fact.value, tuple) else ()
    where = statements(path_of(path) for path in paths)
    return f"{name} is in a difference of related values at {where}"


def _kept(fact: Fact) -> str:
    """Of new values inside each other the outermost are named; what they replace is known."""
    texts = fact.arguments[2]
    parts = tuple(map(str, texts)) if isinstance(texts, tuple) else ()
    inside = {part for text in parts for part in islice(iter_expr(parse_expr(text)), 1, None)}
    whole = tuple(text for text in parts if parse_expr(text) not in inside)
    inner = len(whole) < len(parts)
    be = "are" if inner or len(whole) > 1 else "is"
    said = be if fact.value else f"{be} not"
    also = f" and {'its' if len(whole) == 1 else 'their'} parts" if inner else ""
    return f"wherever the old value is in range, so {said} {codes(whole)}{also}"


PHRASES: Final[Mapping[str, Callable[[Fact], str]]] = {
    "part_text": _place,
    "stands_for": _stands_for(""),
    "stands_for_minus": _stands_for("minus "),
    "part_dtype": lambda f: f"{_text(f)} is computed in {codes(f.value)}",
    "value_is": _value_is,
    "not_above": lambda f: (
        f"{_text(f)} {'never exceeds' if f.value else 'may exceed'} {code(str(f.arguments[2]))}"
    ),
    "is_shift": lambda f: (
        f"{_text(f)} is {'a' if f.value else 'no'} score minus the maximum of its row"
    ),
    "power_bound": lambda f: f"{_text(f)} is at most two to the power of {f.value} in size",
    "new_bound": lambda f: (
        f"{_text(f)} is at most two to the power of {f.value} in size if no part overflows"
    ),
    "factor_of": _factor,
    "constant_sum": lambda f: (
        f"{_text(f)} and {code(str(f.arguments[2]))} add up to {codes(f.value)}"
    ),
    "constant_difference": lambda f: (
        f"{code(str(f.arguments[2]))} exceeds {_text(f)} by {codes(f.value)}"
    ),
    "lost_bits": lambda f: (
        f"a difference of such inverses loses {f.value or 'no'}"
        f" bit{'' if f.value == 1 else 's'}{' at most' if f.value else ''}"
    ),
    "alike_data": lambda f: (
        f"{code(str(f.arguments[0]))} and {code(str(f.arguments[1]))} are"
        f"{'' if f.value else ' not'} data of one role and type without declared ranges"
    ),
    "range_kept": _kept,
    "at_least": lambda f: (
        f"{_text(f)} is at least {format(f.value, 'g')}, which {code(str(f.arguments[2]))} does not"
        " exceed"
    ),
    "headroom": lambda f: (
        f"data computed in {code(str(f.arguments[0]))} is taken to be at most two to the power of"
        f" {f.value}"
    ),
    "takes_infinity": lambda f: (
        f"{'an infinity may reach' if f.value else 'no infinity reaches'} {_text(f)}"
    ),
    "sources_of": _sources,
    "decided_by": _decided,
    "amplified_by": _amplified,
    "law": lambda f: f"the law is {codes(f.value)}",
    "same_value": lambda f: (
        f"{code(str(f.arguments[2]))} {'has' if f.value else 'has not'} the value of the part that"
        " it replaces"
    ),
    "same_algebra": lambda f: (
        f"tried with random elements, both right sides of {_where(f)}"
        f" {'agree' if f.value else 'differ'}"
    ),
}
