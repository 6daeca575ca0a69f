"""How large values can get, where data keeps some distance from the ends of its type.

Value facts hold for all numbers of a type, so that a sum of two f32 inputs may overflow. Nobody
computes with such data, and what is infinite already is no concern of a step. So here

* inputs and parameters without a declared range are at most two to the power of ``HEADROOM``;
* what is read from memory is a number of its type, and so, for new intermediate values, is what
  the equation computes already (``beside``);

and everything after that is proved.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from math import frexp, inf
from typing import Final

from steptp_dagster.leir.accesses import Statement
from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram, Variable
from steptp_dagster.leir.typing import typed_equation, typed_expr
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.intervals import LARGEST
from steptp_dagster.strategies.value_facts import ValueFact
from steptp_dagster.strategies.value_operations import UNKNOWN
from steptp_dagster.strategies.values import ValueFacts, source

#: Largest magnitude of data, as a power of two, by the type that it is computed in. Products of
#: two such values may overflow, sums of many do not.
HEADROOM: Final = {"f32": 80, "f64": 560}
_NUMBERS: Final = {
    name: ValueFact(-largest, largest, True, False, False, False, False, "what is computed already")
    for name, largest in LARGEST.items()
}
_KEPT: Final = 32
_kept: OrderedDict[int, tuple[SignedProgram, "Sizes"]] = OrderedDict()


class Sizes(ValueFacts):
    """The value facts of a program under the assumptions above."""

    def __init__(self, signed: SignedProgram) -> None:
        """Nothing is worked out before it is asked for."""
        super().__init__(signed, "finite")

    def _given(self, variable: Variable) -> ValueFact:
        """Data keeps its distance from the ends of its type."""
        return source(_with_range(variable), masked=False)

    def _read(self, access: Access, statement: Statement) -> ValueFact | None:
        """What is read is a number."""
        found = super()._read(access, statement)
        largest = LARGEST.get(access.dtype)
        if found is None or largest is None or found.magnitude <= largest:
            return found
        lower, upper = max(found.lower, -largest), min(found.upper, largest)
        return found._replace(lower=lower, upper=upper, nan=False)

    def beside(self, expr: Expr, at: Path) -> int | None:
        """As ``power``, where the operations that the equation at ``at`` has give numbers."""
        statement = self._accesses.statement_at[at]
        self._settle(expr)
        typed = typed_expr(expr, statement.equation.target.dtype)
        found = self._fact(typed, statement, self._computed(statement)) or UNKNOWN
        return power_above(found.magnitude)

    def _computed(self, statement: Statement) -> Mapping[Expr, ValueFact]:
        """The operations that an equation has, as numbers of their types."""
        return {
            node.expr: _NUMBERS[node.dtype.name]
            for node in typed_equation(statement.equation).value.walk()
            if node.operands and node.dtype.name in _NUMBERS
        }

    def power(self, expr: Expr, at: Path) -> int | None:
        """A power of two that an expression at the equation at ``at`` does not exceed, or None."""
        return power_above(self.of(expr, at).magnitude)


def sizes_of(signed: SignedProgram) -> Sizes:
    """The sizes of the values of a valid program; those of the last few programs are kept."""
    found = _kept.get(id(signed))
    if found is None or found[0] is not signed:
        found = _kept[id(signed)] = (signed, Sizes(signed))
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found[1]


def _with_range(variable: Variable) -> Variable:
    dtype = DTYPES[variable.dtype]
    if variable.role not in ("input", "param") or variable.low is not None or not dtype.is_float:
        return variable
    most = min(2.0 ** HEADROOM[dtype.evaluation.name], LARGEST[variable.dtype])
    return replace(variable, low=-most, high=most)


def power_above(magnitude: float) -> int | None:
    """The smallest power of two that is not below a magnitude; None for infinity."""
    if magnitude == inf:
        return None
    if magnitude == 0.0:
        return 0
    fraction, power = frexp(magnitude)
    return power - 1 if fraction == 0.5 else power
