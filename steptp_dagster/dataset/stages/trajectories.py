"""Trajectories: chains of accepted steps, their first and last program judged as one pair."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from steptp_dagster.dataset.acceptance import accepted_steps
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import digest, rank
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, update
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    TRAJECTORIES,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    Row,
)
from steptp_dagster.dataset.small_chains import NO_SIBLINGS, SmallChains
from steptp_dagster.dataset.stages.judging import AGAIN, Pair, judge, judged, known_programs
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.progress import Progress

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import Verdict

STAGE = Stage(
    "trajectories",
    {"trajectories": TRAJECTORIES},
    {"trajectories": ("trajectory_id",)},
    again=AGAIN,
)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A chain of steps, and what it is called by."""

    steps: tuple[Row, ...]

    @property
    def step_ids(self) -> list[str]:
        """The ids of the steps, in order."""
        return [step["step_id"] for step in self.steps]

    @property
    def first(self) -> str:
        """The id of the program before all steps."""
        name: str = self.steps[0]["parent_leir_id"]
        return name

    @property
    def last(self) -> str:
        """The id of the program after all steps."""
        name: str = self.steps[-1]["result_leir_id"]
        return name


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
        made = trajectories_of(missing, programs, verifier, smaller)
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
                path.first,
                path.last,
                plan.target,
                plan.seed,
                smaller.chain_basis(path.steps),
            ),
            path,
        )
        for path in paths(store, program, profile)
    ]
    return update(store, STAGE, program, wanted, compute, origin=origin)


def paths(store: Store, program: str, profile: Profile) -> list[Trajectory]:
    """The chains that the profile asks for: of each source and length, the first by hash."""
    steps = store.read(TRANSFORMED_STEPS, program)
    accepted = accepted_steps(steps, store.read(GPU_VERIFICATION, program))
    chains = chosen(accepted, profile.steps.trajectories, profile.seed)
    return [Trajectory(chain) for chain in chains]


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


def trajectories_of(
    missing: Sequence[Unit],
    programs: Mapping[str, SignedProgram],
    verifier: "Verifier",
    smaller: SmallChains = NO_SIBLINGS,
) -> Iterator[Made]:
    """The rows of every missing trajectory; those that siblings stand for come last."""
    pairs = (_pair(unit, programs, smaller) for unit in missing)
    for unit, verdict, seconds in judge(pairs, verifier):
        yield Made(unit, {"trajectories": [_row(unit.payload, verdict)]}, seconds)


def _pair(unit: Unit, programs: Mapping[str, SignedProgram], smaller: SmallChains) -> Pair:
    path: Trajectory = unit.payload
    ids, large = path.step_ids, path.steps[0]["source_id"] in smaller.siblings
    stand_ins = partial(smaller.ends, ids[0], ids[-1]) if large else None
    return Pair(unit, programs[path.first], programs[path.last], smaller=stand_ins)


def _row(path: Trajectory, verdict: "Verdict") -> Row:
    return {
        "trajectory_id": digest("trajectory", path.step_ids),
        "source_id": path.steps[0]["source_id"],
        "step_ids": path.step_ids,
        "strategies": [step["strategy"] for step in path.steps],
        "length": len(path.steps),
        "first_leir_id": path.first,
        "last_leir_id": path.last,
        **judged(verdict),
    }
