"""``steptp build``: the Dagster job in this process, with progress and a closing summary."""

import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steptp_dagster import paths
from steptp_dagster.cli.home import instance, writable
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, say
from steptp_dagster.cli.storage import stage_files, storage_option
from steptp_dagster.cli.users import chosen, users_option
from steptp_dagster.cli.warehouse import data_option

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
@data_option
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
    writable(paths.data())
    if storage is not None:
        os.environ[paths.STORAGE_VARIABLE] = storage
    stage_files(paths.data(), storage)
    os.environ["STEPTP_PROFILE"] = profile
    os.environ["STEPTP_WORKERS"] = str(workers)
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
    try:
        from steptp_dagster.definitions import defs, settings, synchronise
    except paths.WrongSetting as error:
        raise Failure(str(error)) from error
    config = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with instance(quiet=True) as dagster:
        programs = synchronise(dagster, settings.profile)
        tags = {
            "dagster/asset_partition_range_start": programs[0],
            "dagster/asset_partition_range_end": programs[-1],
            "steptp/progress": "console",
        }
        job = defs.resolve_job_def("build")
        return job.execute_in_process(
            instance=dagster, tags=tags, run_config=config, raise_on_error=False
        )


def _interrupted(result: "dg.ExecuteInProcessResult") -> bool:
    """Whether a signal (Ctrl-C) ended the run."""
    errors = (event.step_failure_data.error for event in result.get_step_failure_events())
    return any(e is not None and e.cls_name == "DagsterExecutionInterruptedError" for e in errors)


def _why(result: "dg.ExecuteInProcessResult") -> str:
    """Which steps and blocking checks failed, and the innermost messages."""
    import dagster as dg

    failed = []
    for event in result.get_step_failure_events():
        error: Any = event.step_failure_data.error
        while error is not None and error.cause is not None:
            error = error.cause
        # A check that stops a build fails its step too, in words that say less.
        if error is None or error.cls_name != "DagsterAssetCheckFailedError":
            failed.append(f"{event.step_key}: {_said(error)}")
    broken = [
        f"check {e.check_name} of {e.asset_key.to_user_string()}: {e.description}"
        for e in result.get_asset_check_evaluations()
        if not e.passed and e.severity == dg.AssetCheckSeverity.ERROR
    ]
    return f"the build failed (run {result.run_id}); " + "; ".join([*failed, *broken])


def _said(error: Any) -> str:  # noqa: ANN401 - dagster's form of an exception
    """An exception's own words; a class of ours in front of them says nothing to a reader."""
    if error is None:
        return "no message"
    words = " ".join(str(error.message).split())
    module, _, rest = words.partition(f"{error.cls_name}: ")
    return rest if module.startswith(("steptp_dagster.", "resources.", "assets.")) else words


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
