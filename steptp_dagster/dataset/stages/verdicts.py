"""Verdicts: every pair of programs judged once per target, then said of every step."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from json import loads
from typing import TYPE_CHECKING, Final

import polars as pl

from steptp_dagster.dataset.acceptance import DECISIVE
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import Json, canonical_json, digest, rank
from steptp_dagster.dataset.incremental import (
    Made,
    Origin,
    Report,
    Stage,
    Unit,
    update,
    write_changed,
)
from steptp_dagster.dataset.programs import signed_of
from steptp_dagster.dataset.schemas import (
    GPU_VERIFICATION,
    LEIR_PROGRAMS,
    TRANSFORMED_STEPS,
    TRANSLATIONS,
    VERDICTS,
    Row,
    polars_schema,
)
from steptp_dagster.dataset.siblings import on_siblings
from steptp_dagster.dataset.small_chains import NO_SIBLINGS, SmallChains
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version, package_version, steps_version
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.progress import Progress
from steptp_dagster.verify import reasons
from steptp_dagster.verify.versions import gpu_here, nvrtc_available

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import Verdict

#: Parent, result and target.
Task = tuple[str, str, str]

STAGE = Stage(
    "verdicts",
    {"verdicts": VERDICTS},
    {"verdicts": ("parent_leir_id", "result_leir_id", "target")},
)

#: Reasons of a rejection before the candidate was compiled, and while it ran.
NOT_BUILT: Final = frozenset(
    {
        reasons.INVALID_ORIGINAL,
        reasons.SIGNATURE_CHANGED,
        reasons.INVALID,
        reasons.OVER_LIMITS,
        reasons.TOO_LARGE,
        reasons.FIRST_TOUCH,
        reasons.LAUNCH_LIMITS,
        reasons.SHARED_MEMORY,
        reasons.SCOPE_ACROSS_KERNELS,
        reasons.BUILD_ERROR,
        reasons.NO_COMPILER,
    }
)
NOT_RUN: Final = frozenset(
    {
        reasons.INPUT_OVERWRITTEN,
        reasons.OUT_OF_BOUNDS,
        reasons.CRASHED,
        reasons.TIMED_OUT,
        reasons.OUT_OF_MEMORY,
    }
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
        made = judge(missing, programs, verifier, smaller)
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
    report = update(store, STAGE, program, wanted, compute, origin=origin)
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
    siblings = smaller.names(*task[:2])
    more: list[Json] = [[*siblings, steps_version()]] if siblings else []
    if task[2] != DECISIVE:
        # What was only built is run once there is a GPU.
        more += [package_version("nvidia-cuda-nvrtc"), gpu_here()]
    return Unit(digest("unit", "verdicts", code_version("verdicts"), *task, seed, *more), task)


def chosen(profile: Profile, pair: tuple[str, str]) -> bool:
    """Whether a pair is among those that CUDA targets are tried on."""
    place = int(rank(profile.verification.seed, "cuda", *pair)[:8], 16)
    return place < profile.verification.cuda_share * 2**32


def known_programs(store: Store, program: str) -> dict[str, SignedProgram]:
    """All LEIR programs of a workload by id."""
    rows = [
        *store.read(LEIR_PROGRAMS, program).to_dicts(),
        *store.read(LEIR_PROGRAMS, program, "step_programs").to_dicts(),
    ]
    texts = {row["leir_id"]: (row["signature"], row["text"]) for row in rows}
    return {name: signed_of(*both) for name, both in texts.items()}


def judge(
    missing: Sequence[Unit],
    programs: dict[str, SignedProgram],
    verifier: "Verifier",
    smaller: SmallChains = NO_SIBLINGS,
) -> Iterator[Made]:
    """The verdict of every missing pair, target by target; those that siblings stand for last."""
    waiting: list[tuple[Unit, Verdict]] = []
    before = time.perf_counter()
    for target, units in groupby(missing, key=lambda unit: unit.payload[2]):
        tasks = [(unit, programs[unit.payload[0]], programs[unit.payload[1]]) for unit in units]
        other = {} if target == DECISIVE else {"target": target}
        for unit, verdict in verifier.verify_many(tasks, **other):
            if _waits(verdict, target) and smaller.names(*unit.payload[:2]):
                waiting.append((unit, verdict))
                continue
            now = time.perf_counter()
            yield _made(unit, verdict, now - before)
            before = time.perf_counter()
    yield from _on_siblings(waiting, smaller, verifier)


def _waits(verdict: "Verdict", target: str) -> bool:
    """Whether siblings may stand for a pair: not on other targets, whose verdict is their own."""
    return target == DECISIVE and verdict.reason == reasons.TOO_LARGE


def _on_siblings(
    waiting: Sequence[tuple[Unit, "Verdict"]], smaller: SmallChains, verifier: "Verifier"
) -> Iterator[Made]:
    """Pairs that passed everything static and are too large to run, judged on siblings."""
    before = time.perf_counter()
    for unit, verdict in waiting:
        found = smaller.pairs(*unit.payload[:2])
        if isinstance(found, str):
            told = replace(verdict, message=f"{verdict.message}; {found}")
        else:
            tasks = [(pair.name, pair.before, pair.after) for pair in found]
            small = [v for _, v in verifier.verify_many(tasks)]
            told = on_siblings(small, [(pair.name, pair.told) for pair in found])
        now = time.perf_counter()
        yield _made(unit, told, now - before)
        before = time.perf_counter()


def _made(unit: Unit, verdict: "Verdict", seconds: float) -> Made:
    ids = {"parent_leir_id": unit.payload[0], "result_leir_id": unit.payload[1]}
    return Made(unit, {"verdicts": [{**ids, **judged(verdict)}]}, seconds)


def judged(verdict: "Verdict") -> Row:
    """The columns of a verdict: target, passes, label, reason and evidence."""
    told = verdict.to_json()
    built = verdict.reason not in NOT_BUILT
    run = verdict.equality != "built"
    numeric = {key: told[key] for key in ("families", "dropped_families", "message")}
    return {
        "target": verdict.target,
        "build_pass": built,
        "exec_pass": built and verdict.reason not in NOT_RUN if run else None,
        "equal_pass": verdict.accepted if run else None,
        "bitwise": verdict.bitwise if run else None,
        "equality": verdict.equality,
        "evidence": "executed" if verdict.reason in NOT_RUN else verdict.evidence,
        "sibling": canonical_json({name: loads(text) for name, text in verdict.sibling}),
        "kernels": told["kernels"],
        "parent_kernels": told["original_kernels"],
        "reason": verdict.reason,
        "static": canonical_json(told["static"]),
        "numeric": canonical_json(numeric),
        "margins": canonical_json(told["margins"]),
        "seeds": canonical_json(told["seeds"]),
        "toolchain": canonical_json(told["versions"]),
    }
