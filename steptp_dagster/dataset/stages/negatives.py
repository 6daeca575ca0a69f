"""Negatives: results of right steps with one mistake put in, and what the verdict says of them.

Which step, which kind of mistake and which place of it are chosen by hash. Candidates are wrong
only if the verdict says so: some mistakes change nothing.
"""

import inspect
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steptp_dagster.dataset.acceptance import TOLD, accepted_steps
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import digest, rank
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    NEGATIVES,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    Row,
)
from steptp_dagster.dataset.signed import signed_of
from steptp_dagster.dataset.small_chains import siblings_of
from steptp_dagster.dataset.stages.judging import AGAIN, judged, known_programs
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.leir.printer import to_text
from steptp_dagster.progress import Progress
from steptp_dagster.verify.mutation.catalogue import KINDS
from steptp_dagster.verify.mutation.generate import Base, Mutant, mutants

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import Verdict

#: Sparse: some steps take no mistake.
STAGE = Stage(
    "negatives",
    {"negatives": NEGATIVES},
    {"negatives": ("negative_id",)},
    again=AGAIN,
    sparse=True,
)


@dataclass(frozen=True, slots=True)
class Task:
    """A right step, both its programs, and the kinds of mistake in the order they are tried."""

    step: Row
    before: Row
    after: Row
    kinds: tuple[str, ...]
    seed: int


def update_negatives(
    store: Store,
    program: str,
    profile: Profile,
    verifier: "Verifier",
    origin: Origin,
    progress: Progress[Made],
) -> Report:
    """Bring the negatives of one program up to date; its steps are judged already."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return progress(f"negatives of {program}", len(missing), judge(missing, verifier))

    plan = profile.verification
    wanted = [
        Unit(
            digest(
                "unit",
                "negatives",
                code_version("negatives"),
                task.step["step_id"],
                task.before["leir_id"],
                task.after["leir_id"],
                task.kinds,
                [task.seed, plan.target, plan.seed],
            ),
            task,
        )
        for task in tasks(store, program, profile)
    ]
    return update(store, STAGE, program, wanted, compute, origin=origin)


def tasks(store: Store, program: str, profile: Profile) -> list[Task]:
    """The steps that mistakes are put into: of each source the first by hash, strategies apart.

    Of sources that are too large to run none: what is wrong must be seen.
    """
    steps = store.read(TRANSFORMED_STEPS, program)
    accepted = accepted_steps(steps, store.read(GPU_VERIFICATION, program))
    programs = known_programs(store, program).rows
    by_source: dict[str, list[Row]] = {}
    for step in sorted(
        accepted.values(), key=lambda s: rank(profile.seed, "negative", s["step_id"])
    ):
        by_source.setdefault(step["source_id"], []).append(step)
    found = []
    large = siblings_of(store.read(TRANSLATIONS, program))
    for own in (by_source[name] for name in sorted(by_source) if name not in large):
        for step in _different(own)[: profile.steps.negatives]:
            programs_of = programs[step["parent_leir_id"]], programs[step["result_leir_id"]]
            found.append(
                Task(step, *programs_of, _kinds(step["step_id"], profile.seed), profile.seed)
            )
    return found


def _kinds(step: str, seed: int) -> tuple[str, ...]:
    return tuple(sorted(KINDS, key=lambda kind: rank(seed, "mistake", step, kind)))


def _different(steps: Sequence[Row]) -> list[Row]:
    """The steps in an order in which every strategy comes before any comes again."""
    seen: dict[str, int] = {}
    turns = []
    for step in steps:
        seen[step["strategy"]] = seen.get(step["strategy"], 0) + 1
        turns.append(seen[step["strategy"]])
    return [step for _, step in sorted(zip(turns, steps, strict=True), key=lambda pair: pair[0])]


def spoilt(task: Task) -> Mutant | None:
    """The result of the step with a mistake of the first kind that it takes; None: it takes none.

    Every loop can start late, so that there is none for programs without loops only.
    """
    before = signed_of(task.before["signature"], task.before["text"])
    after = signed_of(task.after["signature"], task.after["text"])
    base = Base(task.step["step_id"], before, after)
    for kind in task.kinds:
        for mutant in mutants(base, task.seed, 1, {kind: KINDS[kind]}):
            return mutant
    return None


def judge(missing: Sequence[Unit], verifier: "Verifier") -> Iterator[Made]:
    """The verdict of every missing candidate, in order; a unit without one has no row."""
    before = time.perf_counter()
    made = [(unit, spoilt(unit.payload)) for unit in missing]
    pairs = ((unit, m.original, m.candidate) for unit, m in made if m is not None)
    verdicts = verifier.verify_many(pairs)
    for unit, mutant in made:
        rows: list[Row] = []
        if mutant is not None:
            _, verdict = next(verdicts)
            rows.append(_row(unit.payload, mutant, verdict))
        now = time.perf_counter()
        yield Made(unit, {"negatives": rows}, now - before)
        before = time.perf_counter()


def _row(task: Task, mutant: Mutant, verdict: "Verdict") -> Row:
    text = to_text(mutant.candidate.program)
    return {
        "negative_id": digest("negative", task.step["step_id"], text),
        "source_id": task.step["source_id"],
        "step_id": task.step["step_id"],
        "parent_leir_id": task.step["parent_leir_id"],
        "strategy": task.step["strategy"],
        "kind": mutant.kind,
        "change": f"{mistake(mutant.kind)} ({mutant.place}).",
        "candidate": text,
        "candidate_hash": structural_hash(mutant.candidate),
        "usable": rejected(verdict),
        **judged(verdict),
    }


def rejected(verdict: "Verdict") -> bool:
    """Whether a verdict rejects the candidate for what it is: proved, not merely undecided."""
    return verdict.reason in TOLD and all(v.kind != "undecided" for v in verdict.static)


def mistake(kind: str) -> str:
    """A kind of mistake in words: how its maker is documented, as part of a sentence."""
    first = (inspect.getdoc(KINDS[kind]) or kind).splitlines()[0].rstrip(".").replace("``", "`")
    return first[:1].lower() + first[1:]
