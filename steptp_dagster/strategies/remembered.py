"""What was found out about the last few programs, recognised by identity.

A survey, the steps that are taken and their explanations look for the same things in one program.
What is remembered depends on the program alone, so that forgetting it costs time only.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from steptp_dagster.leir.nest_memory import remember
from steptp_dagster.leir.signature import SignedProgram

_Found = TypeVar("_Found")
#: Programs whose findings are kept.
_KEPT: Final = 64


class PerProgram(Generic[_Found]):
    """A function of programs that remembers what it gave for the last ones."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[SignedProgram], _Found]) -> None:
        """``make`` works it out."""
        self._make = make
        self._known: dict[int, tuple[SignedProgram, _Found]] = {}

    def __call__(self, program: SignedProgram) -> _Found:
        """What ``make`` gives for this very program object."""
        found = self._known.get(id(program))
        if found is None or found[0] is not program:
            found = remember(self._known, id(program), (program, self._make(program)), _KEPT)
        return found[1]
