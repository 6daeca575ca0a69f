"""What an original's roundings may do to its results, where they happened to do nothing.

T2 compares a candidate's error with the original's. The original may be exact by luck (the mean of
five equal numbers), and always so on a kind of data; a candidate that sums in another order then
errs by what the algorithm allows, and is not less accurate. So before a candidate is rejected for
T2 alone, the original runs with each of its roundings made worse by one unit
(``lowering.jitter``), and may err by that much. A candidate that is less accurate
by its algorithm, through cancellation or a narrow temporary, errs by far more.

Jitter also moves what is exact for a reason, so an original that compensates its own roundings
looks worse than it is. So no more than half of the digits may go this way.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from steptp_dagster.lowering.identity import Identity, identity_of
from steptp_dagster.verify.budget import too_large
from steptp_dagster.verify.compare import EPSILON
from steptp_dagster.verify.domain import Reference
from steptp_dagster.verify.engine import LLVM
from steptp_dagster.verify.families import Family
from steptp_dagster.verify.measured import errors_of
from steptp_dagster.verify.original import Case, Original

_KEPT: Final = 64
_Key = tuple[Identity, int, Family, str]
_kept: OrderedDict[_Key, dict[str, float]] = OrderedDict()


def without_luck(original: Original, seed: int, families: Sequence[str], factor: float) -> Original:
    """The original with larger errors on some families, by name (``Case.name``).

    An error becomes at least that of the jittered original over ``factor``: what T2 allows is a
    multiple of the original's error, and this is no estimate but a bound. No more than half of
    the output's digits is allowed so. Programs too large to run on llvm keep their errors.
    """
    if too_large(original.signed):
        return original
    cases = tuple(
        _unlucky(original, case, seed, factor) if case.name in families else case
        for case in original.cases
    )
    return replace(original, cases=cases)


def _unlucky(original: Original, case: Case, seed: int, factor: float) -> Case:
    dtypes = {v.name: v.dtype for v in original.signed.signature.outputs}
    found = _jittered(original, case, seed)
    errors = {
        name: max(error, min(found[name], EPSILON[dtypes[name]] ** -0.5) / factor)
        for name, error in case.errors.items()
    }
    return replace(case, errors=errors)


def _jittered(original: Original, case: Case, seed: int) -> dict[str, float]:
    """The largest error of each float output over the family's draws, in epsilons."""
    signed = original.signed
    key = identity_of(signed), seed, case.family, case.domain
    if key not in _kept:
        (working,) = LLVM.compile([signed], "jittered")
        (double,) = LLVM.compile([signed], "float64")
        reference = Reference(signed, double)
        _kept[key] = errors_of(signed, case.family, case.domain, seed, working, reference)
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return _kept[key]
