"""The audit of a data folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from steptp_dagster.dataset.audit import across, made, sealed
from steptp_dagster.dataset.audit.content import content
from steptp_dagster.dataset.audit.defects import Defect, first_of
from steptp_dagster.dataset.audit.derived import derived
from steptp_dagster.dataset.audit.stage_files import Part, misfits, parts
from steptp_dagster.dataset.store import WHOLE, Store, opened

#: Findings of one kind and place that are told one by one.
MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Audit:
    """What was looked at (rows by table), and what was found."""

    rows: dict[str, int]
    defects: tuple[Defect, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing grave was found."""
        return not any(defect.grave for defect in self.defects)


def audit(
    data: Path, store: Store | None = None, *, quick: bool = False, most: int = MOST
) -> Audit:
    """Look at everything in a data folder and its ``store``; nothing is changed.

    ``quick`` leaves out what is computed again (ids, measures and texts of each row, records,
    statistics, the export). ``most``
    findings of one kind and place are told one by one.
    """
    rows: dict[str, int] = {}
    found = tuple(first_of(_found(data, store or opened(data), quick, rows), most))
    return Audit(rows, found)


def _found(data: Path, store: Store, quick: bool, heights: dict[str, int]) -> Iterator[Defect]:
    database = data / "steptp.duckdb"
    profile = made.profile_in(database)
    programs = None
    if isinstance(profile, Defect):
        yield profile
    else:
        programs = {*profile.program_names, WHOLE}
    sound: list[Part] = []
    for item in parts(store):
        if isinstance(item, Defect):
            yield item
        else:
            sound.append(item)
    yield from sealed.changed(store)
    yield from misfits(sound)
    folders: dict[str, list[pl.DataFrame]] = {}
    for part in sound:
        if programs is None or part.program in programs or part.folder == "runs":
            folders.setdefault(part.folder, []).append(part.rows)
    tables = across.merged(folders)
    heights.update({name: table.height for name, table in tables.items()})
    if not quick:
        yield from content(tables)
    yield from across.references(tables)
    yield from across.lineage(tables)
    yield from across.versions(tables)
    if pairs := folders.get("verdicts"):
        yield from across.verdicts(pl.concat(pairs), tables["gpu_verification"])
    if not isinstance(profile, Defect):
        yield from made.warehouse(store, database, profile, tables)
        if not quick:
            yield from derived(store, profile)
    yield from made.export(data / "export", None if quick else database)
