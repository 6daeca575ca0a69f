"""Facts: the vocabulary in which a strategy explains a step.

A fact is a claim about the program before or after a step, or about the pair, in a form that a
machine can derive again: ``kind`` names the derivation (one function in ``reasoning.derive``),
``arguments`` say of what, ``value`` is what the strategy found. Prose is made from facts by
``reasoning.render``; it never states a number or a name that no fact holds.
"""

from dataclasses import dataclass
from typing import Literal

Value = int | float | str | bool | tuple["Value", ...]
Side = Literal["before", "after", "pair"]


@dataclass(frozen=True, slots=True)
class Fact:
    """``kind(side, *arguments) == value``."""

    kind: str
    side: Side
    arguments: tuple[Value, ...]
    value: Value


@dataclass(frozen=True, slots=True)
class Evidence:
    """A precondition by its kebab-case name, with the facts that show that it holds.

    The name is the one that a refusal would carry as its reason if it failed.
    """

    precondition: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that the reasoning of a step says, in the order in which it says it.

    ``state`` is what was seen, ``preconditions`` why the step is legal here, ``decision`` the
    chosen parameters with the facts that speak for them, ``transition`` which statements
    became which, ``soundness`` the named rule by which the meaning is kept with its facts, and
    ``effect`` the change in cost (flops, bytes by scope, iterations, size). ``alternatives``, which
    ``alternatives.compared`` adds, is what there was to choose from.
    """

    state: tuple[Fact, ...]
    preconditions: tuple[Evidence, ...]
    decision: tuple[Fact, ...]
    transition: tuple[Fact, ...]
    soundness_rule: str
    soundness: tuple[Fact, ...]
    effect: tuple[Fact, ...]
    alternatives: tuple[Fact, ...] = ()
