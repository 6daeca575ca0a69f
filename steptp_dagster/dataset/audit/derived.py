"""What is made from other tables, made again: records and statistics follow from the rest.

What counts is what the tables give, not which code chose it: an older build may be right.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from steptp_dagster.dataset.audit.defects import Defect
from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.schemas import (
    BALANCE,
    EXCLUSIONS,
    FILTERED_DATASET,
    LEAKAGE,
    STATISTICS,
    SURVEYS,
    Row,
    frame,
)
from steptp_dagster.dataset.selection import filtered
from steptp_dagster.dataset.stages.records import tables
from steptp_dagster.dataset.stages.renderings import shown
from steptp_dagster.dataset.statistics import statistics
from steptp_dagster.dataset.storage.mirror import StorageFailure
from steptp_dagster.dataset.store import WHOLE, SpoiltFile, Store

_KIND: Final = "not-derived"


def derived(store: Store, profile: Profile) -> Iterator[Defect]:
    """Records, their reports and statistics that the tables they are made from do not give."""
    try:
        yield from _compared(store, profile)
    except StorageFailure:
        raise
    except SpoiltFile:
        return  # a finding of its own
    except Exception as error:  # noqa: BLE001 - rows that contradict each other fail anywhere
        said = f"these tables give no records: {type(error).__name__}: {error}"
        yield Defect(_KIND, "filtered_dataset", "", " ".join(said.split()))


def _compared(store: Store, profile: Profile) -> Iterator[Defect]:
    known = tables(store, profile)
    made = filtered(known, profile, shown(store, profile))
    records = store.read(FILTERED_DATASET, WHOLE)
    yield from _records(made.rows, records)
    exclusions = store.read(EXCLUSIONS, WHOLE)
    for table, rows in (
        (EXCLUSIONS, made.exclusions),
        (BALANCE, made.balance),
        (LEAKAGE, made.leakage),
    ):
        name = str(table.name)
        yield from _rows(name, frame(table, rows), store.read(table, WHOLE))
    surveys = store.read_all(SURVEYS, profile.program_names)
    counted = statistics(known, surveys, records, exclusions)
    yield from _rows("statistics", counted, store.read(STATISTICS, WHOLE))


def _records(made: Sequence[Row], held: pl.DataFrame) -> Iterator[Defect]:
    there = {row["record_id"]: row for row in held.iter_rows(named=True)}
    wanted = {row["record_id"]: row for row in made}
    for name in sorted(there.keys() | wanted.keys()):
        if (says := _odd(wanted.get(name), there.get(name))) is not None:
            yield Defect(_KIND, "filtered_dataset", name, says)


def _odd(wanted: Row | None, held: Mapping[str, Any] | None) -> str | None:
    """What is wrong with a record, or None."""
    if held is None:
        return "missing: the tables give this record"
    if wanted is None:
        return "the tables give no such record"
    odd = [name for name, value in wanted.items() if held[name] != value]
    return f"the tables give another {', '.join(odd)}" if odd else None


def _rows(name: str, made: pl.DataFrame, held: pl.DataFrame) -> Iterator[Defect]:
    """Rows of a table without ids that are there too often, or not often enough."""
    wanted, there = (Counter(map(canonical_json, f.to_dicts())) for f in (made, held))
    for rows, said in ((there - wanted, "not what"), (wanted - there, "missing here, which")):
        for row in sorted(rows.elements()):
            yield Defect(_KIND, name, "", f"{said} the tables give: {row}")
