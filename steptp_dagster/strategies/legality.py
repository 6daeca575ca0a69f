"""Whether a candidate result is legal: validity and target limits, remembered.

A survey asks for every candidate and ``step.take`` asks again for the one that is taken; the
answers depend on the program alone, so they are kept. A check costs what is new in the program:
the analyses remember nests (``leir.nest_memory``).
"""

from typing import Final

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.nest_memory import remember
from steptp_dagster.leir.signature import Signature, SignedProgram
from steptp_dagster.leir.validity import check

#: Reason and message of the first fault, or None.
Fault = tuple[str, str] | None

_REMEMBERED: Final = 2048
#: By the signature object and the nests; the entry keeps the signature alive.
_Key = tuple[int, tuple[int, ...]]
_known: Final[dict[_Key, tuple[Signature, Fault]]] = {}
#: By the program object, which most questions about a candidate know already.
_asked: Final[dict[int, tuple[SignedProgram, Fault]]] = {}


def fault(program: SignedProgram) -> Fault:
    """``result-invalid`` or ``result-over-limits`` with words, or None for a legal program."""
    asked = _asked.get(id(program))
    if asked is not None and asked[0] is program:
        return asked[1]
    return remember(_asked, id(program), (program, _by_nests(program)), _REMEMBERED)[1]


def _by_nests(program: SignedProgram) -> Fault:
    accesses = Analysis.of(program).accesses
    key = id(program.signature), tuple([nest.serial for nest in accesses.known])
    found = _known.get(key)
    if found is None or found[0] is not program.signature:
        found = remember(_known, key, (program.signature, _fault(program)), _REMEMBERED)
    return found[1]


def _fault(program: SignedProgram) -> Fault:
    for violation in check(program):
        message = f"the result would not be valid ({violation.kind}): {violation.message}"
        return "result-invalid", message
    for violation in check_limits(program):
        return (
            "result-over-limits",
            f"the result would not fit the target: {violation.message}"
            f" (allowed: {violation.required})",
        )
    return None
