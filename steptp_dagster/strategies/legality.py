"""Whether a candidate result is legal: validity and target limits, remembered.

A survey asks for every candidate and ``step.take`` asks again for the one that is taken; the
answers depend on the program alone, so the last few are kept.
"""

from functools import lru_cache
from typing import Final

from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check

#: Reason and message of the first fault, or None.
Fault = tuple[str, str] | None

_REMEMBERED: Final = 512


@lru_cache(maxsize=_REMEMBERED)
def fault(program: SignedProgram) -> Fault:
    """``result-invalid`` or ``result-over-limits`` with words, or None for a legal program."""
    for violation in check(program):
        return "result-invalid", f"{violation.kind}: {violation.message}"
    for violation in check_limits(program):
        return "result-over-limits", f"{violation.kind}: {violation.message}"
    return None
