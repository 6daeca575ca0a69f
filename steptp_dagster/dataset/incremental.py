"""Only what is missing is computed: a stage as units of work with content keys.

A stage of a program is a set of units. The key of a unit digests what it is made from and the
version of the code that makes it; every row carries the key of its unit. ``update`` keeps rows of
wanted units, computes the missing ones in batches, drops the rest, and leaves a finished file
alone when nothing changed. A unit is done when its row in the stage's *first* table is on disk,
unless that row says more of the machine that made it than of the unit (``Stage.again``); where
units may come to nothing (``Stage.sparse``), when its row in the stage's lineage is.
Batches write that table last, so its rows vouch for those of the others; finished files are
replaced with that table first, so a unit that is dropped is gone before its other rows are. A
file that is missing or spoilt takes the files written with it out of the count.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pandera.polars as pa
import polars as pl
from pandera.errors import SchemaErrors

from steptp_dagster.dataset.schemas import LINEAGE, RUNS, TIMINGS, Row, empty, frame
from steptp_dagster.dataset.store import NotWritten, Store, read_if_sound


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work: its key and whatever the computation needs to know."""

    key: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of one finished unit by folder name (without ``unit``), and seconds it took."""

    unit: Unit
    rows: Mapping[str, Sequence[Row]]
    seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its name, its folders with their tables (first: one row a unit) and sort keys.

    ``again`` tells rows of the first table that are never believed later: another run, with more
    time or memory, or on a machine that is less busy, may come to something else. They stand in
    the finished file, and the next ``update`` makes their units again. Units of a ``sparse`` stage
    may have no row in the first table: that they are done is what their lineage says.
    """

    name: str
    tables: Mapping[str, pa.DataFrameSchema]
    order: Mapping[str, tuple[str, ...]]
    again: pl.Expr = field(default_factory=lambda: pl.lit(False))
    sparse: bool = False

    @property
    def vouching(self) -> str:
        """The folder with a row for every unit that is done."""
        return f"lineage-{self.name}" if self.sparse else next(iter(self.tables))

    @property
    def journals(self) -> dict[str, pa.DataFrameSchema]:
        """Folders of the stage's lineage and timings."""
        return {f"lineage-{self.name}": LINEAGE, f"timings-{self.name}": TIMINGS}


@dataclass(frozen=True, slots=True)
class Origin:
    """Which run computes, for the lineage of new rows.

    ``describe`` gives the run's row of ``runs`` (without ``run_id``); asked when it makes a row.
    """

    run_id: str = "direct"
    code_version: str = ""
    describe: Callable[[], Row] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What ``update`` did: units computed, kept and dropped; rows now there by folder.

    ``unsettled`` are units that are there and that the next ``update`` makes again.
    """

    new: int
    kept: int
    dropped: int
    rows: Mapping[str, int] = field(default_factory=dict)
    unsettled: int = 0

    def __add__(self, other: "Report") -> "Report":
        """Sum over programs."""
        names = [*self.rows, *(n for n in other.rows if n not in self.rows)]
        rows = {n: self.rows.get(n, 0) + other.rows.get(n, 0) for n in names}
        return Report(
            self.new + other.new,
            self.kept + other.kept,
            self.dropped + other.dropped,
            rows,
            self.unsettled + other.unsettled,
        )


NOTHING: Final = Report(0, 0, 0)


class BadRows(ValueError):
    """Rows that their table's schema refuses; nothing of them was written."""

    def __init__(self, table: str, cases: pl.DataFrame) -> None:
        self.table = table
        self.cases = cases
        shown = "; ".join(
            f"{c['column']}: {c['check']} ({c['failure_case']})" for c in cases.head(3).to_dicts()
        )
        super().__init__(f"{table}: {cases.height} rows break the schema: {shown}")


