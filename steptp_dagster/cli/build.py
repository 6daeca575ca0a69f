"""``steptp build``: the Dagster job in this process, with progress and a closing summary."""

import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steptp_dagster import paths
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, say
from steptp_dagster.cli.storage import stage_files, storage_option
from steptp_dagster.cli.users import chosen, users_option

if TYPE_CHECKING:
    import dagster as dg

#: Exit code of a build that Ctrl-C ended, as shells have it.
STOPPED: Final = 130
#: How many verdicts say something of this machine only, which are made again.
UNSETTLED: Final = """
select count(*) from (
    select reason from gpu_verification
    union all select reason from trajectories
    union all select reason from negatives
) where list_contains(?, reason)
"""
#: One line for each program of users that is broken, or from which no step can start.
USER_PROBLEMS: Final = """
select message from (
    select file, program, message from user_programs where reason is not null
    union all
    select
        file, program,
        case when count(t.leir_id) = 0 then program || ' is not translated: ' || min(t.message)
        else program || ' makes no steps: ' || string_agg(distinct array_to_string(t.screens, ', '))
            || coalesce(' (' || min(t.message) || ')', '')
            || '; give smaller extents in SHAPES' end
    from user_programs join source_programs using (program) join translations t using (source_id)
    group by file, program
    having count(*) = count(*) filter (t.leir_id is null or len(t.screens) > 0)
) order by file, program
"""


@click.command()
@click.option("--profile", default="default", show_default=True, help="Name, or path of a .yaml.")
@click.option("--data", type=click.Path(path_type=Path), help="Data folder (default: data/).")
@click.option("--workers", type=click.IntRange(min=0), default=0, help="Processes; 0: every core.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting in place of the profile's, such as balance.enabled=false; may be repeated.",
)
@storage_option
@users_option
@json_option
def build(
    profile: str,
    data: Path | None,
    storage: str | None,
    workers: int,
    settings: tuple[str, ...],
    users: Path | None,
    as_json: bool,
) -> None:
    """Build the data set; what is there and still valid is kept.

    Programs of users that are broken or have no translation are named at the end; they do not make
    the build fail.
    """
    from steptp_dagster.dataset.config import ProfileError, load
    from steptp_dagster.dataset.storage.address import shown
    from steptp_dagster.strategies.registry import faults

    chosen(users)
    if settings:
        os.environ[paths.OVERRIDES_VARIABLE] = "\n".join(settings)
    try:
        load(profile)
    except ProfileError as error:
        raise Failure(str(error)) from error
    if broken := faults():
        raise Failure("\n".join(map(str, broken)))
    if data is not None:
        os.environ[paths.DATA_VARIABLE] = str(data.resolve())
    if storage is not None:
        os.environ[paths.STORAGE_VARIABLE] = storage
    stage_files(paths.data(), storage)
    os.environ["STEPTP_PROFILE"] = profile
    os.environ["STEPTP_WORKERS"] = str(workers)
    os.environ[paths.HOME_VARIABLE] = str(paths.dagster_home())
    start = time.monotonic()
    apart = f", stage files in {shown(paths.storage())}" if paths.storage() else ""
    say(f"Building profile {profile} into {paths.data()}{apart}")
    result = run()
    if _interrupted(result):
        raise Failure("stopped; what is done is kept, and the same command goes on", STOPPED)
    if not result.success:
        raise Failure(_why(result), REJECTED)
    summary = summarise(paths.data(), time.monotonic() - start, result.run_id)
    for problem in summary["user_problems"]:
        say(f"steptp: {problem}")
    if summary["unsettled"]:
        say(
            f"steptp: {summary['unsettled']} verdicts were not reached on this machine (time, "
            "memory, a process that died, no compiler); the next build tries them again, with the "
            "limits of its profile (verification.timeout_s, verification.memory_mb)"
        )
    emit(summary, lambda: words(summary), as_json=as_json)


