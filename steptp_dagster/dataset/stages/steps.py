"""Steps: every strategy surveyed on every source, and on some results; the chosen sites taken."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import polars as pl

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import Json, canonical_json, digest, rank, step_id
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.parallel import Workers
from steptp_dagster.dataset.programs import row_of
from steptp_dagster.dataset.schemas import (
    LEIR_PROGRAMS,
    SURVEYS,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    Row,
)
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import strategy_version
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.collector import collect_rarely
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.progress import Progress
from steptp_dagster.reasoning.check import grounding
from steptp_dagster.reasoning.render import render_json, render_text
from steptp_dagster.reasoning.style import STYLES
from steptp_dagster.strategies.alternatives import compared, surveyed
from steptp_dagster.strategies.base import Parameter, Refusal, Site, Strategy
from steptp_dagster.strategies.choice import spread
from steptp_dagster.strategies.registry import faults, strategies, strategy
from steptp_dagster.strategies.step import Step, take

STAGE = Stage(
    "steps",
    {
        "surveys": SURVEYS,
        "transformed_steps": TRANSFORMED_STEPS,
        "step_programs": LEIR_PROGRAMS,
    },
    {
        "surveys": ("survey_id",),
        "transformed_steps": ("step_id",),
        "step_programs": ("leir_id", "unit"),
    },
)


class StepFailure(RuntimeError):
    """A strategy raised instead of refusing: a defect of the strategy, with what it was given."""


class BrokenPlugin(ValueError):
    """A plug-in gives no strategy: a build without it would drop what it made before."""


class UnknownStrategy(ValueError):
    """The profile names a strategy that is not registered."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A program that steps start from: a source, or the result of a step.

    ``passed`` are the structural hashes of the programs from the source to it, itself included.
    """

    source_id: str
    leir_id: str
    step_id: str | None
    depth: int
    signature: str
    text: str
    tokens: int
    passed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One strategy on one parent: how many sites, longest parent (tokens), seed, style of text."""

    parent: Parent
    strategy: str
    sites: int
    longest: int
    seed: int
    style: str


