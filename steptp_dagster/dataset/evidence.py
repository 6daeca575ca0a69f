"""What speaks for a translation: all its comparisons with PyTorch, and what speaks against it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from steptp_dagster.dataset.fidelity import (
    INTERPRETED,
    Comparison,
    Rounding,
    cases,
    comparisons,
    roundings,
)
from steptp_dagster.leir.interpreter import InputError as NotInterpreted
from steptp_dagster.lowering import InputError, Unlowerable, executed_equations
from steptp_dagster.lowering.arena import KernelFault

if TYPE_CHECKING:
    from steptp_dagster.translate.reference import Reference

#: Families that must tell something about the compiled program.
FEWEST: Final = 3
#: Executed equations up to which the interpreter runs the program itself on several families;
#: above, it runs a small sibling, and where there is none, the given data up to ``_MOST``.
_FEW: Final = 10_000
_MOST: Final = 300_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """Comparisons in float64 by both evaluators, and errors in working precision.

    ``interpreted`` says what the interpreter ran: ``program``, ``sibling`` or ``nothing``.
    """

    comparisons: tuple[Comparison, ...]
    roundings: tuple[Rounding, ...]
    interpreted: str

    @property
    def worst(self) -> float:
        """The largest normalised difference of all comparisons that prove something."""
        return max((c.difference for c in self.comparisons if c.usable), default=0.0)

    @property
    def figures(self) -> dict[str, Any]:
        """What the table ``translations`` keeps of it: columns with plain values."""
        names = ("family", "pytorch", "leir", "predicted")
        return {
            "fidelity": self.worst,
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            "roundings": [{n: getattr(r, n) for n in names} for r in self.roundings],
            "interpreted": self.interpreted,
        }

    def objection(self) -> tuple[str, str] | None:
        """Why the translation must not be used, as a named reason and a sentence."""
        from steptp_dagster.translate.fidelity import TOLERANCE

        usable = [c for c in self.comparisons if c.usable]
        for found in usable:
            if not found.difference <= TOLERANCE:
                message = (
                    f"normalised difference {found.difference:.1e} from PyTorch in float64 on "
                    f"family {found.family}, by {found.evaluator}; at most {TOLERANCE} is faithful"
                )
                return "unfaithful", message
        counted = sum(c.evaluator == "tvm" for c in usable)
        if counted < FEWEST:
            message = (
                f"PyTorch has a value on {counted} families of data only; {FEWEST} are needed, "
                "so give inputs with the ranges that the program can take"
            )
            return "too-few-families", message
        for rounding in self.roundings:
            if not rounding.agrees:
                message = (
                    f"on family {rounding.family} PyTorch errs by {rounding.pytorch:.3g} epsilons, "
                    f"the LEIR by {rounding.leir:.3g}, and {rounding.predicted:.3g} are predicted"
                    + ("; the LEIR overflows where PyTorch does not" if rounding.overflow else "")
                )
                return "unfaithful-in-working-precision", message
        return None


def gathered(
    reference: "Reference", sibling: "Callable[[], Reference | None]" = lambda: None
) -> Evidence | tuple[str, str]:
    """As ``gather``; the named reason, and words, where a program cannot be compared."""
    try:
        return gather(reference, sibling)
    except (KernelFault, Unlowerable) as fault:
        return fault.reason, str(fault)
    except (InputError, NotInterpreted) as error:
        return "inputs-do-not-fit", str(error)
    except RuntimeError as error:
        return "invalid-when-run", str(error)


def gather(
    reference: "Reference", sibling: "Callable[[], Reference | None]" = lambda: None
) -> Evidence:
    """Compare a translation with its module; ``sibling`` makes a small one of the same structure.

    Raises what compiling, running and interpreting a program raise that is not as it should be:
    Unlowerable, KernelFault, RuntimeError.
    """
    tried = cases(reference)
    compiled = comparisons(reference, "tvm", tried)
    errors = roundings(reference, tried)
    executed = executed_equations(reference.translation.signed)
    small = reference if executed <= _FEW else sibling()
    if small is not None:
        own = tried if small is reference else cases(small, INTERPRETED)
        own = tuple(c for c in own if c.family is None or c.family.name in INTERPRETED)
        what = "program" if small is reference else "sibling"
        return Evidence((*compiled, *comparisons(small, "interpreter", own)), errors, what)
    if executed <= _MOST:
        run = comparisons(reference, "interpreter", tried[:1])
        return Evidence((*compiled, *run), errors, "program")
    return Evidence(compiled, errors, "nothing")
