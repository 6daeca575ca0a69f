"""Where implicitly initialised updates get their identity.

An update whose every location is fresh starts from the identity of its operator. The lowering
writes the identities in a nest of their own, just before the outermost loop that brings the update
back to an element (``updates.Update.init_depth``).
"""

from dataclasses import dataclass

from steptp_dagster.leir.ast import Equation, Program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import Update, classify
from steptp_dagster.leir.walk import Path, accesses_in, at, equations_in, indices_in
from steptp_dagster.lowering.private import (
    Placed,
    PlacedEquation,
    instance_axes,
    placed_equations,
)
from steptp_dagster.lowering.unlowerable import Unlowerable

#: A place between two loops of a nest: before loop number ``depth`` of the nest at ``path``.
Before = tuple[Path, int]


@dataclass(frozen=True, slots=True)
class Initialisation:
    """Identities to write for ``equation``: over ``loops``, where the equation's guard holds."""

    equation: Equation
    outer: tuple[Placed, ...]
    loops: tuple[Placed, ...]
    identity: float | int


def identity(op: str, dtype: str) -> float | int:
    """What an update with ``op`` on a tensor of LEIR type ``dtype`` starts from."""
    kind = DTYPES[dtype]
    if op in ("+", "*"):
        return 0 if op == "+" else 1
    if kind.is_float:
        return float("-inf") if op == "max" else float("inf")
    if not kind.is_integer:
        return 0 if op == "max" else 1
    lowest = -(1 << (kind.bits - 1)) if kind.signed else 0
    return lowest if op == "max" else lowest + (1 << kind.bits) - 1


def initialisations(signed: SignedProgram) -> dict[Before, list[Initialisation]]:
    """All initialising nests by place, in text order of their equations.

    Where the place is before the equation itself, its path stands with depth 0. Raises
    Unlowerable if the locations of an update depend on values computed inside its own loops.
    """
    found: dict[Before, list[Initialisation]] = {}
    updates = classify(signed)
    for position, nest in enumerate(signed.program.nests):
        for placed in placed_equations(nest, (position,)):
            update = updates[placed.path]
            if update.init == "identity":
                where, initialisation = _placed(signed.program, placed, update)
                found.setdefault(where, []).append(initialisation)
    return found


def _placed(
    program: Program, placed: PlacedEquation, update: Update
) -> tuple[Before, Initialisation]:
    if update.op is None:
        raise TypeError("an update without an operator has no identity")
    target = placed.equation.target
    axes = set(instance_axes(target.scope, placed.loops))
    needed = _names(placed.equation)
    outer, inside = placed.loops[: update.init_depth], placed.loops[update.init_depth :]
    inner = tuple(p for p in inside if p[2].index in needed or p[2].axis in axes)
    where = inside[0][:2] if inside else (placed.path, 0)
    if inside:
        _refuse_moving_targets(program, placed, where)
    value = identity(update.op, target.dtype)
    return where, Initialisation(placed.equation, outer, inner, value)


def _names(equation: Equation) -> frozenset[str]:
    """The indices that decide which locations an equation writes."""
    names = frozenset[str]().union(*(indices_in(s) for s in equation.target.subscripts))
    return names if equation.guard is None else names | indices_in(equation.guard)


def _refuse_moving_targets(program: Program, placed: PlacedEquation, where: Before) -> None:
    equation = placed.equation
    deciding = [a.name for s in equation.target.subscripts for a in accesses_in(s)]
    if equation.guard is not None:
        deciding += [a.name for a in accesses_in(equation.guard)]
    if not deciding:
        return
    written = {e.equation.target.name for e in equations_in(at(program, where[0]))}
    moving = sorted(written.intersection(deciding))
    if moving:
        raise Unlowerable(
            "first-touch-undecidable",
            f"which locations of {equation.target.name} are updated depends on "
            f"{', '.join(moving)}, computed inside the same loops",
        )