def update_steps(
    store: Store,
    program: str,
    profile: Profile,
    workers: Workers,
    origin: Origin,
    progress: Progress[Made],
) -> Report:
    """Bring the surveys and steps of one program up to date."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        groups = [list(g) for _, g in groupby(missing, key=lambda unit: unit.payload.parent)]
        made = (m for group in workers.map(work, groups) for m in group)
        return progress(f"steps of {program}", len(missing), made)

    def chains(depth: int) -> "Chains":
        return Chains(profile, depth, sources)

    plan = profile.steps
    parents = source_parents(store, program)
    sources = {parent.leir_id: parent.passed[0] for parent in parents}
    return update(
        store,
        STAGE,
        program,
        units(parents, profile, lambda name: plan.sites_of.get(name, plan.sites)),
        compute,
        origin=origin,
        grow=[chains(depth) for depth in range(plan.depth)],
    )


def source_parents(store: Store, program: str) -> list[Parent]:
    """The translated sources of a program that no screen holds back."""
    programs = {r["leir_id"]: r for r in store.read(LEIR_PROGRAMS, program).to_dicts()}
    fine = [
        row
        for row in store.read(TRANSLATIONS, program).to_dicts()
        if row["leir_id"] is not None and not row["screens"]
    ]
    return [_parent(row["source_id"], programs[row["leir_id"]], None, ()) for row in fine]


def _parent(source: str, row: Row, step: str | None, passed: tuple[str, ...]) -> Parent:
    return Parent(
        source_id=source,
        leir_id=row["leir_id"],
        step_id=step,
        depth=len(passed),
        signature=row["signature"],
        text=row["text"],
        tokens=row["tokens"],
        passed=(*passed, row["structural_hash"]),
    )


def units(parents: Sequence[Parent], profile: Profile, sites: Callable[[str], int]) -> list[Unit]:
    """One unit per parent and strategy, parents together; ``sites`` steps of each strategy.

    Raises BrokenPlugin, UnknownStrategy.
    """
    if broken := faults():
        raise BrokenPlugin("; ".join(map(str, broken)))
    known = strategies()
    chosen = sorted(known) if profile.strategies is None else profile.strategies
    named = (*chosen, *profile.steps.prefer, *profile.steps.sites_of)
    if unknown := [n for n in (*named, *profile.balance.named_strategies) if n not in known]:
        raise UnknownStrategy(f"no strategy {unknown[0]!r}; one of {', '.join(sorted(known))}")
    return [
        Unit(
            digest(
                "unit",
                "steps",
                parent.source_id,
                parent.leir_id,
                parent.step_id,
                name,
                strategy_version(name),
                parent.passed,
                [sites(name), profile.steps.tokens, profile.seed, profile.steps.reasoning],
            ),
            Task(
                parent,
                name,
                sites(name),
                profile.steps.tokens,
                profile.seed,
                profile.steps.reasoning,
            ),
        )
        for parent in parents
        for name in chosen
    ]


@dataclass(frozen=True, slots=True)
class Chains:
    """Wants steps that start from results of steps of one depth, chosen by hash.

    ``sources`` are the structural hashes of the source programs by id.
    """

    profile: Profile
    depth: int
    sources: Mapping[str, str]

    def __call__(self, rows: Mapping[str, pl.DataFrame]) -> list[Unit]:
        """The units that start from the chosen results."""
        plan = self.profile.steps
        programs = {row["leir_id"]: row for row in rows["step_programs"].to_dicts()}
        steps = rows["transformed_steps"].filter(pl.col("step_depth") == self.depth).to_dicts()
        # A program that is a parent already would give the same steps once more.
        seen = set(rows["surveys"].select("source_id", "parent_leir_id").rows())
        by_source: dict[str, list[Row]] = {}
        for step in sorted(steps, key=self._order):
            pair = (step["source_id"], step["result_leir_id"])
            if pair not in seen:
                seen.add(pair)
                by_source.setdefault(step["source_id"], []).append(step)
        hashes = self._hashes(rows, programs)
        parents = [
            _parent(source, programs[s["result_leir_id"]], s["step_id"], hashes[s["step_id"]])
            for source, own in sorted(by_source.items())
            for s in own[: plan.chains]
        ]
        return units(parents, self.profile, lambda _: plan.chain_sites)

    def _hashes(
        self, rows: Mapping[str, pl.DataFrame], programs: Mapping[str, Row]
    ) -> dict[str, tuple[str, ...]]:
        """For every step the structural hashes of the programs on its way, the source first."""
        sources = self.sources
        passed: dict[str, tuple[str, ...]] = {}
        for step in rows["transformed_steps"].sort("step_depth").to_dicts():
            before, parent = step["parent_step_id"], step["parent_leir_id"]
            known = sources.get(parent) or programs[parent]["structural_hash"]
            passed[step["step_id"]] = (*(passed[before] if before else ()), known)
        return passed

    def _order(self, step: Row) -> tuple[int, str]:
        """Results of preferred strategies first, and by hash."""
        prefer = self.profile.steps.prefer
        place = prefer.index(step["strategy"]) if step["strategy"] in prefer else len(prefer)
        return place, rank(self.profile.seed, "chain", step["step_id"])


def work(group: Sequence[Unit]) -> list[Made]:
    """Do units that share one parent; runs in a worker process."""
    collect_rarely()
    parent: Parent = group[0].payload.parent
    signed = signed_of(parent.signature, parent.text)
    return [timed(unit, partial(_rows, unit.payload, signed)) for unit in group]


def _rows(task: Task, signed: SignedProgram) -> dict[str, list[Row]]:
    """The survey, the steps taken, and the programs that they lead to."""
    chosen = strategy(task.strategy)
    refusals: list[Refusal] = []
    steps: list[Step] = []
    found = 0
    if task.parent.tokens > task.longest:
        message = f"{task.parent.tokens} tokens, more than the profile's {task.longest}"
        refusals.append(Refusal(task.strategy, (), "program-too-long", message))
    else:
        try:
            survey = surveyed(chosen, signed)
            found = len(survey.sites)
            refusals += survey.refusals
            for outcome in _outcomes(chosen, signed, survey.sites, task):
                if isinstance(outcome, Refusal):
                    refusals.append(outcome)
                elif (again := _nothing_new(outcome, task.parent)) is not None:
                    refusals.append(again)
                else:
                    steps.append(compared(chosen, outcome))
                if len(steps) == task.sites:
                    break
        except Exception as error:
            where = f"{task.strategy} on {task.parent.leir_id} of source {task.parent.source_id}"
            raise StepFailure(f"{where}: {type(error).__name__}: {error}") from error
    survey_row: Row = {
        "survey_id": digest(
            "survey", task.parent.source_id, task.parent.leir_id, task.parent.step_id, task.strategy
        ),
        "source_id": task.parent.source_id,
        "parent_leir_id": task.parent.leir_id,
        "parent_step_id": task.parent.step_id,
        "strategy": task.strategy,
        "sites": found,
        "taken": len(steps),
        "refusals": _counted(refusals),
    }
    results = [row_of(step.after) for step in steps]
    rows = [
        _step_row(task, chosen, step, result["leir_id"])
        for step, result in zip(steps, results, strict=True)
    ]
    distinct = {row["leir_id"]: row for row in results}
    return {
        "surveys": [survey_row],
        "transformed_steps": rows,
        "step_programs": list(distinct.values()),
    }


def _nothing_new(step: Step, parent: Parent) -> Refusal | None:
    """Why a step leads nowhere: to the structure of its program, or of one on the way there."""
    found = structural_hash(step.after)
    if found == parent.passed[-1]:
        message = "the result differs from the program in names and order of operands only"
        return Refusal(step.strategy, step.site.path, "no-change", message)
    if found in parent.passed:
        number = parent.passed.index(found)
        where = f"after {number} of its {len(parent.passed) - 1} steps" if number else "its source"
        message = f"the result has the structure of a program that the chain has been at: {where}"
        return Refusal(step.strategy, step.site.path, "comes-back", message)
    return None


def _outcomes(
    chosen: Strategy, signed: SignedProgram, sites: Sequence[Site], task: Task
) -> Iterator[Step | Refusal]:
    """The sites one by one, spread over what there is to choose; equals by their hash."""

    def order(site: Site) -> str:
        return rank(
            task.seed, "site", task.parent.leir_id, site.strategy, site.path, parameters(site)
        )

    return (take(chosen, signed, site) for site in spread(sites, order))


def parameters(site: Site) -> dict[str, Json]:
    """The parameters of a site as plain values."""
    return {name: _plain(value) for name, value in site.parameters}


def _plain(value: Parameter) -> Json:
    return list(value) if isinstance(value, tuple) else value


def _counted(refusals: Sequence[Refusal]) -> list[Row]:
    """One entry a reason: the first message, and how often."""
    counts = Counter(refusal.reason for refusal in refusals)
    first = {refusal.reason: refusal.message for refusal in reversed(refusals)}
    return [{"reason": r, "message": first[r], "count": counts[r]} for r in sorted(counts)]


def _step_row(task: Task, chosen: Strategy, step: Step, result: str) -> Row:
    parent, site = task.parent, step.site
    style = STYLES[task.style]
    text = render_text(chosen, site, step.explanation, style)
    mismatches = grounding(step.before, step.after, chosen, site, step.explanation, text, style)
    values = parameters(site)
    return {
        "step_id": step_id(
            parent.source_id, parent.leir_id, step.strategy, step.version, site.path, values
        ),
        "source_id": parent.source_id,
        "parent_leir_id": parent.leir_id,
        "parent_step_id": parent.step_id,
        "strategy": step.strategy,
        "strategy_level": chosen.level,
        "strategy_version": step.version,
        "site": canonical_json(list(site.path)),
        "parameters": canonical_json(values),
        "result_leir_id": result,
        "step_depth": parent.depth,
        "numerics": step.numerics,
        "reasoning": canonical_json(render_json(chosen, site, step.explanation)),
        "reasoning_text": text,
        "mismatches": [f"{m.kind}: {m.message}" for m in mismatches],
    }
