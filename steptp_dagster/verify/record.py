"""Verdicts as values: what was judged, the evidence, the reason. Needs no TVM."""

from dataclasses import asdict, dataclass, fields
from math import isfinite, isnan
from operator import attrgetter
from typing import Any, Final, Literal

from steptp_dagster.leir.violation import Violation
from steptp_dagster.verify.reasons import OF_THE_MACHINE

#: ``built``: compiled for a GPU that is not here, so that nothing is said of values.
Equality = Literal["exact", "reassociated", "rejected", "built"]
#: What a verdict rests on: nothing was run, both programs were compiled, they ran, or small
#: programs of the same structure did (``dataset.siblings``).
Evidence = Literal["static", "built", "executed", "sibling"]

#: What pairs can be judged on.
TARGETS: Final = ("llvm", "cuda:sm_80", "cuda:sm_90")


class InvalidOriginal(ValueError):
    """The original is not valid LEIR, so that nothing can be said of the candidate."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        super().__init__(f"the original is invalid: {violations[0].message}")
        self.violations = violations


@dataclass(frozen=True, slots=True)
class FamilyEvidence:
    """What was measured on one family, the worst over all outputs.

    ``difference`` is T1's normalised difference, None where T1 does not apply. The errors are
    T2's, in epsilons of the output's dtype, None where only finiteness is asked for or no output
    is a float. ``new_non_finite`` counts elements that the candidate alone lost.
    """

    family: str
    difference: float | None
    original_error: float | None
    candidate_error: float | None
    original_non_finite: int
    candidate_non_finite: int
    new_non_finite: int
    exact: bool
    bitwise: bool
    failure: str | None

    def __reduce__(self) -> tuple[type["FamilyEvidence"], tuple[object, ...]]:
        """Pickled by its values, twice as fast as by default: thirty go with each verdict."""
        return FamilyEvidence, _values(self)


_values: Final = attrgetter(*(field.name for field in fields(FamilyEvidence)))


@dataclass(frozen=True, slots=True)
class KernelFigures:
    """What one CUDA kernel takes, as the compiler says, and how it is launched.

    ``nest`` is the number of the top-level nest, ``grid`` and ``block`` have x, y and z. Registers,
    stack and spills (bytes) count per thread, shared memory (bytes) and barriers per block.
    ``occupancy`` is the share of a multiprocessor's warps that can be resident at once.
    """

    nest: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    shared_bytes: int
    barriers: int
    occupancy: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Accepted or rejected, with all evidence. ``reason`` is None exactly when accepted.

    A verdict that is only ``built`` is not accepted, and says nothing of values. ``kernels`` are
    the candidate's on a CUDA target, ``original_kernels`` the original's. ``sibling`` names what
    was run in place of the programs, as (what, value).
    """

    accepted: bool
    equality: Equality
    bitwise: bool
    reason: str | None
    message: str = ""
    static: tuple[Violation, ...] = ()
    families: tuple[FamilyEvidence, ...] = ()
    dropped_families: tuple[str, ...] = ()
    margins: tuple[tuple[str, float], ...] = ()
    target: str = "llvm"
    seeds: tuple[int, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    evidence: Evidence = "static"
    kernels: tuple[KernelFigures, ...] = ()
    original_kernels: tuple[KernelFigures, ...] = ()
    sibling: tuple[tuple[str, str], ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the pair alone decided, so that the verdict is the same on every run.

        False where a worker's limits of time or memory, its death, or a missing compiler rejected:
        that is to be tried again, not kept (``reasons.OF_THE_MACHINE``).
        """
        return self.reason not in OF_THE_MACHINE

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON values; infinite numbers are the texts ``inf``, ``-inf``."""
        record = asdict(self)
        record["margins"] = dict(self.margins)
        record["versions"] = dict(self.versions)
        record["sibling"] = dict(self.sibling)
        plain = _plain(record)
        if not isinstance(plain, dict):
            raise TypeError("a verdict is a JSON object")
        return plain


def rejection(
    reason: str,
    message: str,
    static: tuple[Violation, ...] = (),
    evidence: Evidence = "static",
) -> Verdict:
    """A verdict that rejects without numerical evidence."""
    return Verdict(False, "rejected", False, reason, message, static, evidence=evidence)


def _plain(value: object) -> object:
    """Tuples as lists, infinite floats as texts, everything below likewise."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not isfinite(value):
        return "nan" if isnan(value) else "inf" if value > 0 else "-inf"
    return value
