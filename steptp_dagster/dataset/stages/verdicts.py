"""Verdicts: every pair of programs judged once per target, then said of every step."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import canonical_json, digest
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
    VERDICTS,
    Row,
    polars_schema,
)
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.progress import Progress
from steptp_dagster.verify import reasons

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import Verdict

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
        return progress(f"verdicts of {program}", len(missing), judge(missing, programs, verifier))

    steps = store.read(TRANSFORMED_STEPS, program)
    programs = known_programs(store, program)
    pairs = steps.select("parent_leir_id", "result_leir_id").unique().sort(pl.all()).rows()
    plan = profile.verification
    wanted = [
        Unit(
            digest("unit", "verdicts", code_version("verdicts"), *pair, plan.target, plan.seed),
            pair,
        )
        for pair in pairs
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


def known_programs(store: Store, program: str) -> dict[str, SignedProgram]:
    """All LEIR programs of a workload by id."""
    rows = [
        *store.read(LEIR_PROGRAMS, program).to_dicts(),
        *store.read(LEIR_PROGRAMS, program, "step_programs").to_dicts(),
    ]
    texts = {row["leir_id"]: (row["signature"], row["text"]) for row in rows}
    return {name: signed_of(*both) for name, both in texts.items()}


def judge(
    missing: Sequence[Unit], programs: dict[str, SignedProgram], verifier: "Verifier"
) -> Iterator[Made]:
    """The verdict of every missing pair, in order."""
    tasks = [(unit, programs[unit.payload[0]], programs[unit.payload[1]]) for unit in missing]
    before = time.perf_counter()
    for unit, verdict in verifier.verify_many(tasks):
        now = time.perf_counter()
        ids = {"parent_leir_id": unit.payload[0], "result_leir_id": unit.payload[1]}
        yield Made(unit, {"verdicts": [{**ids, **judged(verdict)}]}, now - before)
        before = time.perf_counter()


def judged(verdict: "Verdict") -> Row:
    """The columns of a verdict: target, passes, label, reason and evidence."""
    told = verdict.to_json()
    built = verdict.reason not in NOT_BUILT
    numeric = {key: told[key] for key in ("families", "dropped_families", "message")}
    return {
        "target": verdict.target,
        "build_pass": built,
        "exec_pass": built and verdict.reason not in NOT_RUN,
        "equal_pass": verdict.accepted,
        "bitwise": verdict.bitwise,
        "equality": verdict.equality,
        "reason": verdict.reason,
        "static": canonical_json(told["static"]),
        "numeric": canonical_json(numeric),
        "margins": canonical_json(told["margins"]),
        "seeds": canonical_json(told["seeds"]),
        "toolchain": canonical_json(told["versions"]),
    }
