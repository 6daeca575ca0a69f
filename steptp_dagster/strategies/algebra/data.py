"""Where the values of an expression come from, and what they decide.

* The *sources* of an expression are the inputs and parameters that its value depends on, through
  all tensors in between.
* A tensor *decides* where a value that depends on it selects more than last digits: it becomes an
  integer or a truth value, stands in a subscript or guard, is rounded to a whole number, or picks
  one of two branches that do not contain it, such as ``if_then_else(X>0,1,0)``.
* A difference *amplifies* the last digits of a tensor where it is taken between values that share a
  source, such as deviations from a mean: where the two were equal, digits are all that is left.
  Differences that ``exp`` takes are left out: a softmax is as exact as its scores.
* Data holds ``-inf`` only where a program has a use for masks: it selects, compares or
  exponentiates. In plain arithmetic infinities stand for nothing.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Equation, Expr, Inf
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, children, equations, expressions, iter_expr
from steptp_dagster.strategies.algebra.trees import At, Operand, is_sum, terms
from steptp_dagster.strategies.values import ValueFacts, facts_of

_WHOLE: Final = ("floor", "ceil", "round")
_KEPT: Final = 32
_kept: OrderedDict[int, "Data"] = OrderedDict()


def data_of(signed: SignedProgram) -> "Data":
    """The data flow of a program; that of the last few programs is kept."""
    found = _kept.get(id(signed))
    if found is None or found.signed is not signed:
        found = _kept[id(signed)] = Data(signed)
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


def values_of(signed: SignedProgram) -> ValueFacts:
    """The value facts of a program, with infinite data where it has a use for masks."""
    return facts_of(signed, inputs="masked" if data_of(signed).masked else "finite")


class Data:
    """The data flow of one program, tensor by tensor."""

    def __init__(self, signed: SignedProgram) -> None:
        """Close reads and decisions over all equations."""
        self.signed = signed
        self._located = tuple(equations(signed.program))
        self._sources: dict[str, frozenset[str]] = {
            v.name: frozenset({v.name}) if v.role != "const" else frozenset()
            for v in signed.signature.sources
        }
        self.masked = any(_selects(n) for one in self._located for n in _nodes(one.equation))
        self._close()

    def sources(self, expr: Expr) -> frozenset[str]:
        """Names of the inputs and parameters that an expression depends on."""
        found: frozenset[str] = frozenset()
        for access in accesses_in(expr):
            found |= self._sources.get(access.name, frozenset())
        return found

    def maskable(self, expr: Expr) -> bool:
        """Whether data of minus infinity may reach an expression."""
        if not self.masked:
            return False
        known = self.signed.signature.by_name
        found = (known[name] for name in self.sources(expr))
        return any(v.role == "input" and v.low is None and DTYPES[v.dtype].is_float for v in found)

    def decided_by(self, tensor: str) -> tuple[Path, ...]:
        """Paths of the equations where values that depend on ``tensor`` decide, in text order."""
        reached = self._reached(tensor)
        return tuple(
            one.path
            for one in self._located
            if any(access.name in reached for access in decisive(one.equation))
        )

    def amplified_by(self, tensor: str) -> tuple[Path, ...]:
        """Paths of the equations with a difference of related values that depend on ``tensor``."""
        reached = self._reached(tensor)
        return tuple(
            one.path
            for one in self._located
            if any(
                self._amplifies(total, reached, one.equation.target.name)
                for total in _sums(one.equation.value)
            )
            or any(self._parts_ways(total, reached) for total in _exponents(one.equation.value))
        )

    def _parts_ways(self, total: Expr, reached: frozenset[str]) -> bool:
        """Whether one of two related terms of opposite signs is made of ``reached``, but not both.

        What an exponential takes is shifted: both terms may change alike, but not one alone.
        """
        found = [
            (t.inverse, self.sources(t.expr), any(a.name in reached for a in accesses_in(t.expr)))
            for t in terms(total)
        ]
        return any(
            a[0] != b[0] and a[2] != b[2] and bool(a[1] & b[1])
            for i, a in enumerate(found)
            for b in found[i + 1 :]
        )

    def amplified_at(self, equation: Equation, at: At) -> bool:
        """Whether a part of an equation's value stands in a term that a related one is taken from.

        The last digits of such a term are what is left where the two are nearly equal: a score
        that is rounded otherwise than in the maximum of its row may exceed that.
        """
        expr: Expr = equation.value
        for i, step in enumerate(at):
            if is_sum(expr):
                for term in terms(expr):
                    if at[i : i + len(term.at)] == term.at and self._taken_from(
                        expr, term, equation.target.name
                    ):
                        return True
            expr = children(expr)[step]
        return False

    def _taken_from(self, total: Expr, term: Operand, own: str) -> bool:
        sources = self.sources(term.expr)
        return any(
            other.inverse != term.inverse and bool(self.sources(other.expr) & sources)
            for other in terms(total)
            if not any(a.name == own for a in accesses_in(other.expr))
        )

    def _amplifies(self, total: Expr, reached: frozenset[str], own: str) -> bool:
        """Whether two terms of opposite signs share a source, one of them made of ``reached``.

        The running value of the tensor ``own`` that the sum is written to is no such term.
        """
        found = [
            (t.inverse, self.sources(t.expr), any(a.name in reached for a in accesses_in(t.expr)))
            for t in terms(total)
            if not any(a.name == own for a in accesses_in(t.expr))
        ]
        return any(
            a[0] != b[0] and (a[2] or b[2]) and bool(a[1] & b[1])
            for i, a in enumerate(found)
            for b in found[i + 1 :]
        )

    def _reached(self, tensor: str) -> frozenset[str]:
        """The tensor and all that is computed from it."""
        reached = frozenset({tensor})
        while True:
            more = reached | {
                one.equation.target.name
                for one in self._located
                if any(a.name in reached for e in expressions(one.equation) for a in accesses_in(e))
            }
            if more == reached:
                return reached
            reached = more

    def _close(self) -> None:
        changed = True
        while changed:
            changed = False
            for one in self._located:
                name = one.equation.target.name
                old = self._sources.get(name, frozenset())
                new = old
                for expr in expressions(one.equation):
                    new |= self.sources(expr)
                if new != old:
                    self._sources[name] = new
                    changed = True


def decisive(equation: Equation) -> Iterator[Access]:
    """Reads of an equation whose last digits may decide something."""
    for expr in (*equation.target.subscripts, equation.guard):
        if expr is not None:
            yield from accesses_in(expr)
    if not DTYPES[equation.target.dtype].is_float:
        yield from accesses_in(equation.value)
        return
    yield from _decisive(equation.value)


def _decisive(expr: Expr) -> Iterator[Access]:
    match expr:
        case Compare() | Binary(op="//" | "%" | "&" | "|"):
            yield from accesses_in(expr)
        case Call(function=name) if name in _WHOLE:
            yield from accesses_in(expr)
        case Call(function="if_then_else", arguments=(condition, yes, no)):
            chosen = {a.name for branch in (yes, no) for a in accesses_in(branch)}
            asked = tuple(accesses_in(condition))
            infinite = any(isinstance(node, Inf) for node in iter_expr(condition))
            # a branch that contains what is asked usually meets the other one at the threshold,
            # and infinities are the same however they are rounded
            if not infinite and not any(a.name in chosen for a in asked):
                yield from asked
            yield from _decisive(yes)
            yield from _decisive(no)
        case Access():
            for subscript in expr.subscripts:
                yield from accesses_in(subscript)
        case _:
            for child in children(expr):
                yield from _decisive(child)


def _exponents(expr: Expr) -> Iterator[Expr]:
    """The sums that exponentials take."""
    for node in iter_expr(expr):
        if isinstance(node, Call) and node.function == "exp" and is_sum(node.arguments[0]):
            yield node.arguments[0]


def _sums(expr: Expr) -> Iterator[Expr]:
    """The sums in an expression that are no terms of another one, nor what ``exp`` takes."""
    if isinstance(expr, Access | Compare):
        return
    if is_sum(expr):
        yield expr
        for term in terms(expr):
            yield from _sums(term.expr)
        return
    for child in children(expr):
        if isinstance(expr, Call) and expr.function == "exp" and is_sum(child):
            for term in terms(child):
                yield from _sums(term.expr)
        else:
            yield from _sums(child)


def _nodes(equation: Equation) -> Iterator[Expr]:
    for expr in expressions(equation):
        yield from iter_expr(expr)


def _selects(node: Expr) -> bool:
    match node:
        case Inf() | Call(function="exp" | "max" | "min"):
            return True
        case Compare():
            return any(True for _ in accesses_in(node))
        case _:
            return False
