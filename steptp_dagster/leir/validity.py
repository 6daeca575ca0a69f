"""The validity checker: every rule of LEIR, each with a kind of its own.

Structure first (``structure``), then elements (``elements``) and parallel loops (``races``). What
cannot be decided is the violation ``undecided``, never silently legal. A valid program has no
violations; target limits are checked apart (``limits``).
"""

from steptp_dagster.leir.analysis import Analysis
from steptp_dagster.leir.elements import check_elements
from steptp_dagster.leir.races import check_races
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.structure import check_structure
from steptp_dagster.leir.violation import Violation


def check(signed: SignedProgram) -> tuple[Violation, ...]:
    """All broken rules in text order; empty means valid.

    Kinds, by rule: ``unknown-name``, ``rank-mismatch``, ``annotation-conflict``,
    ``known-variable-changed``, ``input-written``, ``unbound-index``, ``index-rebound``, the types'
    (``typing``); ``axis-repeated``, ``parallel-nested``, ``parallel-in-vector``,
    ``vector-not-innermost``, ``vector-width``; ``thread-structure``, ``scope-lifetime``,
    ``scope-blocks``; ``out-of-bounds``, ``unwritten-read``, ``output-not-covered``,
    ``mixed-first-touch``, ``partial-value``, ``integer-division-by-zero`` (by an expression of
    indices; values of tensors are the run's business); ``loop-conflict``, ``cross-block``,
    ``thread-communication``; ``undecided``.

    Never raises on a program that could be constructed.
    """
    return Analysis.of(signed).violations


def is_valid(signed: SignedProgram) -> bool:
    """Whether the program breaks no rule."""
    return not check(signed)


def violations_of(analysis: Analysis) -> tuple[Violation, ...]:
    """The violations, from the analyses of a program."""
    structure = check_structure(analysis.accesses)
    found = list(structure.violations)
    if structure.sound:
        found.extend(
            check_elements(analysis.accesses, analysis.shapes, analysis.updates, structure.broken)
        )
        found.extend(check_races(analysis.accesses, analysis.dependences, structure.broken))
    return tuple(sorted(found, key=lambda v: (v.path or (1 << 30,), v.pos)))
