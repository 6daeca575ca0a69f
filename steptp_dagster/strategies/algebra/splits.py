"""Strategies that put a value of the program between two parts of an expression.

``exp(a-b)`` becomes ``exp(a-y)*exp(y-b)``, ``x`` becomes ``x/y*y`` or ``x+y-y``: the same number,
with a value ``y`` in it that exists already. Which values could be read is asked of the program
(``readable``), and which of them are safe is proved like the needs of every other rule.
"""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import ClassVar, Final

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Expr, Nest
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.typing import typed_equation
from steptp_dagster.leir.walk import Located, Path, accesses_in, children, iter_expr, loops_around
from steptp_dagster.strategies.algebra.data import values_of
from steptp_dagster.strategies.algebra.exponentials import EXPONENTS, exponent_of, exponential
from steptp_dagster.strategies.algebra.growth import CLAIMS
from steptp_dagster.strategies.algebra.places import places
from steptp_dagster.strategies.algebra.readable import readable
from steptp_dagster.strategies.algebra.rules import Match, Need, Place, Rule
from steptp_dagster.strategies.algebra.strategy import AlgebraicStrategy, Way
from steptp_dagster.strategies.algebra.trees import is_literal, plus
from steptp_dagster.strategies.base import Refusal, Survey
from steptp_dagster.strategies.dataflow import flows
from steptp_dagster.strategies.intervals import INF
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.streaming import MINUS_INF, shrink, term

#: Preconditions of the laws here.
BETWEEN: Final = "not-between"
SIZE: Final = "factor-of-unknown-size"
LARGER: Final = "term-may-be-larger"
INFINITE: Final = "term-may-be-infinite"
#: Values that are offered for one part, and parts that get none because they are large already.
_OFFERED: Final = 3
_MOST_NODES: Final = 48


def _none(_: Place) -> Iterator[Match]:
    """These laws need the program: ``SplitStrategy.match`` finds their matches."""
    return iter(())


class SplitStrategy(AlgebraicStrategy):
    """A strategy whose rules bring in a value ``y`` that the equation may not read yet.

    ``operators`` are those that every equation with a place has.
    """

    operators: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def places(self, one: Located) -> Iterator[Place]:
        """The parts of an equation that may be split."""

    @abstractmethod
    def suits(self, program: SignedProgram, path: Path, expr: Expr, value: Access) -> bool:
        """Whether a value will do for a part, as far as facts about values say."""

    @abstractmethod
    def match(
        self, program: SignedProgram, path: Path, expr: Expr, value: Access
    ) -> tuple[Rule, Match] | None:
        """The law with one value; None where it would change nothing."""

    def survey(self, program: SignedProgram) -> Survey:
        """As for all rules; under vector loops the limits of vectors count as well."""
        found = super().survey(program)
        sites, refusals = [], list(found.refusals)
        for site in found.sites:
            lanes = any(loop.kind == "V" for loop in loops_around(program.program, site.path))
            problem = fault(self.apply(program, site)) if lanes else None
            if problem is None:
                sites.append(site)
            else:
                refusals.append(Refusal(self.name, site.path, *problem))
        return Survey(tuple(sites), tuple(refusals))

    def _may_match(self, nest: Nest) -> bool:
        """What is said of rules says nothing here."""
        return any(self.operators <= flow.operators for flow in flows(nest))

    def _find(self, program: SignedProgram, one: Located) -> Iterator[Way]:
        """At each part the first values that suit; where none does, the first one there is."""
        value = one.equation.value
        if sum(1 for _ in islice(iter_expr(value), _MOST_NODES + 1)) > _MOST_NODES:
            return
        values: tuple[Access, ...] | None = None
        for place in self.places(one):
            if values is None:
                values = tuple(
                    v for v in readable(program, one) if v.name != one.equation.target.name
                )
            suited = False
            offered = 0
            for y in values:
                if self.suits(program, one.path, place.expr, y):
                    suited = True
                    for way in self._kept(program, one, place, y):
                        yield way
                        offered += 1
                if offered == _OFFERED:
                    break
            if not suited:
                ways = (way for y in values for way in self._kept(program, one, place, y))
                yield from islice(ways, 1)

    def _kept(self, program: SignedProgram, one: Located, place: Place, y: Access) -> Iterator[Way]:
        """The way with one value, unless it changes nothing or what the equation does."""
        match = self.match(program, one.path, place.expr, y)
        if match is not None:
            way = Way(program, one, place, *match)
            if way.keeps_update():
                yield way


def operands(one: Located) -> Iterator[Place]:
    """The value of an assignment as a whole, or what an update adds or multiplies."""
    equation = one.equation
    value, name = equation.value, equation.target.name
    if is_literal(value) or not typed_equation(equation).value.dtype.is_float:
        return
    if not reads(value, name):
        yield Place(value, None, equation, ())
        return
    match value:
        case Binary(op="+" | "-" | "*") | Call(function="max" | "min"):
            for i, operand in enumerate(children(value)):
                if not reads(operand, name) and not is_literal(operand):
                    yield Place(operand, value, equation, (i,))


def reads(expr: Expr, name: str) -> bool:
    """Whether an expression reads a tensor."""
    return any(access.name == name for access in accesses_in(expr))


