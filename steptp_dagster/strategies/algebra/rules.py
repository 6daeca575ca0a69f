"""What an algebraic rule is: a law, a matcher that instantiates it, and what it needs.

A matcher looks at one node and yields every way in which the law applies there, in a fixed order.
It builds from parts of the node, in the order in which they stand, and leaves literals alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from steptp_dagster.leir.ast import Equation, Expr
from steptp_dagster.leir.typing import Typed, typed_equation
from steptp_dagster.strategies.algebra.trees import At
from steptp_dagster.strategies.dataflow import MINUS

#: ``exact``: equal bit for bit; ``reassoc``: equal up to rounding; ``domain``: where some part is
#: nonzero, positive or finite; ``range``: where no new intermediate value leaves its type.
Class = Literal["exact", "reassoc", "domain", "range"]
#: The heads of sums and products.
SUMS: Final = ("+", "-", MINUS)
PRODUCTS: Final = ("*", "/")
#: The form of a law for more operands than it has letters: its text says ``...`` for the others.
MORE: Final = "more"


@dataclass(frozen=True, slots=True)
class Need:
    """Something about parts of an equation that must be proved.

    ``precondition`` is the reason of the refusal where it is not, ``proof`` the kind of question
    (``conditions.PROVERS``), ``parts`` what it is asked of.
    """

    precondition: str
    proof: str
    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """One application of a law at a node.

    ``result`` takes the place of the node. ``letters`` say what letters of the law stand for,
    none but those in its text; a term that is subtracted has a minus sign (``trees.signed``).
    ``unlettered`` are operands that the text has ``...`` for. ``form`` names the form of the law
    that is applied, of a rule that has several. ``choice`` tells the matches of a rule at one node
    apart (``""`` where there is one).
    ``smaller`` are new values that are no larger than that of the node if the parts ``one_sign``
    have one sign; ``within`` are new values that leave their type only where that of the node
    does, or has no value, either whatever they read or because a need holds (``within_by``).
    """

    result: Expr
    letters: tuple[tuple[str, Expr], ...]
    choice: str = ""
    form: str = ""
    needs: tuple[Need, ...] = ()
    smaller: tuple[Expr, ...] = ()
    one_sign: tuple[Expr, ...] = ()
    within: tuple[Expr, ...] = ()
    within_by: str = ""
    unlettered: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A node of an equation's value, the node around it, and where it stands in the value."""

    expr: Expr
    around: Expr | None
    equation: Equation
    at: At

    @property
    def node(self) -> Typed:
        """The node with its types, as they are in the equation."""
        typed = typed_equation(self.equation).value
        for i in self.at:
            typed = typed.operands[i]
        return typed


def lettered(
    letters: str, operands: tuple[Expr, ...]
) -> tuple[tuple[tuple[str, Expr], ...], tuple[Expr, ...]]:
    """The first operands with their letters, and the others, for which there is none."""
    count = len(letters)
    return tuple(zip(letters, operands, strict=False)), operands[count:]


def more(unlettered: tuple[Expr, ...]) -> str:
    """The form of a law where some operands have no letter."""
    return MORE if unlettered else ""


Matcher = Callable[[Place], Iterator[Match]]


def needing(matches: Matcher) -> Matcher:
    """Those matches that need something beside what every rule does."""
    return lambda place: (match for match in matches(place) if match.needs)


def needing_nothing(matches: Matcher) -> Matcher:
    """The other matches. They are a rule of their own: nothing is said of needs that it has not."""
    return lambda place: (match for match in matches(place) if not match.needs)


@dataclass(frozen=True, slots=True)
class Rule:
    """A law with its name and class.

    ``law`` is written in letters (``a*b+a*c -> a*(b+c)``), and so are its ``forms``, by their
    names: the same law of other operators. ``argument`` is the rule of ``soundness`` that says why
    it holds. ``needs`` are the preconditions of its own, by name, that
    ``matches`` asks for. ``heads``: operators and functions of the nodes that it may match at
    (``MINUS`` for a sign), all of them if there are none.
    """

    name: str
    law: str
    kind: Class
    argument: str
    matches: Matcher
    needs: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    forms: tuple[tuple[str, str], ...] = ()

    def law_of(self, form: str) -> str:
        """The law in one of its forms. Raises KeyError for a form that it does not have."""
        return dict(self.forms)[form] if form else self.law

    def may_match(self, head: str) -> bool:
        """Whether the law may apply to a node with this operator or function."""
        return not self.heads or head in self.heads
