"""``steptp audit``: whether everything in a data folder is what it says."""

from pathlib import Path

import click

from steptp_dagster import paths
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, table
from steptp_dagster.cli.storage import stage_files, storage_option
from steptp_dagster.cli.warehouse import data_option


@click.command()
@click.option("--quick", is_flag=True, help="Leave out what every row by itself gives away.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Findings of one kind and place that are told one by one.",
)
@data_option
@storage_option
@json_option
def audit(quick: bool, most: int, data: Path | None, storage: str | None, as_json: bool) -> None:
    """Check a data folder: stage files, ids, references, versions, runs, tables, export.

    Ids, hashes and measures are computed again from what the rows hold; nothing is changed. Exit
    code 1 where something is wrong; what is merely unfinished or superfluous does not count.
    """
    from steptp_dagster.dataset.audit.defects import KINDS
    from steptp_dagster.dataset.audit.whole import audit as whole
    from steptp_dagster.dataset.storage.mirror import StorageFailure

    folder = data or paths.data()
    if not folder.is_dir():
        raise Failure(f"there is no data folder {folder}; `steptp build` makes it")
    try:
        found = whole(folder, stage_files(folder, storage), quick=quick, most=most)
    except StorageFailure as error:
        raise Failure(str(error), REJECTED) from error
    grave = sum(defect.grave for defect in found.defects)
    told = {
        "sound": found.sound,
        "rows": found.rows,
        "defects": [defect.to_json() for defect in found.defects],
    }

    def words() -> str:
        looked = f"looked at {sum(found.rows.values())} rows of {len(found.rows)} tables"
        if not found.defects:
            return f"{looked}: nothing is wrong"
        listed = [
            {"kind": d.kind, "where": d.where, "id": d.id, "found": d.message}
            for d in found.defects
        ]
        kinds = sorted({d.kind for d in found.defects})
        meanings = table([{"kind": kind, "meaning": KINDS[kind]} for kind in kinds])
        notes = len(found.defects) - grave
        return f"{table(listed)}\n\n{meanings}\n\n{looked}: {grave} findings, {notes} notes"

    emit(told, words, as_json=as_json)
    if not found.sound:
        raise Failure(f"{grave} findings: do not publish this data set", REJECTED)
