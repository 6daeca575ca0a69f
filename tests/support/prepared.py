"""The small data set by hand as stage files: everything that a warehouse is loaded from."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.incremental import Made, Origin, Unit, update, write_changed
from steptp_dagster.dataset.schemas import (
    BALANCE,
    EXCLUSIONS,
    FILTERED_DATASET,
    LEAKAGE,
    STATISTICS,
    Row,
    frame,
)
from steptp_dagster.dataset.selection import Filtered, filtered
from steptp_dagster.dataset.stages.records import STAGE
from steptp_dagster.dataset.statistics import statistics
from steptp_dagster.dataset.store import Store
from tests.support.rows import fill, frames, key, tables


def prepare(root: Path, rows: dict[str, list[Row]], made: Filtered | None = None) -> Store:
    """Stage files of everything, records and statistics included."""
    store = Store(root)
    fill(store, rows)
    made = made or filtered(tables(rows), load_profile("tiny"))
    units = [Unit(key("record unit", row["record_id"]), row) for row in made.rows]

    def compute(missing: Sequence[Unit]) -> Iterator[Made]:
        return (Made(u, {"filtered_dataset": [u.payload]}, 0.0) for u in missing)

    update(store, STAGE, "all", units, compute, origin=Origin("run-1", "v1"), batch=100)
    write_changed(store, BALANCE, "all", frame(BALANCE, made.balance))
    write_changed(store, LEAKAGE, "all", frame(LEAKAGE, made.leakage))
    gone = frame(EXCLUSIONS, made.exclusions)
    write_changed(store, EXCLUSIONS, "all", gone)
    records = store.read(FILTERED_DATASET, "all")
    counted = statistics(tables(rows), frames(rows)["surveys"], records, gone)
    write_changed(store, STATISTICS, "all", counted)
    return store
