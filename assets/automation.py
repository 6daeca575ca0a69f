"""What starts by itself: the sensor of program files, the nightly build, what is due."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import dagster as dg

from assets.partitions import PROGRAMS, file_versions, recorded, reports
from resources.build import Build
from steptp_dagster.users.files import PREFIX

#: Seconds between two looks at the program files.
INTERVAL: Final = 15
RANGE_START: Final = "dagster/asset_partition_range_start"
RANGE_END: Final = "dagster/asset_partition_range_end"

build_job = dg.define_asset_job("build", selection="*", description="Everything, from programs on.")
programs_job = dg.define_asset_job(
    "programs",
    selection=dg.AssetSelection.assets(
        "source_programs", "leir_programs", "transformed_steps", "gpu_verification"
    ),
    description="The part that is cut by program; for backfills of single partitions.",
)


@dg.schedule(
    job=build_job, cron_schedule="0 3 * * *", description="Everything; stopped until started."
)
def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """One run of all programs; what is there and still valid is kept."""
    keys = context.instance.get_dynamic_partitions(str(PROGRAMS.name))
    if not keys:
        return dg.SkipReason("no program is known yet: the sensor program_folder adds them")
    return dg.RunRequest(tags={RANGE_START: keys[0], RANGE_END: keys[-1]})


@dg.sensor(
    job=build_job,
    minimum_interval_seconds=INTERVAL,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Program files that came, changed or went: partitions, and versions of "
    "`program_files`; users' files that came or changed are built.",
)
def program_folder(
    context: dg.SensorEvaluationContext, build: Build
) -> dg.SensorResult | dg.SkipReason:
    """Compare the files with those of the last look."""
    now = file_versions(build.profile)
    before = json.loads(context.cursor or "{}")
    there = context.instance.get_dynamic_partitions(str(PROGRAMS.name))
    added = [name for name in now if name not in there]
    gone = [name for name in there if name not in now]
    looked = [name for name in now if before.get(name) != now[name] or name in added]
    changed = [name for name in looked if recorded(context.instance, name) != now[name]]
    if not (added or gone or changed) and before == now:
        return dg.SkipReason("no program file changed")
    order = [*(name for name in there if name in now), *added]
    users = [name for name in changed if name.startswith(PREFIX)]
    return dg.SensorResult(
        run_requests=[_request(now, names) for names in stretches(order, users)],
        dynamic_partitions_requests=[
            PROGRAMS.build_add_request(added),
            PROGRAMS.build_delete_request(gone),
        ],
        asset_events=list(reports(now, changed)),
        cursor=json.dumps(now),
    )


def _request(versions: Mapping[str, str], names: Sequence[str]) -> dg.RunRequest:
    """A run of neighbouring partitions, once for each state of their files."""
    key = " ".join(f"{name}:{versions[name]}" for name in names)
    return dg.RunRequest(run_key=key, tags={RANGE_START: names[0], RANGE_END: names[-1]})


def stretches(order: Sequence[str], wanted: Sequence[str]) -> list[list[str]]:
    """The wanted names in stretches of neighbours: a run takes a range of partitions.

    >>> stretches("abcdef", "bcf")
    [['b', 'c'], ['f']]
    """
    found: list[list[str]] = []
    last = -2
    for place, name in enumerate(order):
        if name not in wanted:
            continue
        if place == last + 1:
            found[-1].append(name)
        else:
            found.append([name])
        last = place
    return found


#: Off until somebody starts it: with the UI open, every save of a strategy would start work.
due = dg.AutomationConditionSensorDefinition(
    "due",
    target=dg.AssetSelection.all(),
    default_status=dg.DefaultSensorStatus.STOPPED,
    minimum_interval_seconds=INTERVAL,
    description="Starts what is missing or outdated, by code or data; stopped until started.",
)
