"""Verdicts: every pair of programs judged once per target, then said of every step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from steptp_dagster.dataset.acceptance import DECISIVE
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import Json, digest, rank
from steptp_dagster.dataset.incremental import (
    Made,
    Origin,
    Report,
    Stage,
    Unit,
    update,
    write_changed,
)
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    VERDICTS,
    polars_schema,
)
from steptp_dagster.dataset.small_chains import NO_SIBLINGS, SmallChains
from steptp_dagster.dataset.stages.judging import AGAIN, Pair, judge, judged, known_programs
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version, package_version
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.progress import Progress
from steptp_dagster.verify import reasons
from steptp_dagster.verify.gpu import fits, gpu_here, without
from steptp_dagster.verify.versions import nvrtc_available

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier

#: Parent, result and target.
Task = tuple[str, str, str]

STAGE = Stage(
    "verdicts",
    {"verdicts": VERDICTS},
    {"verdicts": ("parent_leir_id", "result_leir_id", "target")},
    again=AGAIN,
)


class NoCompiler(RuntimeError):
    """The profile asks for a target whose compiler is not installed."""


def update_verdicts(
    store: Store,
    program: str,
    profile: Profile,
    verifier: "Verifier",
    origin: Origin,
    progress: Progress[Made],
) -> Report:
    """Bring the verdicts of one workload's steps up to date, and the table that steps join."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = verdicts_of(missing, programs, verifier, smaller)
        return progress(f"verdicts of {program}", len(missing), made)

    steps = store.read(TRANSFORMED_STEPS, program)
    programs = known_programs(store, program)
    smaller = SmallChains.of(store.read(TRANSLATIONS, program), steps, programs)
    pairs = steps.select("parent_leir_id", "result_leir_id").unique().sort(pl.all()).rows()
    plan = profile.verification
    if plan.targets != (plan.target,) and not nvrtc_available():
        raise NoCompiler(
            "the profile names CUDA targets, which need NVRTC: pip install 'steptp-dagster[cuda]'"
        )
    wanted = [
        _unit((*pair, target), plan.seed, smaller)
        for target in plan.targets
        for pair in pairs
        if target == plan.target or chosen(profile, pair)
    ]
    report = update(store, stage_here(plan.targets), program, wanted, compute, origin=origin)
    verdicts = store.read(VERDICTS, program)
    columns = list(polars_schema(GPU_VERIFICATION))
    joined = (
        steps.select("step_id", "parent_leir_id", "result_leir_id")
        .join(verdicts, on=["parent_leir_id", "result_leir_id"])
        .select(columns)
        .sort("step_id", "target")
    )
    write_changed(store, GPU_VERIFICATION, program, joined)
    return report


def _unit(task: Task, seed: int, smaller: SmallChains) -> Unit:
    more: list[Json] = smaller.basis(*task[:2])
    if task[2] != DECISIVE:
        # No GPU is part of it: what one has executed is evidence on machines without it too.
        more = [package_version("nvidia-cuda-nvrtc")]
    return Unit(digest("unit", "verdicts", code_version("verdicts"), *task, seed, *more), task)


def stage_here(targets: Iterable[str]) -> Stage:
    """The stage on this machine: what was only built for want of a GPU that is here is run now.

    All else stands, whatever GPU is here: what was executed, and what is too large for any.
    """
    gpu, again = gpu_here(), AGAIN
    for target in targets:
        architecture = target.removeprefix("cuda:")
        if target != DECISIVE and fits(gpu, architecture):
            built = (pl.col("reason") == reasons.NOT_EXECUTED) & (pl.col("target") == target)
            wanting = pl.col("numeric").str.contains(without(architecture), literal=True)
            again = again | (built & wanting)
    return replace(STAGE, again=again)


def chosen(profile: Profile, pair: tuple[str, str]) -> bool:
    """Whether a pair is among those that CUDA targets are tried on."""
    place = int(rank(profile.verification.seed, "cuda", *pair)[:8], 16)
    return place < profile.verification.cuda_share * 2**32


def verdicts_of(
    missing: Sequence[Unit],
    programs: Mapping[str, SignedProgram],
    verifier: "Verifier",
    smaller: SmallChains = NO_SIBLINGS,
) -> Iterator[Made]:
    """The rows of every missing pair, target by target; those that siblings stand for last."""
    pairs = (_pair(unit, programs, smaller) for unit in missing)
    for unit, verdict, seconds in judge(pairs, verifier):
        ids = {"parent_leir_id": unit.payload[0], "result_leir_id": unit.payload[1]}
        yield Made(unit, {"verdicts": [{**ids, **judged(verdict)}]}, seconds)


def _pair(unit: Unit, programs: Mapping[str, SignedProgram], smaller: SmallChains) -> Pair:
    """Siblings may stand for it on the decisive target; verdicts of others are their own."""
    parent, result, target = unit.payload
    large = target == DECISIVE and smaller.stand_for(parent, result)
    stand_ins = partial(smaller.pairs, parent, result) if large else None
    return Pair(unit, programs[parent], programs[result], target, stand_ins)
