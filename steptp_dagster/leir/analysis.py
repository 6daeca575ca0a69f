"""All analyses of one program, each made once and when first asked for."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ClassVar, Concatenate, Final, ParamSpec, TypeVar

from steptp_dagster.leir.accesses import Accesses
from steptp_dagster.leir.dependence import Dependences
from steptp_dagster.leir.lazy import lazy
from steptp_dagster.leir.shapes import Shape, shapes_of
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Updates
from steptp_dagster.leir.violation import Violation

_KEPT: Final = 64
_Value = TypeVar("_Value")
_More = ParamSpec("_More")


class Analysis:
    """The analyses of one program.

    ``Analysis.of`` keeps the last few programs, recognised by identity, so that many questions
    about one program cost one analysis. Results depend on the program alone.
    """

    _recent: ClassVar[OrderedDict[int, "Analysis"]] = OrderedDict()

    def __init__(self, signed: SignedProgram) -> None:
        self.signed = signed
        #: What functions of the program gave (``per_program``).
        self.figures: dict[Hashable, object] = {}

    @classmethod
    def of(cls, signed: SignedProgram) -> "Analysis":
        """The analysis of a program, kept from an earlier call where possible."""
        recent, key = cls._recent, id(signed)
        found = recent.get(key)
        if found is None or found.signed is not signed:
            found = recent[key] = cls(signed)
            if len(recent) > _KEPT:
                recent.popitem(last=False)
            return found
        try:  # a survey comes back to its program after each candidate
            recent.move_to_end(key)
        except KeyError:  # another thread has just dropped it
            recent[key] = found
        return found

    @lazy
    def accesses(self) -> Accesses:
        """Reads and writes."""
        return Accesses(self.signed)

    @lazy
    def shapes(self) -> dict[str, Shape]:
        """Shapes of all tensors."""
        return shapes_of(self.accesses)

    @lazy
    def updates(self) -> Updates:
        """What every equation does to its target."""
        return Updates(self.accesses)

    @lazy
    def dependences(self) -> Dependences:
        """Dependence services."""
        return Dependences(self.accesses, self.updates)

    @lazy
    def violations(self) -> tuple[Violation, ...]:
        """All broken rules of validity."""
        from steptp_dagster.leir.validity import violations_of

        return violations_of(self)


def per_program(
    function: Callable[Concatenate[SignedProgram, _More], _Value],
) -> Callable[Concatenate[SignedProgram, _More], _Value]:
    """Remember what a function of a program and hashable arguments gave, with its analysis."""

    @wraps(function)
    def remembered(signed: SignedProgram, /, *args: _More.args, **named: _More.kwargs) -> _Value:
        figures = Analysis.of(signed).figures
        key = function, args, tuple(named.items())
        if key not in figures:
            figures[key] = function(signed, *args, **named)
        return figures[key]  # type: ignore[return-value]  # what this function gave

    return remembered
