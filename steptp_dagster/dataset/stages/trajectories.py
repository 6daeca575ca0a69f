"""Trajectories: chains of accepted steps, their first and last program judged as one pair."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steptp_dagster.dataset.acceptance import accepted_steps
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import canonical_json, digest, rank
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.programs import signed_of
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    LEIR_PROGRAMS,
    TRAJECTORIES,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    Row,
)
from steptp_dagster.dataset.siblings import NEEDED, on_siblings
from steptp_dagster.dataset.small_chains import NO_SIBLINGS, SmallChains
from steptp_dagster.dataset.stages.verdicts import judged, known_programs
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version, steps_version
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.progress import Progress
from steptp_dagster.verify import reasons

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import Verdict

STAGE = Stage("trajectories", {"trajectories": TRAJECTORIES}, {"trajectories": ("trajectory_id",)})


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A chain of steps, and both its ends as rows of ``leir_programs``.

    ``siblings`` are the small programs that could stand for it, where it is too large to run.
    """

    steps: tuple[Row, ...]
    first: Row
    last: Row
    siblings: tuple[str, ...]

    @property
    def step_ids(self) -> list[str]:
        """The ids of the steps, in order."""
        return [step["step_id"] for step in self.steps]


def update_trajectories(
    store: Store,
    program: str,
    profile: Profile,
    verifier: "Verifier",
    origin: Origin,
    progress: Progress[Made],
) -> Report:
    """Bring the trajectories of one program up to date; its steps are judged already."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = judge(missing, verifier, smaller)
        return progress(f"trajectories of {program}", len(missing), made)

    plan = profile.verification
    steps = store.read(TRANSFORMED_STEPS, program)
    programs = known_programs(store, program)
    smaller = SmallChains.of(store.read(TRANSLATIONS, program), steps, programs)
    wanted = [
        Unit(
            digest(
                "unit",
                "trajectories",
                code_version("trajectories"),
                path.step_ids,
                path.first["leir_id"],
                path.last["leir_id"],
                plan.target,
                plan.seed,
                [*path.siblings, steps_version()] if path.siblings else [],
            ),
            path,
        )
        for path in paths(store, program, profile, smaller)
    ]
    return update(store, STAGE, program, wanted, compute, origin=origin)


def paths(store: Store, program: str, profile: Profile, smaller: SmallChains) -> list[Trajectory]:
    """The chains that the profile asks for: of each source and length, the first by hash."""
    steps = store.read(TRANSFORMED_STEPS, program)
    accepted = accepted_steps(steps, store.read(GPU_VERIFICATION, program))
    programs = {
        row["leir_id"]: row
        for name in ("leir_programs", "step_programs")
        for row in store.read(LEIR_PROGRAMS, program, name).to_dicts()
    }
    found = []
    for chain in chosen(accepted, profile.steps.trajectories, profile.seed):
        ends = chain[0]["parent_leir_id"], chain[-1]["result_leir_id"]
        siblings = tuple(smaller.siblings.get(chain[0]["source_id"], ()))
        found.append(Trajectory(chain, programs[ends[0]], programs[ends[1]], siblings))
    return found


def chosen(accepted: Mapping[str, Row], most: int, seed: int) -> list[tuple[Row, ...]]:
    """Up to ``most`` chains of every source and length of at least two, by a hash of their end.

    Every step ends one chain; there are no others.
    """
    by_length: dict[tuple[str, int], list[Row]] = {}
    for step in accepted.values():
        if step["step_depth"] > 0:
            by_length.setdefault((step["source_id"], step["step_depth"]), []).append(step)
    found = []
    for name in sorted(by_length):
        ends = sorted(by_length[name], key=lambda s: rank(seed, "trajectory", s["step_id"]))
        found += [_chain(end, accepted) for end in ends[:most]]
    return found


def _chain(end: Row, accepted: Mapping[str, Row]) -> tuple[Row, ...]:
    steps = [end]
    while (before := steps[0]["parent_step_id"]) is not None:
        steps.insert(0, accepted[before])
    return tuple(steps)


def judge(
    missing: Sequence[Unit], verifier: "Verifier", smaller: SmallChains = NO_SIBLINGS
) -> Iterator[Made]:
    """The verdict of every missing trajectory; those that siblings stand for come last."""
    waiting: list[tuple[Unit, Verdict]] = []
    pairs = ((unit, _signed(unit.payload.first), _signed(unit.payload.last)) for unit in missing)
    before = time.perf_counter()
    for unit, verdict in verifier.verify_many(pairs):
        if verdict.reason == reasons.TOO_LARGE and unit.payload.siblings:
            waiting.append((unit, verdict))
            continue
        now = time.perf_counter()
        yield _made(unit, verdict, now - before)
        before = time.perf_counter()
    for unit, verdict in waiting:
        told = _on_siblings(unit.payload, verdict, smaller, verifier)
        now = time.perf_counter()
        yield _made(unit, told, now - before)
        before = time.perf_counter()


def _made(unit: Unit, verdict: "Verdict", seconds: float) -> Made:
    path: Trajectory = unit.payload
    row: Row = {
        "trajectory_id": digest("trajectory", path.step_ids),
        "source_id": path.steps[0]["source_id"],
        "step_ids": path.step_ids,
        "strategies": [step["strategy"] for step in path.steps],
        "length": len(path.steps),
        "first_leir_id": path.first["leir_id"],
        "last_leir_id": path.last["leir_id"],
        **judged(verdict),
    }
    return Made(unit, {"trajectories": [row]}, seconds)


def _on_siblings(
    path: Trajectory, verdict: "Verdict", smaller: SmallChains, verifier: "Verifier"
) -> "Verdict":
    """A chain that passed everything static and is too large to run, judged on its siblings."""
    first, last = (smaller.step(path.step_ids[n]) for n in (0, -1))
    if isinstance(first, str) or isinstance(last, str):
        words = next(found for found in (first, last) if isinstance(found, str))
        return replace(verdict, message=f"{verdict.message}; {words}")
    names = [name for name in last if name in first][:NEEDED]
    pairs = [(name, first[name].before, last[name].after) for name in names]
    shapes = smaller.siblings[path.steps[0]["source_id"]]
    told = [(name, canonical_json({"shapes": json.loads(shapes[name])})) for name in names]
    return on_siblings([v for _, v in verifier.verify_many(pairs)], told)


def _signed(row: Row) -> SignedProgram:
    return signed_of(row["signature"], row["text"])