def run() -> "dg.ExecuteInProcessResult":
    """Run the job ``build`` for all programs under the project's Dagster home."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from steptp_dagster.definitions import defs, settings, synchronise

    config = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with _instance() as instance:
        programs = synchronise(instance, settings.profile)
        tags = {
            "dagster/asset_partition_range_start": programs[0],
            "dagster/asset_partition_range_end": programs[-1],
            "steptp/progress": "console",
        }
        job = defs.resolve_job_def("build")
        return job.execute_in_process(
            instance=instance, tags=tags, run_config=config, raise_on_error=False
        )


def _instance() -> "dg.DagsterInstance":
    """The project's instance, but with the steps' output left on the console.

    Dagster copies it to files with three helper processes a step. Here nobody reads the files, and
    the helpers answer Ctrl-C with tracebacks.
    """
    import dagster as dg
    from dagster._core.instance.ref import InstanceRef
    from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager

    home = os.environ[paths.HOME_VARIABLE]
    quiet = {"module": NoOpComputeLogManager.__module__, "class": NoOpComputeLogManager.__name__}
    return dg.DagsterInstance.from_ref(
        InstanceRef.from_dir(home, overrides={"compute_logs": quiet})
    )


def _interrupted(result: "dg.ExecuteInProcessResult") -> bool:
    """Whether a signal (Ctrl-C) ended the run."""
    errors = (event.step_failure_data.error for event in result.get_step_failure_events())
    return any(e is not None and e.cls_name == "DagsterExecutionInterruptedError" for e in errors)


def _why(result: "dg.ExecuteInProcessResult") -> str:
    """Which step or check failed, and the innermost message."""
    failed = []
    for event in result.get_step_failure_events():
        error: Any = event.step_failure_data.error
        while error is not None and error.cause is not None:
            error = error.cause
        message = " ".join(str(error.message).split()) if error is not None else "no message"
        failed.append(f"{event.step_key}: {message}")
    broken = [
        f"check {e.check_name} of {e.asset_key.to_user_string()}: {e.description}"
        for e in result.get_asset_check_evaluations()
        if not e.passed
    ]
    return f"the build failed (run {result.run_id}); " + "; ".join(broken or failed)


def summarise(data: Path, seconds: float, run_id: str) -> dict[str, Any]:
    """What a finished build left behind, from the warehouse."""
    from steptp_dagster.dataset.schemas import STABLE
    from steptp_dagster.dataset.warehouse import connect, counts
    from steptp_dagster.verify.reasons import OF_THE_MACHINE

    file = data / "steptp.duckdb"
    with connect(file) as connection:
        rows = {name: n for name, n in counts(connection).items() if name in STABLE}
        verdicts = connection.execute(
            "select equality, count(*) from gpu_verification where target = 'llvm' "
            "group by equality order by equality"
        ).fetchall()
        splits = connection.execute(
            "select split, count(*) from filtered_dataset group by split order by split"
        ).fetchall()
        fresh = connection.execute(
            "select stage, count(*) from lineage where run_id = ? group by stage order by stage",
            [run_id],
        ).fetchall()
        problems = connection.execute(USER_PROBLEMS).fetchall()
        unsettled = connection.execute(UNSETTLED, [sorted(OF_THE_MACHINE)]).fetchall()
    return {
        "seconds": round(seconds, 1),
        "run_id": run_id,
        "computed": dict(fresh),
        "rows": rows,
        "verdicts": dict(verdicts),
        "unsettled": unsettled[0][0],
        "splits": dict(splits),
        "user_problems": [problem for (problem,) in problems],
        "warehouse": str(file),
        "export": str(data / "export"),
    }


def words(summary: dict[str, Any]) -> str:
    """The closing summary for people."""
    from steptp_dagster.dataset.card import percent

    rows, verdicts = summary["rows"], summary["verdicts"]
    accepted = sum(n for label, n in verdicts.items() if label != "rejected")
    labels = ", ".join(f"{n} {label}" for label, n in verdicts.items())
    splits = ", ".join(f"{n} {split}" for split, n in summary["splits"].items())
    # Units of work, not rows: one unit of the stage `steps` makes many steps.
    computed = ", ".join(f"{stage} {n}" for stage, n in summary["computed"].items())
    export = summary["export"]
    # As it was called: outside an active environment the bare name would not be found.
    called = sys.argv[0] if Path(sys.argv[0]).name == "steptp" else "steptp"
    name = min(called, os.path.relpath(called), key=len) if "/" in called else called
    lines = [
        f"Done in {summary['seconds']} s; units computed: {computed or 'none, all was there'}.",
        "",
        f"  {rows['source_programs']} source programs, {rows['leir_programs']} LEIR programs",
        f"  {rows['transformed_steps']} steps, of which "
        f"{percent(accepted, sum(verdicts.values()))} accepted ({labels})",
        f"  {rows['filtered_dataset']} records ({splits})",
        "",
        f"  records    {export}/train.jsonl (and validation, test); card: {export}/README.md",
        f"  tables     {summary['warehouse']} (duckdb, open it read-only)",
        "",
        f'Next: `{name} stats`, `{name} sql "from step_overview limit 3"`, `{name} show ID`,',
        "`make dev` for the Dagster UI.",
    ]
    return "\n".join(lines)