def is_difference(expr: Expr) -> bool:
    """Whether an expression subtracts, and neither side is a number."""
    if not isinstance(expr, Binary) or expr.op != "-":
        return False
    return not is_literal(expr.left) and not is_literal(expr.right)


def differences(one: Located) -> Iterator[Place]:
    """All differences of an equation that decide nothing."""
    return places(one.equation, is_difference)


# -- the laws --------------------------------------------------------------------------------

EXPONENTIAL_BETWEEN: Final = Rule(
    "exponential-between",
    "exp(a-b) -> exp(a-y)*exp(y-b)",
    "range",
    "exponential-law",
    _none,
    (BETWEEN,),
)
EXPONENTIAL_OF_SMALL: Final = Rule(
    "exponential-of-small",
    "exp(a-b) -> exp(a-y)*exp(y-b)",
    "range",
    "exponential-law",
    _none,
    (EXPONENTS,),
)
TIMES_ONE: Final = Rule("times-one", "x -> x/y*y", "domain", "cancelled-factor", _none, (SIZE,))
PLUS_NOTHING: Final = Rule(
    "plus-nothing", "x -> x+y-y", "domain", "cancelled-term", _none, (INFINITE, LARGER)
)
DIFFERENCE_BETWEEN: Final = Rule(
    "difference-between", "a-b -> (a-y)+(y-b)", "range", "cancelled-term", _none, (BETWEEN,)
)


def between(program: SignedProgram, path: Path, a: Expr, value: Access, b: Expr) -> bool:
    """Whether a value lies between two others and is not known to equal one of them."""
    facts = values_of(program)
    for low, high in ((a, b), (b, a)):
        if facts.not_above(low, value, path) and facts.not_above(value, high, path):
            return not (facts.not_above(value, low, path) or facts.not_above(high, value, path))
    return False


def small(program: SignedProgram, path: Path, parts: tuple[Expr, ...]) -> bool:
    """Whether all parts are known to be small, so that their exponentials are moderate."""
    facts = values_of(program)
    return all(CLAIMS["mild"](facts.of(part, path)) for part in parts)


def sinks(program: SignedProgram, path: Path, expr: Expr) -> bool:
    """Whether a value may be minus infinity, by data or by the program itself (masks)."""
    return values_of(program).of(expr, path).lower == -INF


def split_exponential(expr: Expr, value: Access, *, mild: bool, sinking: bool) -> Match:
    """``exp(a-b)`` split at ``y``.

    Where ``a`` may be minus infinity (``sinking``), a factor whose difference would be one of two
    infinities is 0: a row may start with minus infinity, and then its running maximum is minus
    infinity too. ``mild``: all three values are small.
    """
    a, b = sides(exponent_of(expr))
    name = expr_text(value)
    letters = (("a", a), ("b", b), ("y", value))
    if mild:
        split = Binary("*", exponential(_minus(a, value)), exponential(_minus(value, b)))
        return Match(split, letters, name, needs=(Need(EXPONENTS, "mild", (a, value, b)),))
    if sinking:
        split = Binary("*", term(a, value), shrink(value, b))
    else:
        split = Binary("*", exponential(_minus(a, value)), exponential(_minus(value, b)))
    return Match(
        split,
        letters,
        name,
        needs=(Need(BETWEEN, "between", (a, value, b)),),
        within=(*_calls(split), _minus(a, value), _minus(value, b)),
        within_by=BETWEEN,
    )


def split_factor(expr: Expr, value: Access) -> Match:
    """``x/y*y``, with a factor of moderate size."""
    quotient = Binary("/", expr, value)
    needs = (Need(SIZE, "moderate", (value,)),)
    letters = (("x", expr), ("y", value))
    return Match(Binary("*", quotient, value), letters, expr_text(value), needs=needs)


def split_term(expr: Expr, value: Access) -> Match:
    """``x+y-y``, with a term that is no larger."""
    return Match(
        Binary("-", plus(expr, value), value),
        (("x", expr), ("y", value)),
        expr_text(value),
        needs=(Need(INFINITE, "finite", (value,)), Need(LARGER, "at-least", (expr, value))),
    )


def split_difference(expr: Expr, value: Access, *, sinking: bool) -> Match:
    """``(a-y)+(y-b)``; the difference itself where ``y`` is minus infinity as ``a`` may be."""
    a, b = sides(expr)
    steps = (_minus(a, value), _minus(value, b))
    split: Expr = Binary("+", *steps)
    if sinking:
        test = Compare((value, MINUS_INF), ("==",))
        split = Call("if_then_else", (test, expr, split))
    return Match(
        split,
        (("a", a), ("b", b), ("y", value)),
        expr_text(value),
        needs=(Need(BETWEEN, "between", (a, value, b)),),
        within=(*steps, Binary("+", *steps), *_calls(split)),
        within_by=BETWEEN,
    )


def sides(expr: Expr | None) -> tuple[Expr, Expr]:
    """Both sides of a difference. Raises TypeError for anything else."""
    if not isinstance(expr, Binary) or expr.op != "-":
        raise TypeError("no difference")
    return expr.left, expr.right


def _minus(a: Expr, b: Expr) -> Binary:
    return Binary("-", a, b)


def _calls(expr: Expr) -> tuple[Expr, ...]:
    return tuple(e for e in iter_expr(expr) if isinstance(e, Call | Compare))
