"""Derivations about algebra: laws, what their letters stand for, and what is known of values.

Parts of an equation's right side are named by their canonical text. A part that a step is about
to make need not stand in the program yet; what is known of it follows from what it reads.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.reasoning.kinds import (
    Derivation,
    DerivationError,
    dtype_of_part,
    equation_at,
    expr_of,
    name_of,
    part_named,
    path_of,
)
from steptp_dagster.strategies.algebra.conditions import (
    CLAIMS,
    are_alike,
    bits_lost,
    reason,
)
from steptp_dagster.strategies.algebra.conditions import takes_infinity as may_be_infinite
from steptp_dagster.strategies.algebra.data import data_of, values_of
from steptp_dagster.strategies.algebra.magnitude import HEADROOM, sizes_of
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy
from steptp_dagster.strategies.algebra.trees import constant_sum as find_constant_sum
from steptp_dagster.strategies.algebra.trees import divided_by_factor, part, subtracted
from steptp_dagster.strategies.facts import Value
from steptp_dagster.strategies.registry import strategies


@lru_cache(maxsize=1)
def _laws() -> Mapping[tuple[str, str], str]:
    """The laws by the names of rule and form."""
    found = [s for s in strategies().values() if isinstance(s, AlgebraicStrategy)]
    rules = {rule.name: rule for one in found for rule in one.rules}
    laws = {(name, ""): rule.law for name, rule in rules.items()}
    laws |= {(name, form): law for name, rule in rules.items() for form, law in rule.forms}
    for loop_law in (one.loop_law for one in found if one.loop_law is not None):
        laws |= {(loop_law.name, form): loop_law.law_of(form) for form in ("", "/")}
    return laws


def law(_: SignedProgram, __: SignedProgram, rule: Value, form: Value = "") -> str:
    """The law of an algebraic rule, in letters; in one of its forms, if it has several."""
    found = _laws().get((name_of(rule), name_of(form)))
    if found is None:
        raise DerivationError(f"no algebraic rule {rule!r} of form {form!r}")
    return found


def part_text(signed: SignedProgram, path: Value, at: Value) -> str:
    """The text of the part of a right side at a place (positions from the root down)."""
    try:
        return expr_text(part(equation_at(signed, path).value, path_of(at)))
    except IndexError as error:
        raise DerivationError(f"no part at {at!r}") from error


def stands_for(signed: SignedProgram, path: Value, text: Value, letter: Value) -> bool:
    """Whether a text that a letter of a law stands for is a part of a right side."""
    name_of(letter)
    part_named(signed, path, text)
    return True


def stands_for_minus(signed: SignedProgram, path: Value, text: Value, letter: Value) -> bool:
    """Whether a right side subtracts what a letter of a law stands for the negative of."""
    name_of(letter)
    return subtracted(equation_at(signed, path).value, expr_of(text))


def part_dtype(signed: SignedProgram, path: Value, text: Value) -> str:
    """The dtype in which a part of a right side is computed."""
    return dtype_of_part(signed, path, part_named(signed, path, text))


def value_is(signed: SignedProgram, path: Value, text: Value, claim: Value) -> Value:
    """Why a value has a property (``conditions.CLAIMS``), for all data of the program.

    A rule in words, or the rule and bounds.
    """
    equation_at(signed, path)
    test = CLAIMS.get(name_of(claim))
    found = values_of(signed).of(expr_of(text), path_of(path))
    if test is None or not test(found):
        raise DerivationError(f"{text!r} is not known to be {claim!r}")
    return reason(found, name_of(claim))


def power_bound(signed: SignedProgram, path: Value, text: Value) -> int:
    """A power of two that a magnitude does not exceed, for data within the headroom."""
    equation_at(signed, path)
    found = sizes_of(signed).power(expr_of(text), path_of(path))
    if found is None:
        raise DerivationError(f"no bound is known for {text!r}")
    return found


def new_bound(signed: SignedProgram, path: Value, text: Value) -> int:
    """The same, where the operations that the equation has give numbers."""
    equation_at(signed, path)
    found = sizes_of(signed).beside(expr_of(text), path_of(path))
    if found is None:
        raise DerivationError(f"no bound is known for {text!r}")
    return found


def factor_of(
    signed: SignedProgram, path: Value, factor: Value, product: Value, rest: Value
) -> bool:
    """Whether a product is a factor times the rest."""
    equation_at(signed, path)
    found = divided_by_factor(expr_of(product), expr_of(factor))
    return found is not None and expr_text(found) == name_of(rest)


def _constant(signed: SignedProgram, path: Value, b: Value, c: Value, *, minus: bool) -> str:
    equation_at(signed, path)
    found = find_constant_sum(expr_of(b), expr_of(c), minus=minus)
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


def lost_bits(signed: SignedProgram, path: Value, first: Value, second: Value) -> int:
    """How many bits a difference of the inverses of two values loses at most."""
    over = find_constant_sum(expr_of(second), expr_of(first), minus=True)
    powers = [power_bound(signed, path, value) for value in (first, second)]
    if not over or over < 0:
        raise DerivationError(f"{second!r} does not exceed {first!r} by a constant")
    return bits_lost(max(powers), over)


def alike_data(signed: SignedProgram, first: Value, second: Value) -> bool:
    """Whether two tensors are inputs or parameters of one type without a declared range."""
    known = signed.signature.by_name
    a, b = (known.get(name_of(name)) for name in (first, second))
    if a is None or b is None:
        raise DerivationError(f"{first!r} and {second!r} are not both known")
    return are_alike(a, b)


def at_least(signed: SignedProgram, path: Value, larger: Value, smaller: Value) -> float:
    """A bound between two values, the first of which is never below the second."""
    equation_at(signed, path)
    facts, where = values_of(signed), path_of(path)
    high, low = facts.of(expr_of(larger), where), facts.of(expr_of(smaller), where)
    if not high.lower >= low.upper:
        raise DerivationError(f"{larger!r} may be smaller than {smaller!r}")
    return high.lower


def not_above(signed: SignedProgram, path: Value, lower: Value, upper: Value) -> bool:
    """Whether one value is never above another one."""
    equation_at(signed, path)
    return values_of(signed).not_above(expr_of(lower), expr_of(upper), path_of(path))


def is_shift(signed: SignedProgram, path: Value, text: Value) -> bool:
    """Whether a value is a score minus the maximum of its row."""
    equation_at(signed, path)
    return values_of(signed).is_shift(expr_of(text), path_of(path))


def headroom(_: SignedProgram, __: SignedProgram, dtype: Value) -> int:
    """The power of two that data in a type is taken not to exceed."""
    if dtype not in HEADROOM:
        raise DerivationError(f"no headroom for {dtype!r}")
    return HEADROOM[name_of(dtype)]


def takes_infinity(signed: SignedProgram, path: Value, text: Value) -> bool:
    """Whether an infinity, of the data or written by the program, may reach a value."""
    equation_at(signed, path)
    return may_be_infinite(signed, path_of(path), expr_of(text))


def sources_of(signed: SignedProgram, path: Value, text: Value) -> tuple[str, ...]:
    """Names of the inputs and parameters that a value depends on, sorted."""
    equation_at(signed, path)
    return tuple(sorted(data_of(signed).sources(expr_of(text))))


def decided_by(signed: SignedProgram, tensor: Value) -> tuple[Value, ...]:
    """Paths of the equations where values that depend on a tensor decide something."""
    return data_of(signed).decided_by(name_of(tensor))


def amplified_by(signed: SignedProgram, tensor: Value) -> tuple[Value, ...]:
    """Paths of the equations with a difference of related values that depend on a tensor."""
    return data_of(signed).amplified_by(name_of(tensor))


KINDS: Final[Mapping[str, Derivation]] = {
    f.__name__: f
    for f in (
        part_text,
        stands_for,
        stands_for_minus,
        part_dtype,
        value_is,
        not_above,
        is_shift,
        power_bound,
        new_bound,
        factor_of,
        constant_sum,
        constant_difference,
        lost_bits,
        alike_data,
        at_least,
        takes_infinity,
        sources_of,
        decided_by,
        amplified_by,
    )
}
PAIRED: Final[Mapping[str, Derivation]] = {f.__name__: f for f in (law, headroom)}