def validated(table: pa.DataFrameSchema, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, if the schema accepts them. Raises BadRows with the failing cases."""
    try:
        table.validate(rows, lazy=True)
    except SchemaErrors as error:
        cases = error.failure_cases
        if not isinstance(cases, pl.DataFrame):
            cases = pl.DataFrame({"column": [""], "check": [str(error)], "failure_case": [""]})
        raise BadRows(str(table.name), cases) from None
    return rows


Compute = Callable[[Sequence[Unit]], Iterable[Made]]
#: More units, wanted because of the rows (by folder) of all units wanted so far.
Grow = Callable[[Mapping[str, pl.DataFrame]], Sequence[Unit]]


def update(
    store: Store,
    stage: Stage,
    program: str,
    wanted: Sequence[Unit],
    compute: Compute,
    *,
    origin: Origin,
    grow: Sequence[Grow] = (),
    batch: int = 64,
) -> Report:
    """Bring one program's partition of a stage to the wanted units.

    ``compute`` takes the missing units and yields them done, in their order; then each of
    ``grow`` in turn may want more. Raises PartitionBusy, BadRows, and whatever ``compute``
    raises; batches written until then are kept.
    """
    with store.locked(stage.name, program):
        every, first = _every(stage), next(iter(stage.tables))
        vouching = stage.vouching
        _tidy(store, every, program)
        rows = _done(store, stage, program)
        there = set(rows[vouching]["unit"].to_list())
        number = max((_number(p.stem) for p in store.batches(vouching, program)), default=0)
        units: dict[str, Unit] = {}
        new = 0
        for more in (lambda _: wanted, *grow):
            keys = sorted(units)
            own = {n: rows[n].filter(pl.col("unit").is_in(keys)) for n in stage.tables}
            found = {unit.key: unit for unit in more(own) if unit.key not in units}
            units |= found
            missing = [unit for key, unit in found.items() if key not in there]
            new += len(missing)
            if missing:
                _note(store, origin)
            for made in _batched(compute(missing), batch) if missing else ():
                number += 1
                frames = _frames(stage, program, made, origin)
                for name in [*(n for n in every if n != vouching), vouching]:
                    path = store.part(name, program).with_name(f"batch-{number:05d}.parquet")
                    store.write(path, frames[name])
                    rows[name] = pl.concat([rows[name], frames[name]])
        final = _finish(store, stage, program, sorted(units), rows)
        open_units = rows[first].filter(pl.col("unit").is_in(sorted(units)) & stage.again)
        return Report(
            new=new,
            kept=len(units) - new,
            dropped=len(there - units.keys()),
            rows={name: final[name] for name in stage.tables},
            unsettled=open_units["unit"].n_unique(),
        )


def _note(store: Store, origin: Origin) -> None:
    """Write the run's row before its first rows of other tables; a run has a file of its own."""
    path = store.part("runs", origin.run_id)
    store.bring(path)
    if origin.describe is not None and not path.exists():
        row = {"run_id": origin.run_id, **origin.describe()}
        store.write(path, validated(RUNS, frame(RUNS, [row])))


def _number(stem: str) -> int:
    return int(stem.removeprefix("batch-"))


def _tidy(store: Store, folders: Iterable[str], program: str) -> None:
    """Remove files that a writer which was killed had begun; nobody else writes here now."""
    for name in folders:
        for left in store.asides(name, program):
            with suppress(NotWritten):
                store.remove(left)


def _every(stage: Stage) -> dict[str, pa.DataFrameSchema]:
    """All folders of a stage, the vouching one first."""
    every = {**stage.tables, **stage.journals}
    return {stage.vouching: every[stage.vouching], **every}


def _done(store: Store, stage: Stage, program: str) -> dict[str, pl.DataFrame]:
    """Rows of done units by folder, from finished files and from batches.

    Each unit counts from the first place that has it, and not with a row that is to be made
    again. The vouching folder decides which are done: a kill between two files leaves rows of
    units that are not.
    """
    every, first = _every(stage), next(iter(stage.tables))
    vouching, again = stage.vouching, stage.again
    paths = [store.part(vouching, program), *store.batches(vouching, program)]
    kept: dict[str, list[pl.DataFrame]] = {name: [empty(table)] for name, table in every.items()}
    seen: dict[str, set[str]] = {name: set() for name in every}
    store.bring(*(store.part(n, program).with_name(p.name) for p in paths for n in every))
    for filename in (path.name for path in paths):
        sound = {}
        for name, table in every.items():
            rows = read_if_sound(table, store.part(name, program).with_name(filename))
            if rows is not None:
                sound[name] = rows
        if sound.keys() != every.keys():
            continue
        doubtful = set(sound[first].filter(again)["unit"].to_list())
        for name, rows in sound.items():
            left_out = sorted(seen[name] | doubtful)
            kept[name].append(rows.filter(~pl.col("unit").is_in(left_out)))
            seen[name] |= set(rows["unit"].to_list()) - doubtful
    done = sorted(seen[vouching])
    return {
        name: pl.concat(parts).filter(pl.col("unit").is_in(done)) for name, parts in kept.items()
    }


def _frames(
    stage: Stage, program: str, made: Sequence[Made], origin: Origin
) -> dict[str, pl.DataFrame]:
    """The batch as one validated frame a folder."""
    frames = {}
    for name, table in stage.tables.items():
        rows = [{**row, "unit": m.unit.key} for m in made for row in m.rows.get(name, ())]
        frames[name] = validated(table, frame(table, rows))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    lineage: list[Row] = [
        {
            "unit": m.unit.key,
            "stage": stage.name,
            "program": program,
            "run_id": origin.run_id,
            "code_version": origin.code_version,
            "created_at": now,
        }
        for m in made
    ]
    host = socket.gethostname()
    timings: list[Row] = [
        {"unit": m.unit.key, "stage": stage.name, "seconds": m.seconds, "host": host} for m in made
    ]
    frames[f"lineage-{stage.name}"] = frame(LINEAGE, lineage)
    frames[f"timings-{stage.name}"] = frame(TIMINGS, timings)
    return frames


def _finish(
    store: Store, stage: Stage, program: str, keys: Sequence[str], rows: Mapping[str, pl.DataFrame]
) -> dict[str, int]:
    """Write the finished files, sorted, where they changed; then remove the batches."""
    every = _every(stage)
    heights = {}
    for name, table in every.items():
        wanted = rows[name].filter(pl.col("unit").is_in(keys))
        ordered = wanted.sort(stage.order.get(name, ("unit",)), maintain_order=True)
        write_changed(store, table, program, ordered, name)
        heights[name] = ordered.height
    for name in every:
        for path in store.batches(name, program):
            store.remove(path)
    return heights


def write_changed(
    store: Store,
    table: pa.DataFrameSchema,
    program: str,
    rows: pl.DataFrame,
    name: str = "",
    made_from: str | None = None,
) -> bool:
    """Write finished rows, if they differ from those that are there; whether they did.

    ``made_from`` is kept with the file (``Store.digest``): what the whole table was made from.
    """
    name = name or str(table.name)
    path = store.part(name, program)
    store.bring(path)
    there = read_if_sound(table, path)
    if there is not None and there.equals(rows) and made_from == store.digest(name, program):
        return False
    metadata = None if made_from is None else {"made_from": made_from}
    store.write(path, validated(table, rows), metadata)
    return True


def _batched(made: Iterable[Made], size: int) -> Iterator[list[Made]]:
    """Cut into lists of ``size``; what is there is handed out even if ``made`` then fails."""
    pending: list[Made] = []
    iterator = iter(made)
    try:
        for item in iterator:
            pending.append(item)
            if len(pending) >= size:
                yield pending
                pending = []
    except GeneratorExit:
        raise
    except BaseException:  # Dagster's interrupt is neither an Exception nor a KeyboardInterrupt
        if pending:
            yield pending
        raise
    if pending:
        yield pending


def timed(unit: Unit, work: Callable[[], Mapping[str, Sequence[Row]]]) -> Made:
    """Do the work of a unit and note how long it took."""
    start = time.perf_counter()
    rows = work()
    return Made(unit, rows, time.perf_counter() - start)
