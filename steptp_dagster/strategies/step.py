"""Taking a step: apply a strategy at a site and refuse results that break the contract.

Strategies list only legal sites, so a refusal here is a defect of the strategy. It is still a
value with a reason and not an exception: one bad site must not cost the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from steptp_dagster.leir.instances import same_instances
from steptp_dagster.leir.nest_memory import known_nest
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.strategies.base import Numerics, Refusal, Site, Strategy
from steptp_dagster.strategies.facts import Explanation
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.reading import nest_reads_back, reads_back
from steptp_dagster.strategies.soundness import numerics_of


@dataclass(frozen=True, slots=True)
class Step:
    """One strategy applied at one site of a valid program, with its explanation.

    ``numerics`` says what the step does to the values: ``exact`` or ``reassociated`` (equal up
    to rounding).
    """

    before: SignedProgram
    after: SignedProgram
    strategy: str
    version: str
    site: Site
    explanation: Explanation
    numerics: Numerics


def take(strategy: Strategy, program: SignedProgram, site: Site) -> Step | Refusal:
    """Apply ``strategy`` at a site that its survey of the valid ``program`` listed.

    A refusal has one of the reasons of ``objection``.
    """
    after = strategy.apply(program, site)
    found = objection(program, after, keeps_instances=strategy.keeps_instances(site))
    if found is not None:
        reason, message = found
        return Refusal(strategy.name, site.path, reason, message)
    explanation = strategy.explain(program, after, site)
    return Step(
        before=program,
        after=after,
        strategy=strategy.name,
        version=strategy.version,
        site=site,
        explanation=explanation,
        numerics=numerics_of(explanation),
    )


def steps(strategy: Strategy, program: SignedProgram) -> Iterator[Step | Refusal]:
    """The step at every site of a valid program, in the order of the survey."""
    return (take(strategy, program, site) for site in strategy.survey(program).sites)


def objection(
    before: SignedProgram, after: SignedProgram, *, keeps_instances: bool
) -> tuple[str, str] | None:
    """Why ``after`` is no legal result of a step from ``before``: reason and message, or None.

    Reasons: ``nothing-changed``, ``signature-changed``, ``does-not-read-back``,
    ``result-invalid``, ``result-over-limits``, ``instances-changed``.
    """
    if after.program == before.program:
        return "nothing-changed", "the step gives the program itself"
    if after.signature != before.signature:
        return "signature-changed", "the step changes the known variables"
    if not _reads_back(after):
        return "does-not-read-back", "the text of the result reads as another program"
    broken = fault(after)
    if broken is not None:
        return broken
    if keeps_instances:
        sameness = same_instances(before.program, after.program)
        if sameness != "same":
            return "instances-changed", f"equation instances before and after: {sameness}"
    return None


def _reads_back(signed: SignedProgram) -> bool:
    """Whether the text of a program reads as the program.

    Nests read back one by one where no read would be given another annotation: the text of a
    program is that of its nests.
    """
    if _annotated_alike(signed):
        return all(map(nest_reads_back, signed.program.nests))
    return reads_back(signed.program, signed.signature)


def _annotated_alike(signed: SignedProgram) -> bool:
    found = {v.name: (v.dtype, "g") for v in signed.signature.variables}
    for nest in signed.program.nests:
        for touched in known_nest(nest).outline.touched:
            if touched.annotation is None:
                return False
            dtype, scope, _ = touched.annotation
            if found.setdefault(touched.name, (dtype, scope)) != (dtype, scope):
                return False
    return True
