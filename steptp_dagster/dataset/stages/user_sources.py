"""Source programs from users' files: what a file has, sampled; or why it has nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import polars as pl

from steptp_dagster.dataset.config import Profile, UserPlan
from steptp_dagster.dataset.ids import canonical_json, digest, source_id
from steptp_dagster.dataset.incremental import Made, Origin, Report, Stage, Unit, timed, update
from steptp_dagster.dataset.schemas import SOURCE_PROGRAMS, USER_PROGRAMS, Row
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.user_bench import bench
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress
from steptp_dagster.users.files import Content, UserFile, read
from steptp_dagster.users.isolation import Limits
from steptp_dagster.users.programs import UserProgram, UserSample
from steptp_dagster.users.refusal import UserRefusal

#: Refusals that say something of the machine and its load too, not of the file alone.
OF_THE_MACHINE = ("crashed", "out-of-memory", "timed-out")
#: The same stage as that of the library's programs, with one more table in front.
STAGE = Stage(
    "sources",
    {"user_programs": USER_PROGRAMS, "source_programs": SOURCE_PROGRAMS},
    {"user_programs": ("program",), "source_programs": ("source_id",)},
    again=pl.col("reason").is_in(OF_THE_MACHINE),
)
#: Before the message of a program whose samples were chosen without knowing all of it.
_STOOD_IN: Final = "some samples are not there yet, and the next build looks again: "


@dataclass(frozen=True, slots=True)
class Task:
    """One file as it is now, and what of its programs is wanted."""

    file: UserFile
    content: Content | UserRefusal
    dtypes: tuple[str, ...]
    forms: tuple[str, ...]
    samples: int
    seed: int
    limits: Limits


def update_user_sources(
    store: Store, file: UserFile, profile: Profile, origin: Origin, progress: Progress[Made]
) -> Report:
    """Bring the source programs of one file up to date; a file that did not change is not run."""

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        made = (timed(unit, partial(_rows, unit.payload)) for unit in missing)
        return progress(f"sources of {file.partition}", len(missing), made)

    plan = plan_of(profile)
    content = read(file)
    task = Task(
        file,
        content,
        plan.dtypes or profile.dtypes,
        profile.forms,
        plan.samples,
        profile.seed,
        limits_of(plan),
    )
    key = digest(
        "unit",
        "sources",
        code_version("user_sources"),
        file.name,
        str(content) if isinstance(content, UserRefusal) else content.code_hash,
        task.dtypes,
        task.forms,
        [task.samples, task.seed, task.limits.timeout_s, task.limits.memory_mb],
    )
    return update(store, STAGE, file.partition, [Unit(key, task)], compute, origin=origin)


def plan_of(profile: Profile) -> UserPlan:
    """The profile's plan of users' programs. Raises ValueError where it has none."""
    if profile.user_programs is None:
        raise ValueError(f"the profile {profile.name} has no user_programs")
    return profile.user_programs


def limits_of(plan: UserPlan) -> Limits:
    """The limits of a plan."""
    return Limits(plan.timeout_s, plan.memory_mb)


def _rows(task: Task) -> dict[str, list[Row]]:
    """Rows of a file; each of its programs is looked at by itself, so none hurts another."""
    if isinstance(task.content, UserRefusal):
        return {"user_programs": [_broken(task, task.content)], "source_programs": []}
    isolated = bench(task.limits, task.seed)
    programs = isolated.programs(task.file, task.content.text)
    if isinstance(programs, UserRefusal):
        return {"user_programs": [_broken(task, programs)], "source_programs": []}
    users: list[Row] = []
    sources: list[Row] = []
    for program in programs:
        found = isolated.samples(
            task.file, task.content.text, program.name, task.dtypes, task.samples
        )
        if isinstance(found, UserRefusal):
            users.append(_broken(task, found, program))
            continue
        rows = [
            _source(task, task.content, program, sample, dtype, form)
            for sample in found.samples
            for dtype in sample.dtypes
            for form in task.forms
        ]
        late = found.late
        told = {} if late is None else {"reason": late.reason, "message": f"{_STOOD_IN}{late}"}
        users.append(_user(task, program, samples=len(rows), **told))
        sources += rows
    return {"user_programs": users, "source_programs": sources}


def _user(task: Task, program: UserProgram | None, **known: object) -> Row:
    return {
        "file": task.file.name,
        "program": task.file.program(program.name if program else ""),
        "form": program.form if program else None,
        "code_hash": task.content.code_hash if isinstance(task.content, Content) else None,
        "samples": 0,
        "reason": None,
        "message": None,
        **known,
    }


def _broken(task: Task, refusal: UserRefusal, program: UserProgram | None = None) -> Row:
    return _user(task, program, reason=refusal.reason, message=str(refusal))


def _source(
    task: Task,
    content: Content,
    program: UserProgram,
    sample: UserSample,
    dtype: str,
    form: str,
) -> Row:
    name = task.file.program(program.name)
    identity = (name, content.code_hash, dtype, sample.shape, task.seed, form)
    return {
        "source_id": source_id(*identity),
        "program": name,
        "workload_level": 0,
        "family": task.file.partition,
        "code": sample.text,
        "code_hash": content.code_hash,
        "inputs": canonical_json([_input(told, sample.cast, dtype) for told in sample.inputs]),
        "params": canonical_json(
            {
                "file": task.file.name,
                "name": program.name,
                "constants": dict(sample.constants),
                "cast": sample.cast,
            }
        ),
        "dtype": dtype,
        "shapes": canonical_json(dict(sample.shape)),
        "seed": task.seed,
        "form": form,
    }


def _input(told: Mapping[str, Any], cast: bool, dtype: str) -> dict[str, Any]:
    floating = told["dtype"] in ("f16", "bf16", "f32", "f64")
    kind = dtype if cast and floating else told["dtype"]
    return {**told, "dtype": kind, "low": None, "high": None}
