"""How large values can get, where data keeps some distance from the ends of its type.

``value facts`` hold for all numbers of a type, so that a sum of two f32 inputs may overflow.
Nobody computes with such data. Here inputs and parameters without a declared range are taken to be
at most two to the power of ``HEADROOM``; everything after that is proved.
"""

from collections import OrderedDict
from dataclasses import replace
from math import frexp, inf
from typing import Final

from steptp_dagster.leir.ast import Expr
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import Signature, SignedProgram, Variable
from steptp_dagster.leir.walk import Path
from steptp_dagster.strategies.values import ValueFacts, facts_of

#: Largest magnitude of data, as a power of two, by the type that it is computed in. Products of
#: two such values may overflow, sums of many do not.
HEADROOM: Final = {"f32": 80, "f64": 560}
#: Numbers below two to this power are in range, by type.
LIMIT: Final = {"f32": 127, "f64": 1023}
_KEPT: Final = 32
_kept: OrderedDict[int, tuple[SignedProgram, ValueFacts]] = OrderedDict()


def sized_facts(signed: SignedProgram) -> ValueFacts:
    """The value facts of a program whose data keeps to the headroom, finite throughout."""
    found = _kept.get(id(signed))
    if found is None or found[0] is not signed:
        facts = facts_of(sized(signed), inputs="finite")
        found = _kept[id(signed)] = (signed, facts)
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found[1]


def sized(signed: SignedProgram) -> SignedProgram:
    """The program with the headroom as declared range of data that has none."""
    variables = tuple(map(_with_range, signed.signature.variables))
    return SignedProgram(signed.program, Signature(variables))


def _with_range(variable: Variable) -> Variable:
    dtype = DTYPES[variable.dtype]
    if variable.role not in ("input", "param") or variable.low is not None or not dtype.is_float:
        return variable
    if variable.dtype == "f16":
        return replace(variable, low=-65504.0, high=65504.0)
    most = 2.0 ** HEADROOM[dtype.evaluation.name]
    return replace(variable, low=-most, high=most)


def power_above(magnitude: float) -> int | None:
    """The smallest power of two that is not below a magnitude; None for infinity."""
    if magnitude == inf:
        return None
    if magnitude == 0.0:
        return 0
    fraction, power = frexp(magnitude)
    return power - 1 if fraction == 0.5 else power


def power_of(signed: SignedProgram, expr: Expr, at: Path) -> int | None:
    """A power of two that an expression at the equation at ``at`` does not exceed, or None."""
    return power_above(sized_facts(signed).of(expr, at).magnitude)
