"""One partition per program of the profile; when an asset is due; versions of program files."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Final

import dagster as dg

from resources.build import number
from steptp_dagster.dataset.config import Profile
from steptp_dagster.users.files import Content, read

# Backfill policies are in beta; the warning would come with every import.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

#: Environment variable: programs of one run of a backfill, for clusters; 0 or absent: all.
RUN_SIZE_VARIABLE: Final = "STEPTP_PROGRAMS_PER_RUN"
DATA_VERSION: Final = "dagster/data_version"
#: Version of a file that cannot be read.
UNREADABLE: Final = "unreadable"

#: Programs of the library and users' files alike; ``synchronise`` and the sensor fill it.
PROGRAMS: Final = dg.DynamicPartitionsDefinition(name="programs")


def backfill_policy() -> dg.BackfillPolicy:
    """All partitions in one run, or so many a run as the environment says."""
    size = number(RUN_SIZE_VARIABLE)
    return dg.BackfillPolicy.multi_run(size) if size else dg.BackfillPolicy.single_run()


BACKFILL: Final = backfill_policy()
_AC = dg.AutomationCondition
#: Missing, other code, or other data above it. ``eager()`` would also run for materialisations
#: that changed nothing, and would not for other code.
DUE: Final = (
    (
        _AC.missing()
        | _AC.code_version_changed()
        | _AC.any_deps_match(_AC.data_version_changed() | _AC.will_be_requested())
    ).since(_AC.newly_requested() | _AC.newly_updated())
    & ~_AC.in_progress()
).with_label("missing, code changed, or data changed")

program_files = dg.AssetSpec(
    "program_files",
    partitions_def=PROGRAMS,
    group_name="programs",
    kinds={"python"},
    owners=["team:steptp"],
    description="One Python file per program: the library's, and users' in their folder. Its data "
    "version is the digest of the file, reported by the sensor and by `steptp build`.",
)


def file_versions(profile: Profile) -> dict[str, str]:
    """The digest of every program's file, in the profile's order; unknown programs have none."""
    from steptp_dagster.sources.registry import SOURCES

    versions = {p.name: SOURCES[p.name].code_hash for p in profile.programs if p.name in SOURCES}
    for name in profile.program_names:
        if file := profile.user_file(name):
            content = read(file)
            if isinstance(content, Content):
                versions[name] = content.code_hash
    return {name: versions.get(name, UNREADABLE) for name in profile.program_names}


def recorded(instance: dg.DagsterInstance, program: str) -> str | None:
    """The digest that was last reported of a program's file, or None."""
    wanted = dg.AssetRecordsFilter(asset_key=program_files.key, asset_partitions=[program])
    for record in instance.fetch_materializations(wanted, limit=1).records:
        event = record.asset_materialization
        return None if event is None else (event.tags or {}).get(DATA_VERSION)
    return None


def reports(versions: Mapping[str, str], programs: Iterable[str]) -> list[dg.AssetMaterialization]:
    """The events that tell Dagster of new versions of program files."""
    return [
        dg.AssetMaterialization(
            program_files.key, partition=name, tags={DATA_VERSION: versions[name]}
        )
        for name in programs
    ]


def synchronise(instance: dg.DagsterInstance, profile: Profile) -> tuple[str, ...]:
    """Make Dagster know the programs of the profile and no others; its partitions, in its order.

    What was materialised stays recorded, also of a partition that goes and comes back.
    """
    versions = file_versions(profile)
    there = instance.get_dynamic_partitions(str(PROGRAMS.name))
    for name in there:
        if name not in versions:
            instance.delete_dynamic_partition(str(PROGRAMS.name), name)
    added = [name for name in versions if name not in there]
    if added:
        instance.add_dynamic_partitions(str(PROGRAMS.name), added)
    changed = [name for name in versions if recorded(instance, name) != versions[name]]
    for event in reports(versions, changed):
        instance.report_runless_asset_event(event)
    return tuple(instance.get_dynamic_partitions(str(PROGRAMS.name)))
