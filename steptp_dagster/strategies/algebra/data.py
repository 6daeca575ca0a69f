"""Where the values of an expression come from, and what they decide.

* The *sources* of an expression are the inputs and parameters that its value depends on, through
  all tensors in between.
* A tensor *decides* where a value that depends on it selects more than last digits: it becomes an
  integer or a truth value, stands in a subscript or guard, is rounded to a whole number, or picks
  one of two branches that do not contain it, such as ``if_then_else(X>0,1,0)``.
* A difference *amplifies* the last digits of a tensor where it is taken between values that share a
  source, such as deviations from a mean: where the two were equal, digits are all that is left.
  Differences that ``exp`` takes are left out: a softmax is as exact as its scores.
* An *infinity* that a program writes itself goes through tensors as data does.
* Data holds ``-inf`` only where a program has a use for masks: it selects, compares or
  exponentiates. In plain arithmetic infinities stand for nothing.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from steptp_dagster.leir.ast import Access, Binary, Call, Compare, Equation, Expr, Inf, Nest
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.lazy import lazy
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import Path, accesses_in, children, expressions, iter_expr
from steptp_dagster.strategies.algebra.trees import At, Operand, is_sum, terms
from steptp_dagster.strategies.dataflow import COMPARE, INFINITY, MINUS, Flow, flows
from steptp_dagster.strategies.values import ValueFacts, facts_of

_WHOLE: Final = ("floor", "ceil", "round")
#: Operators of a value in which something may decide, be negative, or have a use for infinities.
_MAY_DECIDE: Final = frozenset((*_WHOLE, COMPARE, "//", "%", "&", "|", "if_then_else"))
_NEGATIVE: Final = frozenset(("-", MINUS))
_SELECTING: Final = frozenset(("exp", "max", "min", INFINITY))
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


#: A term of a sum as far as data flow goes: whether it is subtracted, and the tensors in it.
_Term = tuple[bool, frozenset[str]]


class _Traits:
    """What the data flow of a program needs of one equation; the operators in it tell most."""

    def __init__(self, flow: Flow) -> None:
        """Nothing is worked out before it is asked for."""
        self.flow = flow

    @lazy
    def decisive(self) -> frozenset[str]:
        """The tensors that decide in it."""
        flow = self.flow
        plain = not flow.beside and flow.operators.isdisjoint(_MAY_DECIDE)
        if plain and DTYPES[flow.equation.target.dtype].is_float:
            return frozenset()
        return frozenset([access.name for access in decisive(flow.equation)])

    @lazy
    def sums(self) -> tuple[tuple[_Term, ...], ...]:
        """The terms of the sums in it, but for what ``exp`` takes; none if nothing is negative."""
        if self.flow.operators.isdisjoint(_NEGATIVE):
            return ()
        return tuple(map(_terms, _sums(self.flow.equation.value)))

    @lazy
    def exponents(self) -> tuple[tuple[_Term, ...], ...]:
        """The terms of the sums that ``exp`` takes; none if nothing is negative."""
        if self.flow.operators.isdisjoint(_NEGATIVE) or "exp" not in self.flow.operators:
            return ()
        return tuple(map(_terms, _exponents(self.flow.equation.value)))

    @lazy
    def selects(self) -> bool:
        """Whether it has a use for infinities."""
        flow = self.flow
        if not flow.operators.isdisjoint(_SELECTING):
            return True
        if not flow.beside and COMPARE not in flow.operators:
            return False
        return any(_selects(node) for node in _nodes(flow.equation))


@per_nest
def _traits(nest: Nest) -> tuple[_Traits, ...]:
    return tuple(map(_Traits, flows(nest)))


def _terms(total: Expr) -> tuple[_Term, ...]:
    return tuple(
        (t.inverse, frozenset([a.name for a in accesses_in(t.expr)])) for t in terms(total)
    )


class Data:
    """The data flow of one program, tensor by tensor."""

    def __init__(self, signed: SignedProgram) -> None:
        """Collect what the equations read; nothing else is worked out before it is asked for."""
        self.signed = signed
        self._traits = tuple(
            ((i, *traits.flow.path), traits)
            for i, nest in enumerate(signed.program.nests)
            for traits in _traits(nest)
        )
        self._decided: dict[str, tuple[Path, ...]] = {}
        self._amplified: dict[str, tuple[Path, ...]] = {}
        self._reach: dict[str, frozenset[str]] = {}

    @lazy
    def masked(self) -> bool:
        """Whether the program has a use for data of minus infinity."""
        return any(traits.selects for _, traits in self._traits)

    def sources(self, expr: Expr) -> frozenset[str]:
        """Names of the inputs and parameters that an expression depends on."""
        return self._sources_of(access.name for access in accesses_in(expr))

    def _sources_of(self, names: Iterable[str]) -> frozenset[str]:
        found = (self._sources.get(name, frozenset()) for name in names)
        return frozenset().union(*found)

    def maskable(self, expr: Expr) -> bool:
        """Whether data of minus infinity may reach an expression."""
        if not self.masked:
            return False
        known = self.signed.signature.by_name
        found = (known[name] for name in self.sources(expr))
        return any(v.role == "input" and v.low is None and DTYPES[v.dtype].is_float for v in found)

    def infinite(self, expr: Expr) -> bool:
        """Whether an infinity that the program writes itself may reach an expression."""
        return _writes_infinity(expr, self._infinite)

    @lazy
    def _infinite(self) -> frozenset[str]:
        """Tensors that infinities reach which the program writes, as it does for masks."""
        found: frozenset[str] = frozenset()
        while True:
            more = found | {
                traits.flow.target
                for _, traits in self._traits
                if _writes_infinity(traits.flow.equation.value, found)
            }
            if more == found:
                return found
            found = more

    def decided_by(self, tensor: str) -> tuple[Path, ...]:
        """Paths of the equations where values that depend on ``tensor`` decide, in text order."""
        known = self._decided.get(tensor)
        if known is None:
            reached = self._reached(tensor)
            known = self._decided[tensor] = tuple(
                path
                for path, traits in self._traits
                if not reached.isdisjoint(traits.flow.read)
                and not reached.isdisjoint(traits.decisive)
            )
        return known

    def amplified_by(self, tensor: str) -> tuple[Path, ...]:
        """Paths of the equations with a difference of related values that depend on ``tensor``."""
        known = self._amplified.get(tensor)
        if known is None:
            reached = self._reached(tensor)
            known = self._amplified[tensor] = tuple(
                path for path, traits in self._traits if self._amplifies(traits, reached)
            )
        return known

    def _amplifies(self, traits: _Traits, reached: frozenset[str]) -> bool:
        """Whether an equation takes a difference of related values that depends on ``reached``."""
        if reached.isdisjoint(traits.flow.read) or not (traits.sums or traits.exponents):
            return False
        own = traits.flow.target
        return any(self._differs(total, reached, own) for total in traits.sums) or any(
            self._parts_ways(total, reached) for total in traits.exponents
        )

    def _parts_ways(self, total: Sequence[_Term], reached: frozenset[str]) -> bool:
        """Whether one of two related terms of opposite signs is made of ``reached``, but not both.

        What an exponential takes is shifted: both terms may change alike, but not one alone.
        """
        return any(
            a[0] != b[0]
            and reached.isdisjoint(a[1]) != reached.isdisjoint(b[1])
            and self._related(a, b)
            for a, b in combinations(total, 2)
        )

    def _differs(self, total: Sequence[_Term], reached: frozenset[str], own: str) -> bool:
        """Whether two terms of opposite signs share a source, one of them made of ``reached``.

        The running value of the tensor ``own`` that the sum is written to is no such term.
        """
        return any(
            a[0] != b[0]
            and not (reached.isdisjoint(a[1]) and reached.isdisjoint(b[1]))
            and self._related(a, b)
            for a, b in combinations([term for term in total if own not in term[1]], 2)
        )

    def _related(self, one: _Term, other: _Term) -> bool:
        return not self._sources_of(one[1]).isdisjoint(self._sources_of(other[1]))

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

    def _reached(self, tensor: str) -> frozenset[str]:
        """The tensor and all that is computed from it."""
        known = self._reach.get(tensor)
        if known is None:
            found = {tensor}
            waiting = [tensor]
            while waiting:
                for target in self._readers.get(waiting.pop(), ()):
                    if target not in found:
                        found.add(target)
                        waiting.append(target)
            known = self._reach[tensor] = frozenset(found)
        return known

    @lazy
    def _readers(self) -> dict[str, set[str]]:
        """Tensors that are computed from each tensor, in one equation."""
        found: dict[str, set[str]] = {}
        for _, traits in self._traits:
            for name in traits.flow.read:
                found.setdefault(name, set()).add(traits.flow.target)
        return found

    @lazy
    def _sources(self) -> dict[str, frozenset[str]]:
        """Inputs and parameters that each tensor depends on, closed over all equations."""
        found: dict[str, frozenset[str]] = {
            v.name: frozenset({v.name}) if v.role != "const" else frozenset()
            for v in self.signed.signature.sources
        }
        edges = [(t.flow.target, t.flow.read | {t.flow.target}) for _, t in self._traits]
        changed = True
        while changed:
            changed = False
            for target, read in edges:
                new = frozenset().union(*(found.get(name, frozenset()) for name in read))
                if new != found.get(target, frozenset()):
                    found[target] = new
                    changed = True
        return found


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


def _writes_infinity(expr: Expr, infinite: frozenset[str]) -> bool:
    """Whether a value contains an infinity or reads one of some tensors, conditions aside."""
    match expr:
        case Inf():
            return True
        case Access(name=name):
            return name in infinite
        case Compare():
            return False
        case Call(function="if_then_else", arguments=(_, yes, no)):
            return _writes_infinity(yes, infinite) or _writes_infinity(no, infinite)
    return any(_writes_infinity(child, infinite) for child in children(expr))


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
